package config

import (
	"fmt"

	"github.com/spf13/pflag"
)

// AddFlags adds the flags of an installation.
func (c *Configuration) AddFlags(fs *pflag.FlagSet) {
	c.addConfigFlag(fs)
	fs.StringVar(&c.Host.Kubeconfig, "kubeconfig", c.Host.Kubeconfig, "Path to the kubeconfig of the host cluster; default $KUBECONFIG, then ~/.kube/config.")
	fs.StringVar(&c.Host.Context, "context", c.Host.Context, "Context of the kubeconfig of the host cluster; default the current one.")
	fs.StringVarP(&c.APIServer.Namespace, "namespace", "n", c.APIServer.Namespace, "Namespace of the control plane in the host cluster.")
	fs.StringVar(&c.Host.Domain, "host-cluster-domain", c.Host.Domain, "DNS domain of the host cluster.")
	c.Images.addFlags(fs)
	c.Certificates.addFlags(fs)
	c.Etcd.addStoreFlags(fs)
	for _, p := range c.Parts() {
		p.addFlags(fs)
	}
	fs.BoolVar(&c.Compact, "compact", c.Compact, "Run the roles of Karmada in one Deployment, karmada-all-in-one, instead of one for each. The other layout is back when init runs without it.")
	fs.StringVar(&c.CRDs, "crds", c.CRDs, "Directory, archive or URL of an archive with the APIs of the federation. The default stands for those that are built in; nothing is downloaded then.")
	fs.StringVar(&c.APIServer.AdvertiseAddress, "karmada-apiserver-advertise-address", c.APIServer.AdvertiseAddress, "IP address of the API server in the kubeconfig; default that of a node.")
	fs.Int32VarP(&c.APIServer.NodePort, "port", "p", c.APIServer.NodePort, "NodePort of the API server.")
	fs.StringVarP(&c.DataPath, "karmada-data", "d", c.DataPath, "Local directory of the administrator's kubeconfig.")
	fs.StringVar(&c.PKIPath, "karmada-pki", c.PKIPath, "Local directory of the certificates. It follows --karmada-data when only that is given.")
	fs.IntVar(&c.WaitSeconds, "wait-component-ready-timeout", c.WaitSeconds, "Seconds to wait for each component to be ready; 0 waits for ever.")
}

// AddImageFlags adds the flags that decide which images are used.
func (c *Configuration) AddImageFlags(fs *pflag.FlagSet) {
	c.addConfigFlag(fs)
	c.Images.addFlags(fs)
	for _, p := range c.Parts() {
		p.addImageFlag(fs, p.Flag)
	}
	c.Etcd.External.addServersFlag(fs)
}

func (c *Configuration) addConfigFlag(fs *pflag.FlagSet) {
	fs.StringVar(&c.ConfigFile, "config", c.ConfigFile, "Path of a KarmadaInitConfig; flags that are given take precedence over its values.")
}

func (i *Images) addFlags(fs *pflag.FlagSet) {
	fs.StringVar(&i.PrivateRegistry, "private-image-registry", i.PrivateRegistry, "Registry to pull all images from, instead of the defaults.")
	fs.StringVar((*string)(&i.PullPolicy), "image-pull-policy", string(i.PullPolicy), "Pull policy of the control plane's own images: Always, Never or IfNotPresent.")
	fs.StringSliceVar(&i.PullSecrets, "image-pull-secrets", i.PullSecrets, "Secrets for pulling images. They must be in the namespace already.")
	fs.StringVar(&i.MirrorCountry, "kube-image-mirror-country", i.MirrorCountry, "Country of the mirror of Kubernetes' images: cn or global.")
	fs.StringVar(&i.KubeRegistry, "kube-image-registry", i.KubeRegistry, "Registry of Kubernetes' images; it takes precedence over the mirror.")
	fs.StringVar(&i.KubeTag, "kube-image-tag", i.KubeTag, "Tag of the images of kube-apiserver and kube-controller-manager.")
}

func (c *Certificates) addFlags(fs *pflag.FlagSet) {
	fs.Var(&c.ExternalIP, "cert-external-ip", "Further IP addresses of the API server in its certificate, separated by commas.")
	fs.Var(&c.ExternalDNS, "cert-external-dns", "Further DNS names of the API server in its certificate, separated by commas.")
	fs.DurationVar(&c.Validity.Duration, "cert-validity-period", c.Validity.Duration, "How long certificates are valid; authorities are for ten years.")
	fs.StringVar(&c.CACertFile, "ca-cert-file", c.CACertFile, "Certificate of the authority to use; default a new one.")
	fs.StringVar(&c.CAKeyFile, "ca-key-file", c.CAKeyFile, "Key of the authority to use.")
	fs.StringVar(&c.KeyAlgorithm, "key-algorithm", c.KeyAlgorithm, "Algorithm of new keys: ecdsa or rsa.")
}

func (e *Etcd) addStoreFlags(fs *pflag.FlagSet) {
	fs.StringVar(&e.StorageMode, "etcd-storage-mode", e.StorageMode, "Where etcd keeps its data: emptyDir, hostPath or PVC.")
	fs.StringVar(&e.DataPath, "etcd-data", e.DataPath, "Directory of etcd on the node, for hostPath.")
	fs.Var(&e.NodeLabels, "etcd-node-selector-labels", "Labels of the node that etcd runs on, for hostPath: key=value,key=value.")
	fs.StringVar(&e.StorageClass, "storage-classes-name", e.StorageClass, "StorageClass of etcd's volumes, for PVC.")
	fs.StringVar(&e.PVCSize, "etcd-pvc-size", e.PVCSize, "Size of etcd's volumes, for PVC.")
	x := &e.External
	x.addServersFlag(fs)
	fs.StringVar(&x.CAFile, "external-etcd-ca-cert-path", x.CAFile, "Certificate of the authority of the external etcd.")
	fs.StringVar(&x.CertFile, "external-etcd-client-cert-path", x.CertFile, "Client certificate for the external etcd.")
	fs.StringVar(&x.KeyFile, "external-etcd-client-key-path", x.KeyFile, "Key of the client certificate for the external etcd.")
	fs.StringVar(&x.KeyPrefix, "external-etcd-key-prefix", x.KeyPrefix, "Prefix of the control plane's keys in the external etcd.")
}

func (x *ExternalEtcd) addServersFlag(fs *pflag.FlagSet) {
	fs.Var(&x.Servers, "external-etcd-servers", "URLs of an etcd that exists already, separated by commas; no other is installed then.")
}

func (p Part) addImageFlag(fs *pflag.FlagSet, prefix string) {
	fs.StringVar(&p.Image, prefix+"-image", p.Image, fmt.Sprintf("Image of %s.", p.Name))
}

func (p Part) addFlags(fs *pflag.FlagSet) {
	p.addImageFlag(fs, p.Flag)
	p.addPodFlags(fs, p.Flag)
	fs.Var(&p.ExtraArgs, p.Flag+"-extra-args", fmt.Sprintf("Arguments of %s that replace or complete the default ones: --name=value,--name=value.", p.Name))
}

func (p Part) addPodFlags(fs *pflag.FlagSet, prefix string) {
	fs.Int32Var(&p.Replicas, prefix+"-replicas", p.Replicas, fmt.Sprintf("Number of pods of %s.", p.Name))
	fs.StringVar(&p.PriorityClass, p.Flag+"-priority-class", p.PriorityClass, fmt.Sprintf("Priority class of the pods of %s.", p.Name))
}

// AddAddonFlags adds the flags of addons.
func (c *Configuration) AddAddonFlags(fs *pflag.FlagSet) {
	for _, p := range c.AddonParts() {
		p.addImageFlag(fs, p.Name)
		p.addPodFlags(fs, "karmada-"+p.Flag)
	}
	fs.StringVar(&c.Images.PrivateRegistry, "private-image-registry", "", "Registry to pull the images from that are left at their defaults.")
	fs.StringVar(&c.Host.Domain, "host-cluster-domain", c.Host.Domain, "DNS domain of the host cluster.")
	fs.IntVar(&c.WaitSeconds, "pod-timeout", c.WaitSeconds, "Seconds to wait for the pods of each addon to be ready; 0 waits for ever.")
	fs.IntVar(&c.Addons.WaitSeconds, "apiservice-timeout", c.Addons.WaitSeconds, "Seconds to wait for each API of an addon to be served; 0 waits for ever.")
}

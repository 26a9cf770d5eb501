package config

import (
	"fmt"

	"github.com/spf13/pflag"
)

// AddFlags adds the flags of an installation.
func (o *Options) AddFlags(fs *pflag.FlagSet) {
	o.addConfigFlag(fs)
	fs.StringVar(&o.Host.Kubeconfig, "kubeconfig", o.Host.Kubeconfig, "Path to the kubeconfig of the host cluster; default $KUBECONFIG, then ~/.kube/config.")
	fs.StringVar(&o.Host.Context, "context", o.Host.Context, "Context of the kubeconfig of the host cluster; default the current one.")
	fs.StringVarP(&o.APIServer.Namespace, "namespace", "n", o.APIServer.Namespace, "Namespace of the control plane in the host cluster.")
	fs.StringVar(&o.Host.Domain, "host-cluster-domain", o.Host.Domain, "DNS domain of the host cluster.")
	o.Images.addFlags(fs)
	o.Certificates.addFlags(fs)
	o.Etcd.addStoreFlags(fs)
	for _, c := range o.components() {
		c.addFlags(fs)
	}
	fs.StringVar(&o.CRDs, "crds", o.CRDs, "Directory, archive or URL of an archive with the APIs of the federation. The default stands for those that are built in; nothing is downloaded then.")
	fs.StringVar(&o.APIServer.AdvertiseAddress, "karmada-apiserver-advertise-address", o.APIServer.AdvertiseAddress, "IP address of the API server in the kubeconfig; default that of a node.")
	fs.Int32VarP(&o.APIServer.NodePort, "port", "p", o.APIServer.NodePort, "NodePort of the API server.")
	fs.StringVarP(&o.DataPath, "karmada-data", "d", o.DataPath, "Local directory of the administrator's kubeconfig.")
	fs.StringVar(&o.PKIPath, "karmada-pki", o.PKIPath, "Local directory of the certificates. It follows --karmada-data when only that is given.")
	fs.IntVar(&o.WaitSeconds, "wait-component-ready-timeout", o.WaitSeconds, "Seconds to wait for each component to be ready; 0 waits for ever.")
}

// AddImageFlags adds the flags that decide which images are used.
func (o *Options) AddImageFlags(fs *pflag.FlagSet) {
	o.addConfigFlag(fs)
	o.Images.addFlags(fs)
	for _, c := range o.components() {
		c.addImageFlag(fs)
	}
	o.Etcd.External.addServersFlag(fs)
}

func (o *Options) addConfigFlag(fs *pflag.FlagSet) {
	fs.StringVar(&o.ConfigFile, "config", o.ConfigFile, "Path of a KarmadaInitConfig; its values override flags.")
}

func (i *ImageOptions) addFlags(fs *pflag.FlagSet) {
	fs.StringVar(&i.PrivateRegistry, "private-image-registry", i.PrivateRegistry, "Registry to pull all images from, instead of the defaults.")
	fs.StringVar(&i.PullPolicy, "image-pull-policy", i.PullPolicy, "Pull policy of the control plane's own images: Always, Never or IfNotPresent.")
	fs.StringSliceVar(&i.PullSecrets, "image-pull-secrets", i.PullSecrets, "Secrets for pulling images. They must be in the namespace already.")
	fs.StringVar(&i.MirrorCountry, "kube-image-mirror-country", i.MirrorCountry, "Country of the mirror of Kubernetes' images: cn or global.")
	fs.StringVar(&i.KubeRegistry, "kube-image-registry", i.KubeRegistry, "Registry of Kubernetes' images; it takes precedence over the mirror.")
	fs.StringVar(&i.KubeTag, "kube-image-tag", i.KubeTag, "Tag of the images of kube-apiserver and kube-controller-manager.")
}

func (c *CertificateOptions) addFlags(fs *pflag.FlagSet) {
	fs.StringVar((*string)(&c.ExternalIP), "cert-external-ip", string(c.ExternalIP), "Further IP addresses of the API server in its certificate, separated by commas.")
	fs.StringVar((*string)(&c.ExternalDNS), "cert-external-dns", string(c.ExternalDNS), "Further DNS names of the API server in its certificate, separated by commas.")
	fs.DurationVar(&c.Validity.Duration, "cert-validity-period", c.Validity.Duration, "How long certificates are valid; authorities are for ten years.")
	fs.StringVar(&c.CACertFile, "ca-cert-file", c.CACertFile, "Certificate of the authority to use; default a new one.")
	fs.StringVar(&c.CAKeyFile, "ca-key-file", c.CAKeyFile, "Key of the authority to use.")
	fs.StringVar(&c.KeyAlgorithm, "key-algorithm", c.KeyAlgorithm, "Algorithm of new keys: ecdsa or rsa.")
}

func (e *EtcdOptions) addStoreFlags(fs *pflag.FlagSet) {
	fs.StringVar(&e.StorageMode, "etcd-storage-mode", e.StorageMode, "Where etcd keeps its data: emptyDir, hostPath or PVC.")
	fs.StringVar(&e.DataPath, "etcd-data", e.DataPath, "Directory of etcd on the node, for hostPath.")
	fs.StringVar((*string)(&e.NodeSelector), "etcd-node-selector-labels", string(e.NodeSelector), "Labels of the node that etcd runs on, for hostPath: key=value,key=value.")
	fs.StringVar(&e.StorageClass, "storage-classes-name", e.StorageClass, "StorageClass of etcd's volumes, for PVC.")
	fs.StringVar(&e.PVCSize, "etcd-pvc-size", e.PVCSize, "Size of etcd's volumes, for PVC.")
	x := &e.External
	x.addServersFlag(fs)
	fs.StringVar(&x.CAFile, "external-etcd-ca-cert-path", x.CAFile, "Certificate of the authority of the external etcd.")
	fs.StringVar(&x.CertFile, "external-etcd-client-cert-path", x.CertFile, "Client certificate for the external etcd.")
	fs.StringVar(&x.KeyFile, "external-etcd-client-key-path", x.KeyFile, "Key of the client certificate for the external etcd.")
	fs.StringVar(&x.KeyPrefix, "external-etcd-key-prefix", x.KeyPrefix, "Prefix of the control plane's keys in the external etcd.")
}

func (x *ExternalEtcdOptions) addServersFlag(fs *pflag.FlagSet) {
	fs.StringVar((*string)(&x.Servers), "external-etcd-servers", string(x.Servers), "URLs of an etcd that exists already, separated by commas; no other is installed then.")
}

func (c component) addImageFlag(fs *pflag.FlagSet) {
	fs.StringVar(&c.Image, c.flag+"-image", c.Image, fmt.Sprintf("Image of %s.", c.name))
}

func (c component) addFlags(fs *pflag.FlagSet) {
	c.addImageFlag(fs)
	fs.Int32Var(&c.Replicas, c.flag+"-replicas", c.Replicas, fmt.Sprintf("Number of pods of %s.", c.name))
	fs.StringVar(&c.PriorityClass, c.flag+"-priority-class", c.PriorityClass, fmt.Sprintf("Priority class of the pods of %s.", c.name))
	fs.StringSliceVar(&c.ExtraArgs, c.flag+"-extra-args", c.ExtraArgs, fmt.Sprintf("Arguments of %s that replace or complete the default ones: --name=value,--name=value.", c.name))
}

package config

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"path/filepath"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/karmada-toolkit/karmada/pkg/init/components"
)

// invalid is an error in a value of a configuration.
type invalid struct{ path, text string }

// Error implements error.
func (i *invalid) Error() string { return i.text }

// invalidf returns an error in the value at a path in a file. The text names the flag.
func invalidf(path, format string, args ...any) error {
	return &invalid{path, fmt.Sprintf(format, args...)}
}

// validate returns the first error in the values. Where there is a file, it has the path there.
func (c *Configuration) validate(program string, phases []string) error {
	help := fmt.Sprintf("See '%s init --help'", program)
	for _, check := range []func() error{
		c.APIServer.validateAddress, c.Certificates.validate, c.Images.validate, func() error { return c.Etcd.validate(help) },
		func() error { return c.validateRest(help) }, func() error { return c.Phases.validate(phases) },
	} {
		err := check()
		if i := (*invalid)(nil); c.ConfigFile != "" && errors.As(err, &i) {
			return fmt.Errorf("%w (%s in %s)", err, i.path, c.ConfigFile)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (a *APIServer) validateAddress() error {
	if a.AdvertiseAddress != "" && net.ParseIP(a.AdvertiseAddress) == nil {
		return invalidf("spec.components.karmadaAPIServer.advertiseAddress", "karmada apiserver advertise address is not valid: %q is not an IP address", a.AdvertiseAddress)
	}
	return nil
}

func (c *Certificates) validate() error {
	const path = "spec.certificates."
	for _, ip := range c.ExternalIP {
		if net.ParseIP(ip) == nil {
			return invalidf(path+"externalIP", "cert-external-ip %q is not a valid IP address", ip)
		}
	}
	switch {
	case (c.CACertFile == "") != (c.CAKeyFile == ""):
		return invalidf(path+"caCertFile", "ca-cert-file and ca-key-file must be used together")
	case c.Validity.Duration <= 0:
		return invalidf(path+"validityPeriod", "cert-validity-period %s must be positive", c.Validity.Duration)
	case c.KeyAlgorithm != KeyECDSA && c.KeyAlgorithm != KeyRSA:
		return invalidf(path+"keyAlgorithm", "key-algorithm %q is not one of %s and %s", c.KeyAlgorithm, KeyECDSA, KeyRSA)
	}
	for _, name := range c.ExternalDNS {
		if problems := validation.IsDNS1123Subdomain(strings.TrimPrefix(name, "*.")); len(problems) > 0 {
			return invalidf(path+"externalDNS", "cert-external-dns %q is not a valid DNS name", name)
		}
	}
	return nil
}

func (i *Images) validate() error {
	switch i.PullPolicy {
	case corev1.PullAlways, corev1.PullIfNotPresent, corev1.PullNever:
	default:
		return invalidf("spec.images.imagePullPolicy", "invalid image pull policy: %s", i.PullPolicy)
	}
	if code := strings.ToLower(i.MirrorCountry); code != "" && code != "cn" && code != "global" {
		return invalidf("spec.images.kubeImageMirrorCountry", "kube-image-mirror-country %q is not one of cn and global", i.MirrorCountry)
	}
	return nil
}

func (e *Etcd) validate(help string) error {
	const path = "spec.etcd.local."
	if e.External.Used() {
		return e.External.validate()
	}
	switch e.StorageMode {
	case components.StorageHostPath:
		if e.DataPath == "" {
			return invalidf(path+"dataPath", "when etcd storage mode is hostPath, dataPath is not empty. %s", help)
		}
		if !filepath.IsAbs(e.DataPath) {
			return invalidf(path+"dataPath", "etcd-data %q is not an absolute path", e.DataPath)
		}
		if e.Replicas != 1 {
			return invalidf(path+"replicas", "for data security,when etcd storage mode is hostPath,etcd-replicas can only be 1")
		}
	case components.StoragePVC:
		if e.StorageClass == "" {
			return invalidf(path+"storageClassesName", "when etcd storage mode is PVC, storageClassesName is not empty. %s", help)
		}
		if _, err := resource.ParseQuantity(e.PVCSize); err != nil {
			return invalidf(path+"pvcSize", "etcd-pvc-size %q is not a size such as 5Gi", e.PVCSize)
		}
	case components.StorageEmptyDir, "":
	default:
		return invalidf(path+"storageMode", "unsupported etcd-storage-mode %s. %s", e.StorageMode, help)
	}
	if len(e.NodeLabels) > 0 && e.StorageMode != components.StorageHostPath {
		return invalidf(path+"nodeSelectorLabels", "etcd-node-selector-labels is for etcd-storage-mode hostPath, not %s", e.StorageMode)
	}
	if err := e.NodeLabels.validate(); err != nil {
		return invalidf(path+"nodeSelectorLabels", "%s", err)
	}
	return nil
}

func (x *ExternalEtcd) validate() error {
	const path = "spec.etcd.external."
	if (x.CertFile == "") != (x.KeyFile == "") {
		return invalidf(path+"certFile", "etcd client cert and key should be specified both or none")
	}
	for _, server := range x.Servers {
		u, err := url.Parse(server)
		if err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" {
			return invalidf(path+"endpoints", "external-etcd-servers %q is not a URL such as https://etcd.example.org:2379", server)
		}
	}
	if x.CAFile == "" || x.CertFile == "" {
		return invalidf(path+"caFile", "an external etcd needs --external-etcd-ca-cert-path, --external-etcd-client-cert-path and --external-etcd-client-key-path")
	}
	return nil
}

func (c *Configuration) validateRest(help string) error {
	const server = "spec.components.karmadaAPIServer.networking."
	if c.WaitSeconds < 0 {
		return invalidf("spec.waitComponentReadyTimeout", "wait-component-ready-timeout must be greater than or equal to 0")
	}
	if problems := validation.IsDNS1123Label(c.APIServer.Namespace); len(problems) > 0 {
		return invalidf(server+"namespace", "namespace %q: %s", c.APIServer.Namespace, strings.Join(problems, ", "))
	}
	if problems := validation.IsDNS1123Subdomain(c.Host.Domain); len(problems) > 0 {
		return invalidf("spec.hostCluster.domain", "host-cluster-domain %q: %s", c.Host.Domain, strings.Join(problems, ", "))
	}
	if c.APIServer.NodePort < 1 || c.APIServer.NodePort > 65535 {
		return invalidf(server+"port", "port %d is not between 1 and 65535", c.APIServer.NodePort)
	}
	for _, p := range c.Parts() {
		if err := c.validatePart(p); err != nil {
			return err
		}
	}
	if c.DataPath == "" || c.PKIPath == "" {
		return invalidf("spec.karmadaDataPath", "karmada-data and karmada-pki must name directories. %s", help)
	}
	return nil
}

func (c *Configuration) validatePart(p Part) error {
	if p.Replicas < 1 && (p.Name != components.Etcd || !c.Etcd.External.Used()) {
		return invalidf(p.Path+".replicas", "%s-replicas %d must be at least 1", p.Flag, p.Replicas)
	}
	if !c.Compact || !slices.Contains(components.CompactParts(), p.Name) {
		return nil
	}
	for _, arg := range p.ExtraArgs {
		if slices.Contains(components.SharedFlags(), strings.TrimSuffix(arg.Name, "=")) {
			return invalidf(p.Path+".extraArgs", "%s-extra-args: with --compact, --%s is for all roles: give it in karmada-all-in-one-extra-args", p.Flag, arg.Name)
		}
	}
	return nil
}

func (p *Phases) validate(known []string) error {
	if len(p.Only) > 0 && len(p.Skip) > 0 {
		return errors.New("only and skip-phases cannot be used together")
	}
	for _, name := range slices.Concat(p.Only, p.Skip) {
		if !slices.Contains(known, name) {
			return fmt.Errorf("there is no phase %q; there are: %s", name, strings.Join(known, ", "))
		}
	}
	return nil
}

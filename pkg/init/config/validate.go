package config

import (
	"errors"
	"fmt"
	"maps"
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

// validate returns the first error in the options. program is what the user types, for the next step; phases are the
// names of all phases.
func (o *Options) validate(program string, phases []string) error {
	help := fmt.Sprintf("See '%s init --help'", program)
	for _, check := range []func() error{
		o.APIServer.validateAddress, o.Certificates.validate, o.Images.validate, func() error { return o.Etcd.validate(help) },
		func() error { return o.validateRest(help) }, func() error { return o.Phases.validate(phases) },
	} {
		if err := check(); err != nil {
			return err
		}
	}
	return nil
}

func (a *APIServerOptions) validateAddress() error {
	if a.AdvertiseAddress != "" && net.ParseIP(a.AdvertiseAddress) == nil {
		return fmt.Errorf("karmada apiserver advertise address is not valid: %q is not an IP address", a.AdvertiseAddress)
	}
	return nil
}

func (c *CertificateOptions) validate() error {
	for _, ip := range splitList(string(c.ExternalIP)) {
		if net.ParseIP(ip) == nil {
			return fmt.Errorf("cert-external-ip %q is not a valid IP address", ip)
		}
	}
	switch {
	case (c.CACertFile == "") != (c.CAKeyFile == ""):
		return errors.New("ca-cert-file and ca-key-file must be used together")
	case c.Validity.Duration <= 0:
		return fmt.Errorf("cert-validity-period %s must be positive", c.Validity.Duration)
	case c.KeyAlgorithm != KeyECDSA && c.KeyAlgorithm != KeyRSA:
		return fmt.Errorf("key-algorithm %q is not one of %s and %s", c.KeyAlgorithm, KeyECDSA, KeyRSA)
	}
	for _, name := range splitList(string(c.ExternalDNS)) {
		if problems := validation.IsDNS1123Subdomain(strings.TrimPrefix(name, "*.")); len(problems) > 0 {
			return fmt.Errorf("cert-external-dns %q is not a valid DNS name", name)
		}
	}
	return nil
}

func (i *ImageOptions) validate() error {
	switch corev1.PullPolicy(i.PullPolicy) {
	case corev1.PullAlways, corev1.PullIfNotPresent, corev1.PullNever:
	default:
		return fmt.Errorf("invalid image pull policy: %s", i.PullPolicy)
	}
	if code := strings.ToLower(i.MirrorCountry); code != "" && code != "cn" && code != "global" {
		return fmt.Errorf("kube-image-mirror-country %q is not one of cn and global", i.MirrorCountry)
	}
	return nil
}

func (e *EtcdOptions) validate(help string) error {
	if e.External.used() {
		return e.External.validate()
	}
	switch e.StorageMode {
	case components.StorageHostPath:
		if e.DataPath == "" {
			return errors.New("when etcd storage mode is hostPath, dataPath is not empty. " + help)
		}
		if !filepath.IsAbs(e.DataPath) {
			return fmt.Errorf("etcd-data %q is not an absolute path", e.DataPath)
		}
		if e.Replicas != 1 {
			return errors.New("for data security,when etcd storage mode is hostPath,etcd-replicas can only be 1")
		}
	case components.StoragePVC:
		if e.StorageClass == "" {
			return errors.New("when etcd storage mode is PVC, storageClassesName is not empty. " + help)
		}
		if _, err := resource.ParseQuantity(e.PVCSize); err != nil {
			return fmt.Errorf("etcd-pvc-size %q is not a size such as 5Gi", e.PVCSize)
		}
	case components.StorageEmptyDir, "":
	default:
		return fmt.Errorf("unsupported etcd-storage-mode %s. %s", e.StorageMode, help)
	}
	if e.NodeSelector != "" && e.StorageMode != components.StorageHostPath {
		return fmt.Errorf("etcd-node-selector-labels is for etcd-storage-mode hostPath, not %s", e.StorageMode)
	}
	if _, err := parseLabels(string(e.NodeSelector)); err != nil {
		return fmt.Errorf("the etcdNodeSelector format is incorrect: %w", err)
	}
	return nil
}

// used reports whether there is an external etcd.
func (x *ExternalEtcdOptions) used() bool { return x.Servers != "" }

func (x *ExternalEtcdOptions) validate() error {
	if (x.CertFile == "") != (x.KeyFile == "") {
		return errors.New("etcd client cert and key should be specified both or none")
	}
	for _, server := range splitList(string(x.Servers)) {
		u, err := url.Parse(server)
		if err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" {
			return fmt.Errorf("external-etcd-servers %q is not a URL such as https://etcd.example.org:2379", server)
		}
	}
	if x.CAFile == "" || x.CertFile == "" {
		return errors.New("an external etcd needs --external-etcd-ca-cert-path, --external-etcd-client-cert-path and --external-etcd-client-key-path")
	}
	return nil
}

func (o *Options) validateRest(help string) error {
	if o.WaitSeconds < 0 {
		return errors.New("wait-component-ready-timeout must be greater than or equal to 0")
	}
	if problems := validation.IsDNS1123Label(o.APIServer.Namespace); len(problems) > 0 {
		return fmt.Errorf("namespace %q: %s", o.APIServer.Namespace, strings.Join(problems, ", "))
	}
	if problems := validation.IsDNS1123Subdomain(o.Host.Domain); len(problems) > 0 {
		return fmt.Errorf("host-cluster-domain %q: %s", o.Host.Domain, strings.Join(problems, ", "))
	}
	if o.APIServer.NodePort < 1 || o.APIServer.NodePort > 65535 {
		return fmt.Errorf("port %d is not between 1 and 65535", o.APIServer.NodePort)
	}
	for _, c := range o.components() {
		if c.Replicas < 1 && (c.name != components.Etcd || !o.Etcd.External.used()) {
			return fmt.Errorf("%s-replicas %d must be at least 1", c.flag, c.Replicas)
		}
	}
	if o.DataPath == "" || o.PKIPath == "" {
		return fmt.Errorf("karmada-data and karmada-pki must name directories. %s", help)
	}
	return nil
}

func (p *PhaseOptions) validate(known []string) error {
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

// splitList splits at commas and drops what is empty.
func splitList(list string) []string {
	var out []string
	for item := range strings.SplitSeq(list, ",") {
		if item = strings.TrimSpace(item); item != "" {
			out = append(out, item)
		}
	}
	return out
}

// parseLabels reads "key=value,key=value".
func parseLabels(text string) (map[string]string, error) {
	out := map[string]string{}
	for _, item := range splitList(text) {
		key, value, ok := strings.Cut(item, "=")
		if !ok {
			return nil, fmt.Errorf("%q is not key=value", item)
		}
		if problems := validation.IsQualifiedName(key); len(problems) > 0 {
			return nil, fmt.Errorf("label %q: %s", key, strings.Join(problems, ", "))
		}
		if problems := validation.IsValidLabelValue(value); len(problems) > 0 {
			return nil, fmt.Errorf("value %q of label %q: %s", value, key, strings.Join(problems, ", "))
		}
		out[key] = value
	}
	return out, nil
}

// FormatLabels is the reverse of parseLabels; the keys are sorted.
func FormatLabels(labels map[string]string) string {
	var out []string
	for _, key := range slices.Sorted(maps.Keys(labels)) {
		out = append(out, key+"="+labels[key])
	}
	return strings.Join(out, ",")
}

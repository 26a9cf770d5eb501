package installer

import (
	"bytes"
	"crypto/x509"
	"fmt"
	"io/fs"
	"maps"
	"net"
	"os"
	"slices"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/karmada-toolkit/karmada/internal/pki"
	"github.com/karmada-toolkit/karmada/pkg/apis/names"
	"github.com/karmada-toolkit/karmada/pkg/init/components"
)

// Names in the administrator's kubeconfig.
const (
	kubeconfigName = "karmada-apiserver.config"
	adminContext   = "karmada-apiserver"
	adminUser      = "karmada-admin"
)

// masters is the group that may do anything.
const masters = "system:masters"

// credentials are the certificates of a control plane and the kubeconfigs made of
// them.
type credentials struct {
	// data are the files NAME.crt and NAME.key.
	data map[string][]byte
	// made are the names of files that were not there before or are new.
	made []string
	ca   pki.Pair
	// admin is the kubeconfig of the administrator, with the server as it is seen
	// from outside.
	admin []byte
	// internal are the kubeconfigs of the components.
	internal map[string][]byte
}

// authority names a certificate authority and what it signs.
type authority struct {
	name, commonName string
	leaves           []leaf
}

type leaf struct {
	name string
	pki.LeafConfig
}

// sites are the addresses that certificates are made for.
type sites struct {
	// addresses are the IP addresses of the API server.
	addresses []string
	// server is the URL of the API server for the administrator.
	server string
	ipv6   bool
}

// makeCredentials completes what there is, which it does not change, to all
// certificates of a control plane. What is there is kept, unless it is about to
// expire or lacks a name.
func (o *Options) makeCredentials(have map[string][]byte, s sites, now func() time.Time) (*credentials, error) {
	c := &credentials{data: maps.Clone(have), internal: map[string][]byte{}}
	if c.data == nil {
		c.data = map[string][]byte{}
	}
	if err := o.takeFiles(c.data); err != nil {
		return nil, err
	}
	store := pki.Store{Storage: present(c.data), Now: now}
	pairs := map[string]pki.Pair{}
	for _, a := range o.authorities(s) {
		ca, err := store.CA(a.name, pki.CAConfig{CommonName: a.commonName, Algorithm: o.algorithm()})
		if err != nil {
			return nil, fmt.Errorf("certificate generation failed. %w", err)
		}
		pairs[a.name] = ca
		for _, l := range a.leaves {
			l.Algorithm, l.Validity = o.algorithm(), o.Certificates.Validity
			if pairs[l.name], err = store.Leaf(l.name, l.LeafConfig, ca); err != nil {
				return nil, fmt.Errorf("certificate generation failed. %w", err)
			}
		}
	}
	if _, err := store.Key(components.ServiceAccountKey, o.algorithm()); err != nil {
		return nil, fmt.Errorf("certificate generation failed. %w", err)
	}
	o.fillExternal(c.data)
	for name, content := range c.data {
		if !bytes.Equal(have[name], content) {
			c.made = append(c.made, name)
		}
	}
	slices.Sort(c.made)
	c.ca = pairs["ca"]
	return c, c.makeKubeconfigs(o, pairs, s)
}

// present is a Storage in which empty entries do not exist.
type present map[string][]byte

func (p present) Read(name string) ([]byte, error) {
	if len(p[name]) == 0 {
		return nil, fs.ErrNotExist
	}
	return p[name], nil
}

func (p present) Write(name string, data []byte, _ bool) error {
	p[name] = data
	return nil
}

func (o *Options) algorithm() pki.Algorithm {
	if o.Certificates.KeyAlgorithm == KeyRSA {
		return pki.RSA
	}
	return pki.ECDSA
}

// takeFiles puts the authority and the client certificate for etcd that the user
// has into data.
func (o *Options) takeFiles(data map[string][]byte) error {
	c := &o.Certificates
	if c.CACertFile != "" {
		given, err := readPair("ca-cert-file", c.CACertFile, "ca-key-file", c.CAKeyFile)
		if err != nil {
			return err
		}
		if old := data["ca.crt"]; len(old) > 0 && !bytes.Equal(old, given.CertPEM()) {
			return fmt.Errorf("the control plane has another authority than ca-cert-file %q: an authority cannot be exchanged; run deinit first, or leave the flag out", c.CACertFile)
		}
		if data["ca.key"], err = given.KeyPEM(); err != nil {
			return err
		}
		data["ca.crt"] = given.CertPEM()
	}
	if !o.external() {
		return nil
	}
	x := &o.Etcd.External
	for name, path := range map[string]string{"etcd-ca.crt": x.CAFile, "etcd-client.crt": x.CertFile, "etcd-client.key": x.KeyFile} {
		content, err := os.ReadFile(path)
		if err != nil {
			return fmt.Errorf("read external etcd certificate failed, %s. %w", name, err)
		}
		data[name] = content
	}
	return nil
}

func readPair(certFlag, certPath, keyFlag, keyPath string) (pki.Pair, error) {
	certPEM, err := os.ReadFile(certPath)
	if err != nil {
		return pki.Pair{}, fmt.Errorf("certificate generation failed. reading %s: %w", certFlag, err)
	}
	keyPEM, err := os.ReadFile(keyPath)
	if err != nil {
		return pki.Pair{}, fmt.Errorf("certificate generation failed. reading %s: %w", keyFlag, err)
	}
	pair, err := pki.ParsePair(certPEM, keyPEM)
	if err == nil && !pair.Cert.IsCA {
		err = fmt.Errorf("the certificate is not an authority's")
	}
	if err != nil {
		return pki.Pair{}, fmt.Errorf("certificate generation failed. %s %q and %s %q: %w", certFlag, certPath, keyFlag, keyPath, err)
	}
	return pair, nil
}

// fillExternal leaves the keys that an external etcd does not need empty.
func (o *Options) fillExternal(data map[string][]byte) {
	if !o.external() {
		return
	}
	for _, name := range []string{"etcd-ca.key", "etcd-server.crt", "etcd-server.key"} {
		data[name] = []byte{}
	}
}

// authorities are the certificates of a control plane.
func (o *Options) authorities(s sites) []authority {
	all := o.serverNames(s)
	client := []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
	server := []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
	out := []authority{
		{"ca", "karmada", []leaf{
			{components.Admin, pki.LeafConfig{CommonName: "system:admin", Organization: []string{masters}, Usages: client}},
			// Addons of other tools serve and identify themselves to estimators with this
			// one. It has no rights in the control plane.
			{"karmada", pki.LeafConfig{CommonName: names.ComponentUser("addons"), Hosts: all}},
			{"apiserver", pki.LeafConfig{CommonName: "karmada-apiserver", Hosts: all}},
			{components.AggregatedAPIServer, pki.LeafConfig{CommonName: components.AggregatedAPIServer, Hosts: o.serviceNames(components.AggregatedAPIServer), Usages: server}},
			{components.Webhook, pki.LeafConfig{CommonName: components.Webhook, Hosts: o.serviceNames(components.Webhook), Usages: server}},
			{components.WebhookClient, pki.LeafConfig{CommonName: names.WebhookClientUser, Usages: client}},
			{components.EstimatorClient, pki.LeafConfig{CommonName: "karmada-scheduler-estimator-client", Usages: client}},
		}},
		{"front-proxy-ca", "front-proxy-ca", []leaf{{"front-proxy-client", pki.LeafConfig{CommonName: "front-proxy-client", Usages: client}}}},
	}
	for _, name := range components.KubeconfigUsers() {
		out[0].leaves = append(out[0].leaves, leaf{name + "-client", pki.LeafConfig{CommonName: components.UserOf(name), Usages: client}})
	}
	if !o.external() {
		loopback := []string{"localhost", "127.0.0.1"}
		if s.ipv6 {
			loopback = append(loopback, "::1")
		}
		out = append(out, authority{"etcd-ca", "etcd-ca", []leaf{
			{"etcd-server", pki.LeafConfig{CommonName: "karmada-etcd-server", Hosts: slices.Concat(loopback, components.EtcdHosts(o.Namespace, o.Domain, o.Etcd.Replicas))}},
			{"etcd-client", pki.LeafConfig{CommonName: "karmada-etcd-client", Usages: client}},
		}})
	}
	return out
}

// serverNames are the names and addresses of the API server, and, for tools that
// use its certificate for the other servers, theirs.
func (o *Options) serverNames(s sites) []string {
	hosts := []string{
		"localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc",
		components.APIServer, components.Webhook, components.AggregatedAPIServer,
		"*." + o.Namespace + ".svc." + o.Domain, "*." + o.Namespace + ".svc",
	}
	for _, service := range []string{components.APIServer, components.Webhook, components.AggregatedAPIServer} {
		hosts = append(hosts, service+"."+o.Namespace+".svc."+o.Domain)
	}
	hosts = append(hosts, components.Webhook+"."+o.Namespace+".svc")
	hosts = append(hosts, splitList(o.Certificates.ExternalDNS)...)
	hosts = append(hosts, splitList(o.Certificates.ExternalIP)...)
	hosts = append(hosts, "127.0.0.1")
	if s.ipv6 {
		hosts = append(hosts, "::1")
	}
	return append(hosts, s.addresses...)
}

// serviceNames are the names of a Service of the control plane.
func (o *Options) serviceNames(service string) []string {
	svc := service + "." + o.Namespace + ".svc"
	return []string{"localhost", service, service + "." + o.Namespace, svc, svc + "." + o.Domain}
}

func (c *credentials) makeKubeconfigs(o *Options, pairs map[string]pki.Pair, s sites) error {
	ca := c.data["ca.crt"]
	admin, err := pki.NewKubeconfig(pki.KubeconfigEntry{Context: adminContext, User: adminUser, Server: s.server, CA: ca, Client: pairs[components.Admin]})
	if err != nil {
		return fmt.Errorf("create karmada kubeconfig failed. %w", err)
	}
	if c.admin, err = clientcmd.Write(*admin); err != nil {
		return fmt.Errorf("create karmada kubeconfig failed. %w", err)
	}
	internal := (&components.Config{Namespace: o.Namespace, Domain: o.Domain}).InternalServer()
	for _, name := range components.KubeconfigUsers() {
		cfg, err := pki.NewKubeconfig(pki.KubeconfigEntry{Context: adminUser, Server: internal, CA: ca, Client: pairs[name+"-client"]})
		if err != nil {
			return fmt.Errorf("create karmada kubeconfig failed. %w", err)
		}
		if c.internal[name], err = clientcmd.Write(*cfg); err != nil {
			return fmt.Errorf("create karmada kubeconfig failed. %w", err)
		}
	}
	return nil
}

// restConfig reaches the control plane as its administrator.
func (c *credentials) restConfig() (*rest.Config, error) {
	cfg, err := clientcmd.RESTConfigFromKubeConfig(c.admin)
	if err != nil {
		return nil, fmt.Errorf("create karmada kubeconfig failed. %w", err)
	}
	cfg.QPS, cfg.Burst = -1, 0
	return cfg, nil
}

// serverURL is the URL of an API server at an address.
func serverURL(address string, port int32) string {
	return "https://" + net.JoinHostPort(address, fmt.Sprint(port))
}

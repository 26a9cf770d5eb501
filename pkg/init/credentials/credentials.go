// Package credentials makes the certificates and kubeconfigs of a control plane, and keeps them in local files.
package credentials

import (
	"bytes"
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/karmada-toolkit/karmada/internal/limit"
	"github.com/karmada-toolkit/karmada/internal/pki"
	"github.com/karmada-toolkit/karmada/pkg/apis/names"
	"github.com/karmada-toolkit/karmada/pkg/init/components"
	"github.com/karmada-toolkit/karmada/pkg/init/config"
	"github.com/karmada-toolkit/karmada/pkg/init/hostcluster"
)

// KubeconfigName is the file name of the administrator's kubeconfig.
const KubeconfigName = "karmada-apiserver.config"

// Names in the administrator's kubeconfig.
const (
	adminContext = "karmada-apiserver"
	adminUser    = "karmada-admin"
)

const (
	// masters is the group that may do anything.
	masters = "system:masters"
	// sharedPair is the name of the pair that addons have.
	sharedPair = "karmada"
)

// Credentials are the certificates of a control plane and the kubeconfigs made of them.
type Credentials struct {
	// Data are the files NAME.crt and NAME.key. That of an authority may be a bundle, whose first certificate signs.
	Data map[string][]byte
	// Made are the names of files that were not there before or are new.
	Made []string
	// Admin is the kubeconfig of the administrator, with the server as it is seen from outside.
	Admin []byte
	// Internal are the kubeconfigs of the components.
	Internal map[string][]byte

	ca pki.Pair
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

// Make completes what there is, which it does not change, to all
// certificates of a control plane. What is there is kept, unless it is about to
// expire or lacks a name.
func Make(r *config.Configuration, have map[string][]byte, a hostcluster.Addresses, now func() time.Time) (*Credentials, error) {
	c := &Credentials{Data: maps.Clone(have), Internal: map[string][]byte{}}
	if c.Data == nil {
		c.Data = map[string][]byte{}
	}
	if err := takeFiles(r, c.Data); err != nil {
		return nil, err
	}
	shared := Shared(c.Data)
	if shared {
		c.Data[components.ServiceAccountKey+".key"] = c.Data[sharedPair+".key"]
	}
	store := pki.Store{Storage: Present(c.Data), Now: now, Early: r.Certificates.Early}
	pairs := map[string]pki.Pair{}
	algorithm := r.Certificates.Algorithm()
	for _, signer := range authorities(r, a) {
		ca, err := store.CA(signer.name, pki.CAConfig{CommonName: signer.commonName, Algorithm: algorithm})
		if err != nil {
			return nil, fmt.Errorf("certificate generation failed. %w", err)
		}
		pairs[signer.name] = ca
		for _, l := range signer.leaves {
			if shared && l.name == sharedPair {
				continue
			}
			l.Algorithm, l.Validity = algorithm, r.Certificates.Validity.Duration
			l.Hosts = append(l.Hosts, r.Certificates.Names[l.name]...)
			if pairs[l.name], err = store.Leaf(l.name, l.LeafConfig, ca); err != nil {
				return nil, fmt.Errorf("certificate generation failed. %w", err)
			}
		}
	}
	if _, err := store.Key(components.ServiceAccountKey, algorithm); err != nil {
		return nil, fmt.Errorf("certificate generation failed. %w", err)
	}
	c.ca = pairs["ca"]
	c.Data[components.SigningCA] = c.ca.CertPEM()
	if r.Etcd.External.Used() {
		fillExternal(c.Data)
	}
	for name, content := range c.Data {
		if !bytes.Equal(have[name], content) {
			c.Made = append(c.Made, name)
		}
	}
	slices.Sort(c.Made)
	return c, c.makeKubeconfigs(r, pairs, a)
}

// Shared reports whether certificates are those of an installation of Karmada's, in which one pair has all rights, and its key signs the
// tokens of service accounts. It is kept: servers that stay as they are have it, and tokens stay valid.
func Shared(have map[string][]byte) bool {
	pair, err := pki.ParsePair(have[sharedPair+".crt"], have[sharedPair+".key"])
	key := have[components.ServiceAccountKey+".key"]
	return err == nil && slices.Contains(pair.Cert.Subject.Organization, masters) && (len(key) == 0 || bytes.Equal(key, have[sharedPair+".key"]))
}

// Present is a pki.Storage in which empty entries do not exist.
type Present map[string][]byte

// Read implements pki.Storage.
func (p Present) Read(name string) ([]byte, error) {
	if len(p[name]) == 0 {
		return nil, fs.ErrNotExist
	}
	return p[name], nil
}

// Write implements pki.Storage.
func (p Present) Write(name string, data []byte, _ bool) error {
	p[name] = data
	return nil
}

// takeFiles puts the authority and the client certificate for etcd that the user
// has into data.
func takeFiles(r *config.Configuration, data map[string][]byte) error {
	if err := takeAuthority(&r.Certificates, data); err != nil {
		return err
	}
	x := r.Etcd.External
	if !x.Used() {
		return nil
	}
	if x.Files != nil {
		maps.Copy(data, x.Files)
		return nil
	}
	for name, path := range map[string]string{"etcd-ca.crt": x.CAFile, "etcd-client.crt": x.CertFile, "etcd-client.key": x.KeyFile} {
		content, err := limit.Read(path, nil, limit.MaxFile)
		if err != nil {
			return fmt.Errorf("read external etcd certificate failed, %s. %w", name, err)
		}
		data[name] = content
	}
	return nil
}

// takeAuthority puts the authority that the user has into data.
func takeAuthority(c *config.Certificates, data map[string][]byte) (err error) {
	var given pki.Pair
	switch {
	case c.CA != nil:
		given, err = parseAuthority(c.CA.Cert, c.CA.Key)
	case c.CACertFile != "":
		given, err = ReadPair("ca-cert-file", c.CACertFile, "ca-key-file", c.CAKeyFile)
	default:
		return nil
	}
	if err != nil {
		return err
	}
	old := data["ca.crt"]
	if len(old) > 0 && !pki.SameSigner(old, given.CertPEM()) {
		if c.CA != nil {
			return errors.New("the control plane has another authority than the one that is given: run certs renew --ca with its files, or give the authority that it has")
		}
		return fmt.Errorf("the control plane has another authority than ca-cert-file %q: init cannot exchange an authority; run certs renew --ca with these files, or leave the flag out", c.CACertFile)
	}
	if data["ca.key"], err = given.KeyPEM(); err != nil {
		return err
	}
	if len(old) == 0 { // what is there may be a bundle
		data["ca.crt"] = given.CertPEM()
	}
	return nil
}

// parseAuthority parses an authority, PEM.
func parseAuthority(cert, key []byte) (pki.Pair, error) {
	pair, err := pki.ParsePair(cert, key)
	if err == nil && !pair.Cert.IsCA {
		err = errors.New("the certificate is not an authority's")
	}
	return pair, err
}

// ReadPair reads an authority in files, which flags name.
func ReadPair(certFlag, certPath, keyFlag, keyPath string) (pki.Pair, error) {
	certPEM, err := limit.Read(certPath, nil, limit.MaxFile)
	if err != nil {
		return pki.Pair{}, fmt.Errorf("certificate generation failed. reading %s: %w", certFlag, err)
	}
	keyPEM, err := limit.Read(keyPath, nil, limit.MaxFile)
	if err != nil {
		return pki.Pair{}, fmt.Errorf("certificate generation failed. reading %s: %w", keyFlag, err)
	}
	pair, err := parseAuthority(certPEM, keyPEM)
	if err != nil {
		return pki.Pair{}, fmt.Errorf("certificate generation failed. %s %q and %s %q: %w", certFlag, certPath, keyFlag, keyPath, err)
	}
	return pair, nil
}

// fillExternal leaves the keys that an external etcd does not need empty.
func fillExternal(data map[string][]byte) {
	for _, name := range []string{"etcd-ca.key", "etcd-server.crt", "etcd-server.key"} {
		data[name] = []byte{}
	}
}

// authorities are the certificates of a control plane.
func authorities(r *config.Configuration, a hostcluster.Addresses) []authority {
	all := serverNames(r, a)
	client := []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
	server := []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
	out := []authority{
		{"ca", "karmada", []leaf{
			{components.Admin, pki.LeafConfig{CommonName: "system:admin", Organization: []string{masters}, Usages: client}},
			// Addons of other tools serve and identify themselves to estimators with this
			// one. It has no rights in the control plane.
			{sharedPair, pki.LeafConfig{CommonName: names.ComponentUser("addons"), Hosts: all}},
			{"apiserver", pki.LeafConfig{CommonName: "karmada-apiserver", Hosts: all}},
			{components.AggregatedAPIServer, pki.LeafConfig{CommonName: components.AggregatedAPIServer, Hosts: apiNames(r, components.AggregatedAPIServer), Usages: server}},
			{components.Webhook, pki.LeafConfig{CommonName: components.Webhook, Hosts: ServiceNames(r.APIServer.Namespace, r.Host.Domain, naming(r).Name(components.Webhook)), Usages: server}},
			{components.WebhookClient, pki.LeafConfig{CommonName: names.WebhookClientUser, Usages: client}},
			{components.EstimatorClient, pki.LeafConfig{CommonName: components.EstimatorClientName, Usages: client}},
		}},
		{"front-proxy-ca", "front-proxy-ca", []leaf{{"front-proxy-client", pki.LeafConfig{CommonName: "front-proxy-client", Usages: client}}}},
	}
	for _, name := range naming(r).KubeconfigUsers() {
		out[0].leaves = append(out[0].leaves, leaf{name + "-client", pki.LeafConfig{CommonName: components.UserOf(name), Usages: client}})
	}
	for _, name := range r.Certificates.Servers {
		out[0].leaves = append(out[0].leaves, leaf{name, pki.LeafConfig{CommonName: name, Hosts: apiNames(r, name), Usages: server}})
	}
	if !r.Etcd.External.Used() {
		loopback := []string{"localhost", "127.0.0.1"}
		if a.IPv6 {
			loopback = append(loopback, "::1")
		}
		out = append(out, authority{"etcd-ca", "etcd-ca", []leaf{
			{"etcd-server", pki.LeafConfig{CommonName: "karmada-etcd-server", Hosts: slices.Concat(loopback, naming(r).EtcdHosts(r.Etcd.Replicas))}},
			{"etcd-client", pki.LeafConfig{CommonName: "karmada-etcd-client", Usages: client}},
		}})
	}
	return out
}

// naming knows the names of the objects in the host cluster.
func naming(r *config.Configuration) *components.Config {
	return &components.Config{Namespace: r.APIServer.Namespace, Domain: r.Host.Domain, Names: r.Names, SystemNamespace: r.SystemNamespace, Compact: r.Compact}
}

// serverNames are the names and addresses of the API server, and, for tools that
// use its certificate for the other servers, theirs.
func serverNames(r *config.Configuration, a hostcluster.Addresses) []string {
	c := naming(r)
	namespace, domain := c.Namespace, c.Domain
	apiServer, webhook, aggregated := c.Name(components.APIServer), c.Name(components.Webhook), c.Name(components.AggregatedAPIServer)
	hosts := []string{
		"localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc", apiServer, webhook, aggregated,
		"*." + namespace + ".svc." + domain, "*." + namespace + ".svc",
	}
	for _, service := range []string{apiServer, webhook, aggregated} {
		hosts = append(hosts, service+"."+namespace+".svc."+domain)
	}
	hosts = append(hosts, webhook+"."+namespace+".svc")
	hosts = append(hosts, r.Certificates.ExternalDNS...)
	hosts = append(hosts, r.Certificates.ExternalIP...)
	hosts = append(hosts, "127.0.0.1")
	if a.IPv6 {
		hosts = append(hosts, "::1")
	}
	return append(hosts, a.IPs...)
}

// apiNames are the names of a server of APIs: those of its Service, and of that by which the API server of the control
// plane knows it.
func apiNames(r *config.Configuration, workload string) []string {
	c := naming(r)
	return append(ServiceNames(r.APIServer.Namespace, r.Host.Domain, c.Name(workload)), workload+"."+c.System()+".svc")
}

// ServiceNames returns the names of a Service in the DNS domain of the host cluster.
func ServiceNames(namespace, domain, service string) []string {
	svc := service + "." + namespace + ".svc"
	return []string{"localhost", service, service + "." + namespace, svc, svc + "." + domain}
}

func (c *Credentials) makeKubeconfigs(r *config.Configuration, pairs map[string]pki.Pair, a hostcluster.Addresses) error {
	ca := c.Data["ca.crt"]
	admin, err := pki.NewKubeconfig(pki.KubeconfigEntry{Context: adminContext, User: adminUser, Server: a.Server, CA: ca, Client: pairs[components.Admin]})
	if err != nil {
		return fmt.Errorf("create karmada kubeconfig failed. %w", err)
	}
	if c.Admin, err = clientcmd.Write(*admin); err != nil {
		return fmt.Errorf("create karmada kubeconfig failed. %w", err)
	}
	internal := naming(r).InternalServer()
	for _, name := range naming(r).KubeconfigUsers() {
		cfg, err := pki.NewKubeconfig(pki.KubeconfigEntry{Context: adminUser, Server: internal, CA: ca, Client: pairs[name+"-client"]})
		if err != nil {
			return fmt.Errorf("create karmada kubeconfig failed. %w", err)
		}
		if c.Internal[name], err = clientcmd.Write(*cfg); err != nil {
			return fmt.Errorf("create karmada kubeconfig failed. %w", err)
		}
	}
	return nil
}

// RESTConfig reaches the control plane as its administrator.
func (c *Credentials) RESTConfig() (*rest.Config, error) {
	cfg, err := clientcmd.RESTConfigFromKubeConfig(c.Admin)
	if err != nil {
		return nil, fmt.Errorf("create karmada kubeconfig failed. %w", err)
	}
	cfg.QPS, cfg.Burst = -1, 0
	return cfg, nil
}

// CAHash is how a cluster that registers recognises the authority of the control plane.
func (c *Credentials) CAHash() string {
	sum := sha256.Sum256(c.ca.Cert.RawSubjectPublicKeyInfo)
	return "sha256:" + hex.EncodeToString(sum[:])
}

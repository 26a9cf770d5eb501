// Package release does for a Helm release what its templates cannot: it makes and renews the certificates, and writes the
// static resources into the control plane.
package release

import (
	"bytes"
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/karmada-toolkit/karmada/internal/pki"
	"github.com/karmada-toolkit/karmada/pkg/init/components"
	"github.com/karmada-toolkit/karmada/pkg/init/config"
	"github.com/karmada-toolkit/karmada/pkg/init/credentials"
	"github.com/karmada-toolkit/karmada/pkg/init/hostcluster"
	"github.com/karmada-toolkit/karmada/pkg/init/write"
)

const (
	manager = "karmada-release"
	// renewedAnnotation has Renewed, on the Secret with all certificates.
	renewedAnnotation = "karmada.io/renewed"
	// resourcePolicy is an annotation of Helm: "keep" is an object that Helm does not delete.
	resourcePolicy = "helm.sh/resource-policy"
	// sharedKey is the key of the pair that all servers and clients of Karmada's chart have.
	sharedKey = "karmada.key"
)

// Release is a Helm release of a control plane.
type Release struct {
	// Name of the release; Fixed begins the names of what the release "karmada" has without its name.
	Name, Fixed       string
	Namespace, Domain string
	// SystemNamespace of the control plane in its own API.
	SystemNamespace string
	// Compact reports whether one workload runs the roles of Karmada.
	Compact bool
}

// naming returns what knows the names of the objects of the release.
func (r *Release) naming() *components.Config {
	return &components.Config{Namespace: r.Namespace, Domain: r.Domain, Names: components.ReleaseNames(r.Name, r.Fixed), SystemNamespace: r.SystemNamespace, Compact: r.Compact}
}

// Certificates are the settings of the certificates of a release.
type Certificates struct {
	Release
	// Hosts are further names and addresses of the API server.
	Hosts    []string
	Validity time.Duration
	// EtcdReplicas is 0 if etcd exists already.
	EtcdReplicas int32
	// Servers are workloads beside the usual ones that have a certificate.
	Servers []string
	// Given is a directory with certificates of the user: an authority in ca.crt and ca.key, the API server's in
	// apiserver.crt and apiserver.key, the front proxy's in front-proxy-ca.crt, front-proxy-client.crt and
	// front-proxy-client.key, and those for an etcd that exists in etcd-ca.crt, etcd-client.crt and etcd-client.key. What
	// is not there is made.
	Given string
	// Renewed is when certificates were renewed last, in seconds since 1970; empty if they never were. The templates have it
	// in the pods, which are replaced when it changes.
	Renewed string
}

// Write fills the Secrets of the release, or renews what is about to end or lacks a name. The Job of the static resources,
// which cannot be changed, is deleted.
func (s *Certificates) Write(ctx context.Context, host client.Client, now func() time.Time) error {
	have, err := s.present(ctx, host)
	if err != nil {
		return err
	}
	creds, err := s.make(have, now)
	if err != nil {
		return err
	}
	objects, err := s.secrets(creds)
	if err != nil {
		return err
	}
	// First the Secret from which another attempt goes on.
	for _, batch := range [][]client.Object{objects[:1], objects[1:]} {
		if _, err := write.Apply(ctx, host, batch); err != nil {
			return fmt.Errorf("writing the certificates: %w", err)
		}
	}
	job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: s.Name + "-static-resource"}}
	if err := host.Delete(ctx, job, client.PropagationPolicy(metav1.DeletePropagationBackground)); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("deleting the Job of the last release: %w", err)
	}
	return nil
}

// present returns the certificates that the release has.
func (s *Certificates) present(ctx context.Context, host client.Client) (map[string][]byte, error) {
	secret := &corev1.Secret{}
	key := client.ObjectKey{Namespace: s.Namespace, Name: s.naming().Name(components.CertSecret)}
	err := host.Get(ctx, key, secret)
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("reading the certificates: %w", err)
	case secret.Labels[components.ManagedByLabel] != manager && len(secret.Data[sharedKey]) > 0 && len(secret.Data["ca.key"]) == 0:
		return former(secret)
	case secret.Labels[components.InstanceLabel] != s.Name || secret.Labels[components.ManagedByLabel] != manager:
		return nil, fmt.Errorf("the Secret %s is not of this release, so another control plane is or was installed here: choose another namespace or another name for the release", key)
	}
	have := secret.Data
	maps.DeleteFunc(have, func(name string, _ []byte) bool { return strings.HasPrefix(name, "server-ca.") })
	return have, nil
}

// former returns what there is in the Secret of a release of Karmada's chart: one authority, for etcd too, and one pair for all servers and
// clients, with whose key service account tokens are signed. What was issued by them goes on to be trusted.
func former(secret *corev1.Secret) (map[string][]byte, error) {
	have := map[string][]byte{}
	for _, name := range []string{"karmada.crt", sharedKey, "front-proxy-ca.crt", "front-proxy-client.crt", "front-proxy-client.key"} {
		have[name] = secret.Data[name]
	}
	for _, authority := range []string{"ca", "etcd-ca"} {
		for _, suffix := range []string{".crt", ".key"} {
			content := secret.Data["server-ca"+suffix]
			if len(content) == 0 {
				return nil, fmt.Errorf("the Secret %s of Karmada's chart has no server-ca%s, so nothing can be signed by its authority: put it there, and repeat the upgrade", client.ObjectKeyFromObject(secret), suffix)
			}
			have[authority+suffix] = content
		}
	}
	return have, nil
}

// formerProxy reports whether the front proxy has certificates of Karmada's chart, whose authority has no key. They stay until they end soon,
// since servers trust another authority only when they have read it.
func formerProxy(have map[string][]byte, now time.Time) bool {
	pair, err := pki.ParsePair(have["front-proxy-client.crt"], have["front-proxy-client.key"])
	return credentials.Shared(have) && len(have["front-proxy-ca.key"]) == 0 && err == nil && now.Add(components.EarlyRenewal).Before(pair.Cert.NotAfter)
}

// request is what the certificates are made for.
func (s *Certificates) configuration() *config.Configuration {
	r := config.New()
	r.Compact = s.Compact
	r.APIServer.Namespace, r.Host.Domain, r.SystemNamespace, r.Names = s.Namespace, s.Domain, s.SystemNamespace, components.ReleaseNames(s.Name, s.Fixed)
	r.Certificates = config.Certificates{ExternalDNS: s.Hosts, Validity: metav1.Duration{Duration: s.Validity}, Servers: s.Servers, Early: components.EarlyRenewal}
	if r.Etcd.Replicas = s.EtcdReplicas; s.EtcdReplicas == 0 {
		r.Etcd.External = config.ExternalEtcd{
			Servers: config.List{"https://" + components.Etcd}, // certificates do not depend on it
			CAFile:  filepath.Join(s.Given, "etcd-ca.crt"), CertFile: filepath.Join(s.Given, "etcd-client.crt"), KeyFile: filepath.Join(s.Given, "etcd-client.key"),
		}
	}
	return &r
}

// start returns what there is to begin with: what is in the cluster, and over it what the user gave. A front proxy's
// authority has a key only if it was made here; without one, nothing can be made of it.
func start(have, given map[string][]byte) map[string][]byte {
	out := maps.Clone(have)
	if out == nil {
		out = map[string][]byte{}
	}
	maps.Copy(out, given)
	if ca := have["ca.crt"]; pki.SameSigner(ca, given["ca.crt"]) { // it may be a bundle
		out["ca.crt"] = ca
	}
	if len(given["front-proxy-ca.crt"]) > 0 || len(out["front-proxy-ca.key"]) == 0 {
		for _, name := range frontProxyFiles() {
			delete(out, name)
		}
	}
	return out
}

// make completes the certificates that there are.
func (s *Certificates) make(have map[string][]byte, now func() time.Time) (*credentials.Credentials, error) {
	given, err := s.given()
	if err != nil {
		return nil, err
	}
	if err := s.verify(given, now()); err != nil {
		return nil, err
	}
	if old, ca := have["ca.crt"], given["ca.crt"]; len(old) > 0 && len(ca) > 0 && !pki.SameSigner(old, ca) {
		return nil, errors.New("certs.custom.caCrt is another authority than that of the control plane, which an upgrade cannot exchange: run karmadactl certs renew --ca with it first, or keep the one in use")
	}
	creds, err := credentials.Make(s.configuration(), start(have, given), hostcluster.Addresses{Server: s.naming().InternalServer()}, now)
	if err != nil {
		return nil, err
	}
	if got := given["apiserver.crt"]; got != nil && !bytes.Equal(creds.Data["apiserver.crt"], got) {
		return nil, errors.New("certs.custom.crt cannot be used for the API server: it was not signed by certs.custom.caCrt, ends soon, or lacks one of the names in certs.auto.hosts and those of the Services")
	}
	proxy := given
	if len(proxy["front-proxy-ca.crt"]) == 0 && formerProxy(have, now()) {
		proxy = have
	}
	if len(proxy["front-proxy-ca.crt"]) > 0 {
		for _, name := range frontProxyFiles() {
			delete(creds.Data, name)
			if content := proxy[name]; content != nil {
				creds.Data[name] = content
			}
		}
	}
	return creds, nil
}

func frontProxyFiles() []string {
	return []string{"front-proxy-ca.crt", "front-proxy-ca.key", "front-proxy-client.crt", "front-proxy-client.key"}
}

// given reads the certificates of the user.
func (s *Certificates) given() (map[string][]byte, error) {
	out := map[string][]byte{}
	if s.Given == "" {
		return out, nil
	}
	for _, name := range []string{"ca", "apiserver", "front-proxy-ca", "front-proxy-client"} {
		for _, suffix := range []string{".crt", ".key"} {
			content, err := os.ReadFile(filepath.Join(s.Given, name+suffix))
			if err == nil && len(bytes.TrimSpace(content)) > 0 {
				out[name+suffix] = content
			} else if err != nil && !os.IsNotExist(err) {
				return nil, fmt.Errorf("reading the certificates that were given: %w", err)
			}
		}
	}
	return out, nil
}

// verify checks the certificates of the user.
func (s *Certificates) verify(given map[string][]byte, now time.Time) error {
	values := map[string]string{"ca": "caCrt and certs.custom.caKey", "apiserver": "crt and certs.custom.key", "front-proxy-client": "frontProxyCrt and certs.custom.frontProxyKey"}
	for _, name := range slices.Sorted(maps.Keys(values)) {
		if given[name+".crt"] == nil && given[name+".key"] == nil {
			continue
		}
		pair, err := pki.ParsePair(given[name+".crt"], given[name+".key"])
		switch {
		case err == nil && !pair.Matches():
			err = errors.New("the key is not that of the certificate")
		case err == nil && now.After(pair.Cert.NotAfter):
			err = fmt.Errorf("the certificate ended at %s", pair.Cert.NotAfter.Format(time.RFC3339))
		case err == nil && name == "ca":
			err = pki.VerifyCA(pair, now)
		}
		if err != nil {
			return fmt.Errorf("certs.custom.%s: %w", values[name], err)
		}
	}
	if given["front-proxy-ca.crt"] == nil {
		return nil
	}
	roots := x509.NewCertPool()
	client, err := pki.ParsePair(given["front-proxy-client.crt"], given["front-proxy-client.key"])
	if err != nil || !roots.AppendCertsFromPEM(given["front-proxy-ca.crt"]) {
		return errors.New("certs.custom.frontProxyCaCrt needs frontProxyCrt and frontProxyKey, all PEM")
	}
	_, err = client.Cert.Verify(x509.VerifyOptions{Roots: roots, CurrentTime: now, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}})
	if err != nil {
		return fmt.Errorf("certs.custom.frontProxyCrt: %w", err)
	}
	return nil
}

// secrets returns the Secrets of the release, first that with all certificates.
func (s *Certificates) secrets(creds *credentials.Credentials) ([]client.Object, error) {
	c := s.naming()
	c.Certificates, c.Kubeconfigs = creds.Data, creds.Internal
	c.Labels = map[string]string{components.InstanceLabel: s.Name, components.ManagedByLabel: manager}
	objects, err := components.Secrets(c)
	if err != nil {
		return nil, err
	}
	for _, workload := range s.Servers {
		objects = append(objects, components.AddonSecret(c, workload))
	}
	admin, err := s.kubeconfig(creds)
	if err != nil {
		return nil, err
	}
	objects = append(objects, &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: s.Name + "-kubeconfig", Labels: c.Labels},
		Data:       map[string][]byte{"kubeconfig": admin},
	})
	for i, o := range objects {
		secret := o.(*corev1.Secret)
		if credentials.Shared(creds.Data) {
			// Some are in the manifest of the release of Karmada's chart, and would be deleted with it.
			secret.Annotations = map[string]string{resourcePolicy: "keep"}
		}
		if secret.Name == c.Name(components.CertSecret) {
			metav1.SetMetaDataAnnotation(&secret.ObjectMeta, components.RenewAfterAnnotation, components.RenewAfter(creds.Data))
			metav1.SetMetaDataAnnotation(&secret.ObjectMeta, renewedAnnotation, s.Renewed)
			// Further names of the authority, which tools for the chart read.
			secret.Data = maps.Clone(secret.Data)
			secret.Data["server-ca.crt"], secret.Data["server-ca.key"] = creds.Data["ca.crt"], creds.Data["ca.key"]
			objects[0], objects[i] = objects[i], objects[0]
		}
	}
	return objects, nil
}

// kubeconfig returns the administrator's, in which everything has the name of the API server.
func (s *Certificates) kubeconfig(creds *credentials.Credentials) ([]byte, error) {
	if len(creds.Data) == 0 {
		return nil, nil
	}
	pair, err := pki.ParsePair(creds.Data[components.Admin+".crt"], creds.Data[components.Admin+".key"])
	if err != nil {
		return nil, fmt.Errorf("reading the administrator's certificate: %w", err)
	}
	cfg, err := pki.NewKubeconfig(pki.KubeconfigEntry{
		Context: s.naming().Name(components.APIServer), Server: s.naming().InternalServer(), CA: creds.Data["ca.crt"], Client: pair,
	})
	if err != nil {
		return nil, fmt.Errorf("making the administrator's kubeconfig: %w", err)
	}
	return clientcmd.Write(*cfg)
}

// Remove deletes the Secrets of a release that was uninstalled, also those of servers that it had before.
func (s *Certificates) Remove(ctx context.Context, host client.Client) error {
	all := *s
	all.Compact = true // it was, in another revision
	all.Servers = append(slices.Clone(s.Servers), components.MetricsAdapter, components.Search)
	objects, err := all.secrets(&credentials.Credentials{Data: map[string][]byte{}})
	if err != nil {
		return err
	}
	state := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: s.naming().Name(components.RenewalSecret)}}
	for _, o := range append(objects, state) {
		if err := host.Delete(ctx, o); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("deleting Secret %s: %w", o.GetName(), err)
		}
	}
	return nil
}

package installer

import (
	"bytes"
	"crypto/x509"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/karmada-toolkit/karmada/internal/pki"
	"github.com/karmada-toolkit/karmada/pkg/init/components"
)

var site = sites{addresses: []string{"10.0.0.1", "fd00::1"}, server: "https://10.0.0.1:32443"}

func issue(t *testing.T, o Options, have map[string][]byte) *credentials {
	t.Helper()
	c, err := o.makeCredentials(have, site, time.Now)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func cert(t *testing.T, c *credentials, name string) *x509.Certificate {
	t.Helper()
	got, err := pki.ParseCert(c.data[name+".crt"])
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return got
}

func TestMakeCredentials_IsTheContract(t *testing.T) {
	o := NewOptions()
	o.Certificates.ExternalDNS, o.Certificates.ExternalIP = "k.example.org,", "1.2.3.4"
	c := issue(t, o, nil)
	for _, tc := range []struct{ name, cn, org, ca string }{
		{"ca", "karmada", "", "ca"},
		{"admin", "system:admin", "system:masters", "ca"},
		{"karmada", "system:karmada:addons", "", "ca"},
		{"apiserver", "karmada-apiserver", "", "ca"},
		{"front-proxy-ca", "front-proxy-ca", "", "front-proxy-ca"},
		{"front-proxy-client", "front-proxy-client", "", "front-proxy-ca"},
		{"etcd-ca", "etcd-ca", "", "etcd-ca"},
		{"etcd-server", "karmada-etcd-server", "", "etcd-ca"},
		{"etcd-client", "karmada-etcd-client", "", "etcd-ca"},
		{"kube-controller-manager-client", "system:kube-controller-manager", "", "ca"},
		{"karmada-scheduler-client", "system:karmada:scheduler", "", "ca"},
		{"karmada-search-client", "system:karmada:search", "", "ca"},
		{"apiserver-webhook-client", "system:karmada:apiserver-webhook-client", "", "ca"},
	} {
		got := cert(t, c, tc.name)
		if got.Subject.CommonName != tc.cn || strings.Join(got.Subject.Organization, ",") != tc.org {
			t.Errorf("%s is %s", tc.name, got.Subject)
		}
		if err := got.CheckSignatureFrom(cert(t, c, tc.ca)); err != nil {
			t.Errorf("%s: %v", tc.name, err)
		}
	}
	for _, host := range []string{
		"localhost", "kubernetes", "kubernetes.default.svc", "karmada-apiserver.karmada-system.svc.cluster.local", "x.karmada-system.svc",
		"karmada-webhook.karmada-system.svc", "k.example.org", "127.0.0.1", "1.2.3.4", "10.0.0.1", "fd00::1",
	} {
		if err := cert(t, c, "apiserver").VerifyHostname(host); err != nil {
			t.Errorf("apiserver: %v", err)
		}
	}
	if err := cert(t, c, "etcd-server").VerifyHostname("etcd-0.etcd.karmada-system.svc.cluster.local"); err != nil {
		t.Error(err)
	}
	for _, name := range []string{components.Webhook, components.AggregatedAPIServer} {
		if err := cert(t, c, name).VerifyHostname(name + ".karmada-system.svc"); err != nil {
			t.Error(err)
		}
	}
}

func TestMakeCredentials_Kubeconfigs(t *testing.T) {
	c := issue(t, NewOptions(), nil)
	admin, err := clientcmd.Load(c.admin)
	if err != nil {
		t.Fatal(err)
	}
	ctx := admin.Contexts["karmada-apiserver"]
	if admin.CurrentContext != "karmada-apiserver" || ctx.AuthInfo != "karmada-admin" || admin.Clusters[ctx.Cluster].Server != site.server {
		t.Errorf("the administrator's: %v", admin)
	}
	if diff := cmp.Diff(slices.Sorted(slices.Values(components.KubeconfigUsers())), slices.Sorted(maps.Keys(c.internal))); diff != "" {
		t.Error(diff)
	}
	scheduler, err := clientcmd.Load(c.internal[components.Scheduler])
	if err != nil {
		t.Fatal(err)
	}
	if got := scheduler.Clusters["karmada-admin"].Server; got != "https://karmada-apiserver.karmada-system.svc.cluster.local:5443" {
		t.Errorf("the scheduler's server is %s", got)
	}
}

func TestMakeCredentials_TheSecondTimeKeepsEverything(t *testing.T) {
	first := issue(t, NewOptions(), nil)
	second := issue(t, NewOptions(), first.data)
	if len(second.made) > 0 || !bytes.Equal(first.admin, second.admin) {
		t.Errorf("made %v", second.made)
	}
	if diff := cmp.Diff(first.internal, second.internal); diff != "" {
		t.Error(diff)
	}
}

func TestMakeCredentials_AFurtherNameRenewsOnlyThoseThatNeedIt(t *testing.T) {
	first := issue(t, NewOptions(), nil)
	o := NewOptions()
	o.Certificates.ExternalDNS = "new.example.org"
	want := []string{"apiserver.crt", "apiserver.key", "karmada.crt", "karmada.key"}
	if diff := cmp.Diff(want, issue(t, o, first.data).made); diff != "" {
		t.Error(diff)
	}
	o = NewOptions()
	o.Etcd.Replicas = 3
	if diff := cmp.Diff([]string{"etcd-server.crt", "etcd-server.key"}, issue(t, o, first.data).made); diff != "" {
		t.Error(diff)
	}
}

func TestAlgorithm(t *testing.T) {
	o := NewOptions()
	if got := o.algorithm(); got != pki.ECDSA {
		t.Errorf("by default it is %s", got)
	}
	o.Certificates.KeyAlgorithm = KeyRSA
	if got := o.algorithm(); got != pki.RSA {
		t.Errorf("got %s", got)
	}
}

// given writes the authority of c to files.
func given(t *testing.T, c *credentials) (certFile, keyFile string) {
	t.Helper()
	dir := t.TempDir()
	for _, name := range []string{"ca.crt", "ca.key"} {
		if err := os.WriteFile(filepath.Join(dir, name), c.data[name], 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return filepath.Join(dir, "ca.crt"), filepath.Join(dir, "ca.key")
}

func TestMakeCredentials_WithAnAuthorityOfTheUser(t *testing.T) {
	mine := issue(t, NewOptions(), nil)
	o := NewOptions()
	o.Certificates.CACertFile, o.Certificates.CAKeyFile = given(t, mine)
	c := issue(t, o, nil)
	if !bytes.Equal(c.data["ca.crt"], mine.data["ca.crt"]) {
		t.Error("another authority was made")
	}
	_, err := o.makeCredentials(issue(t, NewOptions(), nil).data, site, time.Now)
	if err == nil || !strings.Contains(err.Error(), "an authority cannot be exchanged") {
		t.Errorf("exchanging an authority: %v", err)
	}
	o.Certificates.CAKeyFile = "/nowhere"
	if _, err := o.makeCredentials(nil, site, time.Now); err == nil || !strings.HasPrefix(err.Error(), "certificate generation failed. ") {
		t.Errorf("a missing key: %v", err)
	}
}

func TestMakeCredentials_ExternalEtcd(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"ca", "crt", "key"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(name), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	o := NewOptions()
	o.Etcd.External = ExternalEtcd{Servers: "https://x", CAFile: filepath.Join(dir, "ca"), CertFile: filepath.Join(dir, "crt"), KeyFile: filepath.Join(dir, "key")}
	c := issue(t, o, nil)
	for name, want := range map[string]string{"etcd-ca.crt": "ca", "etcd-client.crt": "crt", "etcd-client.key": "key", "etcd-ca.key": "", "etcd-server.crt": "", "etcd-server.key": ""} {
		if got, ok := c.data[name]; !ok || string(got) != want {
			t.Errorf("%s is %q", name, got)
		}
	}
	again := issue(t, o, c.data)
	if len(again.made) > 0 {
		t.Errorf("made again: %v", again.made)
	}
	o.Etcd.External.CAFile = "/nowhere"
	if _, err := o.makeCredentials(nil, site, time.Now); err == nil || !strings.HasPrefix(err.Error(), "read external etcd certificate failed, etcd-ca.crt. ") {
		t.Errorf("a missing file: %v", err)
	}
}

func TestPublicKeyHash(t *testing.T) {
	got := publicKeyHash(cert(t, issue(t, NewOptions(), nil), "ca"))
	if !strings.HasPrefix(got, "sha256:") || len(got) != len("sha256:")+64 {
		t.Errorf("got %s", got)
	}
}

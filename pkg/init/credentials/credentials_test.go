package credentials

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
	"github.com/karmada-toolkit/karmada/pkg/init/config"
	"github.com/karmada-toolkit/karmada/pkg/init/hostcluster"
)

var site = hostcluster.Addresses{IPs: []string{"10.0.0.1", "fd00::1"}, Server: "https://10.0.0.1:32443"}

func request(t *testing.T, o config.Configuration) *config.Configuration {
	t.Helper()
	if err := o.Complete(nil, "karmadactl", nil); err != nil {
		t.Fatal(err)
	}
	return &o
}

func issue(t *testing.T, o config.Configuration, have map[string][]byte) *Credentials {
	t.Helper()
	c, err := Make(request(t, o), have, site, time.Now)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func cert(t *testing.T, c *Credentials, name string) *x509.Certificate {
	t.Helper()
	got, err := pki.ParseCert(c.Data[name+".crt"])
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return got
}

func TestMake_IsTheContract(t *testing.T) {
	o := config.New()
	o.Certificates.ExternalDNS, o.Certificates.ExternalIP = config.List{"k.example.org"}, config.List{"1.2.3.4"}
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

func TestMake_Kubeconfigs(t *testing.T) {
	c := issue(t, config.New(), nil)
	admin, err := clientcmd.Load(c.Admin)
	if err != nil {
		t.Fatal(err)
	}
	ctx := admin.Contexts["karmada-apiserver"]
	if admin.CurrentContext != "karmada-apiserver" || ctx.AuthInfo != "karmada-admin" || admin.Clusters[ctx.Cluster].Server != site.Server {
		t.Errorf("the administrator's: %v", admin)
	}
	if diff := cmp.Diff(slices.Sorted(slices.Values(new(components.Config).KubeconfigUsers())), slices.Sorted(maps.Keys(c.Internal))); diff != "" {
		t.Error(diff)
	}
	scheduler, err := clientcmd.Load(c.Internal[components.Scheduler])
	if err != nil {
		t.Fatal(err)
	}
	if got := scheduler.Clusters["karmada-admin"].Server; got != "https://karmada-apiserver.karmada-system.svc.cluster.local:5443" {
		t.Errorf("the scheduler's server is %s", got)
	}
}

func TestMake_TheSecondTimeKeepsEverything(t *testing.T) {
	first := issue(t, config.New(), nil)
	second := issue(t, config.New(), first.Data)
	if len(second.Made) > 0 || !bytes.Equal(first.Admin, second.Admin) {
		t.Errorf("made %v", second.Made)
	}
	if diff := cmp.Diff(first.Internal, second.Internal); diff != "" {
		t.Error(diff)
	}
}

func TestMake_AFurtherNameRenewsOnlyThoseThatNeedIt(t *testing.T) {
	first := issue(t, config.New(), nil)
	o := config.New()
	o.Certificates.ExternalDNS = config.List{"new.example.org"}
	want := []string{"apiserver.crt", "apiserver.key", "karmada.crt", "karmada.key"}
	if diff := cmp.Diff(want, issue(t, o, first.Data).Made); diff != "" {
		t.Error(diff)
	}
	o = config.New()
	o.Etcd.Replicas, o.Etcd.StorageMode = 3, components.StorageEmptyDir
	if diff := cmp.Diff([]string{"etcd-server.crt", "etcd-server.key"}, issue(t, o, first.Data).Made); diff != "" {
		t.Error(diff)
	}
}

// given writes the authority of c to files.
func given(t *testing.T, c *Credentials) (certFile, keyFile string) {
	t.Helper()
	dir := t.TempDir()
	for _, name := range []string{"ca.crt", "ca.key"} {
		if err := os.WriteFile(filepath.Join(dir, name), c.Data[name], 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return filepath.Join(dir, "ca.crt"), filepath.Join(dir, "ca.key")
}

func TestMake_WithAnAuthorityOfTheUser(t *testing.T) {
	mine := issue(t, config.New(), nil)
	o := config.New()
	o.Certificates.CACertFile, o.Certificates.CAKeyFile = given(t, mine)
	c := issue(t, o, nil)
	if !bytes.Equal(c.Data["ca.crt"], mine.Data["ca.crt"]) {
		t.Error("another authority was made")
	}
	_, err := Make(request(t, o), issue(t, config.New(), nil).Data, site, time.Now)
	if err == nil || !strings.Contains(err.Error(), "init cannot exchange an authority; run certs renew --ca with these files") {
		t.Errorf("exchanging an authority: %v", err)
	}
	o.Certificates.CAKeyFile = "/nowhere"
	if _, err := Make(request(t, o), nil, site, time.Now); err == nil || !strings.HasPrefix(err.Error(), "certificate generation failed. ") {
		t.Errorf("a missing key: %v", err)
	}
}

// renewed returns the certificates of c with new authorities, which sign; those that were are trusted.
func renewed(t *testing.T, c *Credentials) map[string][]byte {
	t.Helper()
	next, data := issue(t, config.New(), nil), maps.Clone(c.Data)
	for _, name := range []string{"ca", "etcd-ca", "front-proxy-ca"} {
		data[name+".crt"], data[name+".key"] = slices.Concat(next.Data[name+".crt"], c.Data[name+".crt"]), next.Data[name+".key"]
	}
	return data
}

func TestMake_KeepsBundles(t *testing.T) {
	first := issue(t, config.New(), nil)
	have := renewed(t, first)
	o := config.New()
	o.Certificates.CACertFile, o.Certificates.CAKeyFile = given(t, &Credentials{Data: map[string][]byte{"ca.crt": pki.EncodeCert(cert(t, &Credentials{Data: have}, "ca")), "ca.key": have["ca.key"]}})
	for name, o := range map[string]config.Configuration{"an authority that was made": config.New(), "an authority of the user": o} {
		c := issue(t, o, have)
		for _, file := range []string{"ca.crt", "ca.key", "etcd-ca.crt", "etcd-ca.key", "front-proxy-ca.crt", "front-proxy-ca.key", "service-account.key"} {
			if !bytes.Equal(c.Data[file], have[file]) {
				t.Errorf("%s: %s is another", name, file)
			}
		}
		for leaf, ca := range map[string]string{"apiserver": "ca", "etcd-server": "etcd-ca", "front-proxy-client": "front-proxy-ca", "admin": "ca"} {
			if err := cert(t, c, leaf).CheckSignatureFrom(cert(t, c, ca)); err != nil {
				t.Errorf("%s: %s is not of the first authority: %v", name, leaf, err)
			}
		}
		if !bytes.Equal(c.Data[components.SigningCA], pki.EncodeCert(cert(t, c, "ca"))) {
			t.Errorf("%s: kube-controller-manager signs with %s", name, c.Data[components.SigningCA])
		}
		admin, err := c.RESTConfig()
		if err != nil || !bytes.Equal(admin.CAData, have["ca.crt"]) {
			t.Errorf("%s: the administrator does not trust all authorities: %v", name, err)
		}
		if c.CAHash() == first.CAHash() {
			t.Errorf("%s: the hash is that of the last authority", name)
		}
		if again := issue(t, o, c.Data); len(again.Made) > 0 {
			t.Errorf("%s: made again: %v", name, again.Made)
		}
	}
}

// A control plane of an earlier version gets the file, and the other files stay.
func TestMake_AddsTheSigningAuthority(t *testing.T) {
	have := issue(t, config.New(), nil).Data
	delete(have, components.SigningCA)
	if diff := cmp.Diff([]string{components.SigningCA}, issue(t, config.New(), have).Made); diff != "" {
		t.Error(diff)
	}
}

func TestMake_ExternalEtcd(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"ca", "crt", "key"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(name), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	o := config.New()
	o.Etcd.External = config.ExternalEtcd{Servers: config.List{"https://x"}, CAFile: filepath.Join(dir, "ca"), CertFile: filepath.Join(dir, "crt"), KeyFile: filepath.Join(dir, "key")}
	c := issue(t, o, nil)
	for name, want := range map[string]string{"etcd-ca.crt": "ca", "etcd-client.crt": "crt", "etcd-client.key": "key", "etcd-ca.key": "", "etcd-server.crt": "", "etcd-server.key": ""} {
		if got, ok := c.Data[name]; !ok || string(got) != want {
			t.Errorf("%s is %q", name, got)
		}
	}
	again := issue(t, o, c.Data)
	if len(again.Made) > 0 {
		t.Errorf("made again: %v", again.Made)
	}
	o.Etcd.External.CAFile = "/nowhere"
	if _, err := Make(request(t, o), nil, site, time.Now); err == nil || !strings.HasPrefix(err.Error(), "read external etcd certificate failed, etcd-ca.crt. ") {
		t.Errorf("a missing file: %v", err)
	}
}

func TestCAHash(t *testing.T) {
	got := issue(t, config.New(), nil).CAHash()
	if !strings.HasPrefix(got, "sha256:") || len(got) != len("sha256:")+64 {
		t.Errorf("got %s", got)
	}
}

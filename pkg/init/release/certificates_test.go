package release

import (
	"bytes"
	"crypto/x509"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/karmada-toolkit/karmada/internal/kube"
	"github.com/karmada-toolkit/karmada/internal/pki"
	"github.com/karmada-toolkit/karmada/pkg/init/components"
)

var begin = time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)

func settings() *Certificates {
	return &Certificates{
		Release: Release{Name: "try", Fixed: "try-", Namespace: "team", Domain: "cluster.local", SystemNamespace: "karmada-system"},
		Hosts:   []string{"federation.example.org", "192.0.2.1"}, Validity: 365 * 24 * time.Hour, EtcdReplicas: 3, Servers: []string{components.Search}, Renewed: "1",
	}
}

func host(objects ...client.Object) client.Client {
	return fake.NewClientBuilder().WithScheme(kube.NewScheme()).WithObjects(objects...).Build()
}

func at(after time.Duration) func() time.Time { return func() time.Time { return begin.Add(after) } }

func data(t *testing.T, c client.Client, name string) map[string][]byte {
	t.Helper()
	secret := &corev1.Secret{}
	if err := c.Get(t.Context(), client.ObjectKey{Namespace: "team", Name: name}, secret); err != nil {
		t.Fatal(err)
	}
	return secret.Data
}

func secretNames(t *testing.T, c client.Client) []string {
	t.Helper()
	list := &corev1.SecretList{}
	if err := c.List(t.Context(), list); err != nil {
		t.Fatal(err)
	}
	var out []string
	for i := range list.Items {
		out = append(out, list.Items[i].Name)
	}
	return out
}

func TestCertificates_AreMadeKeptRenewedAndRemoved(t *testing.T) {
	job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "try-static-resource"}}
	c := host(job)
	if err := settings().Write(t.Context(), c, at(0)); err != nil {
		t.Fatal(err)
	}
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(job), job); err == nil {
		t.Error("the Job is still there")
	}
	made := secretNames(t, c)
	for _, name := range made {
		if !strings.HasPrefix(name, "try-") {
			t.Errorf("Secret %s is not named for the release", name)
		}
	}
	for _, name := range []string{"try-cert", "try-webhook-cert", "try-kubeconfig", "try-search-cert", "try-scheduler-config"} {
		if !slices.Contains(made, name) {
			t.Errorf("%s is missing among %v", name, made)
		}
	}
	kubeconfig, err := clientcmd.Load(data(t, c, "try-kubeconfig")["kubeconfig"])
	if err != nil || kubeconfig.CurrentContext != "try-apiserver" || kubeconfig.Clusters["try-apiserver"].Server != "https://try-apiserver.team.svc.cluster.local:5443" {
		t.Errorf("kubeconfig %v, %v", kubeconfig, err)
	}
	first := data(t, c, "try-cert")
	if diff := cmp.Diff(first["ca.crt"], first["server-ca.crt"]); diff != "" {
		t.Error(diff)
	}
	pair, err := pki.ParsePair(first["apiserver.crt"], first["apiserver.key"])
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"federation.example.org", "192.0.2.1", "try-apiserver.team.svc.cluster.local"} {
		if err := pair.Cert.VerifyHostname(name); err != nil {
			t.Error(err)
		}
	}
	for workload, name := range map[string]string{components.AggregatedAPIServer: "karmada-aggregated-apiserver.karmada-system.svc", components.Search: "karmada-search.karmada-system.svc"} {
		server, err := pki.ParsePair(first[workload+".crt"], first[workload+".key"])
		if err != nil {
			t.Fatal(err)
		}
		if err := server.Cert.VerifyHostname(name); err != nil {
			t.Errorf("the API server of the control plane does not reach %s: %v", workload, err)
		}
	}
	due := func() time.Time {
		t.Helper()
		secret := &corev1.Secret{}
		if err := c.Get(t.Context(), client.ObjectKey{Namespace: "team", Name: "try-cert"}, secret); err != nil {
			t.Fatal(err)
		}
		seconds, err := strconv.ParseInt(secret.Annotations["karmada.io/renew-after"], 10, 64)
		if err != nil || secret.Annotations["karmada.io/renewed"] != "1" {
			t.Errorf("the annotations are %v", secret.Annotations)
		}
		return time.Unix(seconds, 0)
	}
	const lasts = 275 * 24 * time.Hour // 90 days less than a year
	for _, tc := range []struct {
		after time.Duration
		kept  bool
	}{{200 * 24 * time.Hour, true}, {280 * 24 * time.Hour, false}} {
		if err := settings().Write(t.Context(), c, at(tc.after)); err != nil {
			t.Fatal(err)
		}
		now := data(t, c, "try-cert")
		if kept := cmp.Equal(first["apiserver.crt"], now["apiserver.crt"]); kept != tc.kept {
			t.Errorf("after %s: kept %t", tc.after, kept)
		}
		if !cmp.Equal(first["ca.crt"], now["ca.crt"]) || !cmp.Equal(first["service-account.key"], now["service-account.key"]) {
			t.Error("the authority or the key of service accounts is another")
		}
		want := begin.Add(lasts)
		if !tc.kept {
			want = want.Add(tc.after)
		}
		if got := due(); got.Sub(want).Abs() > 24*time.Hour {
			t.Errorf("after %s they are due at %s, want %s", tc.after, got, want)
		}
	}
	compact := settings()
	compact.Compact = true
	if err := compact.Write(t.Context(), c, at(0)); err != nil || !slices.Contains(secretNames(t, c), "try-all-in-one-config") {
		t.Fatalf("%v, in %v", err, secretNames(t, c))
	}
	if err := settings().Remove(t.Context(), c); err != nil { // that of another revision goes, too
		t.Fatal(err)
	}
	if left := secretNames(t, c); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}

func TestCertificates_OfOthersAreNotTouched(t *testing.T) {
	c := host(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "try-cert"}, Data: map[string][]byte{"server-ca.crt": []byte("theirs")}})
	err := settings().Write(t.Context(), c, at(0))
	if err == nil || !strings.Contains(err.Error(), "the Secret team/try-cert is not of this release") {
		t.Errorf("got %v", err)
	}
}

// given writes certificates of a user.
func given(t *testing.T, files map[string][]byte) string {
	t.Helper()
	dir := t.TempDir()
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestCertificates_OfTheUser(t *testing.T) {
	newCA := func(name string) pki.Pair {
		ca, err := pki.NewCA(pki.CAConfig{CommonName: name}, nil, begin)
		if err != nil {
			t.Fatal(err)
		}
		return ca
	}
	newLeaf := func(ca pki.Pair, cfg pki.LeafConfig, now time.Time) pki.Pair {
		leaf, err := pki.NewLeaf(cfg, ca, now)
		if err != nil {
			t.Fatal(err)
		}
		return leaf
	}
	key := func(p pki.Pair) []byte {
		out, err := p.KeyPEM()
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	ca, proxy := newCA("mine"), newCA("proxy")
	client := newLeaf(proxy, pki.LeafConfig{CommonName: "front-proxy-client", Usages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}, begin)
	server := newLeaf(ca, pki.LeafConfig{CommonName: "karmada-apiserver", Hosts: []string{"localhost"}}, begin)
	ended := newLeaf(ca, pki.LeafConfig{CommonName: "karmada-apiserver", Validity: time.Hour}, begin)
	authority := map[string][]byte{"ca.crt": ca.CertPEM(), "ca.key": key(ca)}
	with := func(files map[string][]byte) map[string][]byte {
		for name, content := range authority {
			if _, ok := files[name]; !ok {
				files[name] = content
			}
		}
		return files
	}
	for name, tc := range map[string]struct {
		files map[string][]byte
		err   string
	}{
		"an authority":          {authority, ""},
		"a front proxy as well": {with(map[string][]byte{"front-proxy-ca.crt": proxy.CertPEM(), "front-proxy-client.crt": client.CertPEM(), "front-proxy-client.key": key(client)}), ""},
		"another key":           {with(map[string][]byte{"ca.key": key(proxy)}), "certs.custom.caCrt and certs.custom.caKey"},
		"no authority":          {map[string][]byte{"ca.crt": client.CertPEM(), "ca.key": key(client)}, "certs.custom.caCrt and certs.custom.caKey"},
		"a name is missing":     {with(map[string][]byte{"apiserver.crt": server.CertPEM(), "apiserver.key": key(server)}), "lacks one of the names"},
		"it has ended":          {with(map[string][]byte{"apiserver.crt": ended.CertPEM(), "apiserver.key": key(ended)}), "the certificate ended at"},
		"another front proxy":   {with(map[string][]byte{"front-proxy-ca.crt": ca.CertPEM(), "front-proxy-client.crt": client.CertPEM(), "front-proxy-client.key": key(client)}), "certs.custom.frontProxyCrt"},
		"no PEM":                {map[string][]byte{"ca.crt": []byte("a"), "ca.key": []byte("b")}, "certs.custom.caCrt"},
	} {
		t.Run(name, func(t *testing.T) {
			s, c := settings(), host()
			s.Given = given(t, tc.files)
			for range 2 { // the second is an upgrade
				err := s.Write(t.Context(), c, at(24*time.Hour))
				if tc.err == "" && err != nil || tc.err != "" && (err == nil || !strings.Contains(err.Error(), tc.err)) {
					t.Fatalf("got %v, want %q", err, tc.err)
				}
				if tc.err != "" {
					continue
				}
				for file, content := range tc.files {
					if got := data(t, c, "try-cert")[file]; strings.HasSuffix(file, ".crt") && !cmp.Equal(got, content) {
						t.Errorf("%s is %q", file, got)
					}
				}
			}
		})
	}
}

// An upgrade keeps the authorities that are trusted beside the one that signs, also those beside one of the user.
func TestCertificates_KeepBundles(t *testing.T) {
	for _, custom := range []bool{false, true} {
		next, err := pki.NewCA(pki.CAConfig{CommonName: "next"}, nil, begin)
		if err != nil {
			t.Fatal(err)
		}
		keyPEM, err := next.KeyPEM()
		if err != nil {
			t.Fatal(err)
		}
		s, c := settings(), host()
		if err := s.Write(t.Context(), c, at(0)); err != nil {
			t.Fatal(err)
		}
		secret := &corev1.Secret{}
		if err := c.Get(t.Context(), client.ObjectKey{Namespace: "team", Name: "try-cert"}, secret); err != nil {
			t.Fatal(err)
		}
		bundle := slices.Concat(next.CertPEM(), secret.Data["ca.crt"])
		secret.Data["ca.crt"], secret.Data["ca.key"] = bundle, keyPEM
		delete(secret.Data, components.SigningCA) // as an earlier version left it
		if err := c.Update(t.Context(), secret); err != nil {
			t.Fatal(err)
		}
		if custom {
			s.Given = given(t, map[string][]byte{"ca.crt": append(next.CertPEM(), '\n'), "ca.key": keyPEM})
		}
		if err := s.Write(t.Context(), c, at(24*time.Hour)); err != nil {
			t.Fatal(err)
		}
		got := data(t, c, "try-cert")
		for file, want := range map[string][]byte{"ca.crt": bundle, "server-ca.crt": bundle, components.SigningCA: next.CertPEM()} {
			if diff := cmp.Diff(string(want), string(got[file])); diff != "" {
				t.Errorf("%s: %s", file, diff)
			}
		}
		server, err := pki.ParseCert(got["apiserver.crt"])
		if err != nil || server.CheckSignatureFrom(next.Cert) != nil {
			t.Errorf("the certificate of the API server is not of the first authority: %v", err)
		}
		kubeconfig, err := clientcmd.Load(data(t, c, "try-kubeconfig")["kubeconfig"])
		if err != nil || !slices.Equal(kubeconfig.Clusters["try-apiserver"].CertificateAuthorityData, bundle) {
			t.Errorf("the administrator does not trust all authorities: %v", err)
		}
	}
}

// formerSecret is that of a release of Karmada's chart: one authority and one pair, whose keys are RSA.
func formerSecret(t *testing.T) *corev1.Secret {
	t.Helper()
	ca, err := pki.NewCA(pki.CAConfig{CommonName: "karmada", Algorithm: pki.RSA}, nil, begin)
	if err != nil {
		t.Fatal(err)
	}
	pair, err := pki.NewLeaf(pki.LeafConfig{CommonName: "system:admin", Organization: []string{"system:masters"}, Hosts: []string{"*.team.svc.cluster.local"}, Algorithm: pki.RSA}, ca, begin)
	if err != nil {
		t.Fatal(err)
	}
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "try-cert"}, Data: map[string][]byte{"front-proxy-ca.crt": ca.CertPEM()}}
	for name, p := range map[string]pki.Pair{"server-ca": ca, "karmada": pair, "front-proxy-client": pair} {
		key, err := p.KeyPEM()
		if err != nil {
			t.Fatal(err)
		}
		secret.Data[name+".crt"], secret.Data[name+".key"] = p.CertPEM(), key
	}
	return secret
}

func TestCertificates_ContinueThoseOfKarmadasChart(t *testing.T) {
	was := formerSecret(t)
	c := host(was.DeepCopy())
	for range 2 {
		if err := settings().Write(t.Context(), c, at(time.Hour)); err != nil {
			t.Fatal(err)
		}
	}
	is := data(t, c, "try-cert")
	for name, of := range map[string]string{
		"ca.crt": "server-ca.crt", "ca.key": "server-ca.key", "etcd-ca.crt": "server-ca.crt", "server-ca.crt": "server-ca.crt",
		"service-account.key": "karmada.key", "karmada.key": "karmada.key", "karmada.crt": "karmada.crt",
		"front-proxy-ca.crt": "front-proxy-ca.crt", "front-proxy-client.crt": "front-proxy-client.crt", "front-proxy-client.key": "front-proxy-client.key",
	} {
		if diff := cmp.Diff(string(was.Data[of]), string(is[name])); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(was.Data["server-ca.crt"])
	for _, name := range []string{"apiserver", "etcd-client", "etcd-server", "admin", components.Webhook} {
		pair, err := pki.ParsePair(is[name+".crt"], is[name+".key"])
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if _, err := pair.Cert.Verify(x509.VerifyOptions{Roots: roots, CurrentTime: begin.Add(time.Hour), KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageAny}}); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, name := range []string{"try-cert", "try-webhook-cert", "try-kubeconfig"} {
		secret := &corev1.Secret{}
		if err := c.Get(t.Context(), client.ObjectKey{Namespace: "team", Name: name}, secret); err != nil || secret.Annotations[resourcePolicy] != "keep" {
			t.Errorf("Helm may delete %s: %v, %v", name, secret.Annotations, err)
		}
	}

	// The authority of the front proxy has no key: there is another when its certificate ends soon.
	late := begin.Add(365*24*time.Hour - components.EarlyRenewal)
	if err := settings().Write(t.Context(), c, func() time.Time { return late }); err != nil {
		t.Fatal(err)
	}
	if now := data(t, c, "try-cert"); bytes.Equal(now["front-proxy-ca.crt"], is["front-proxy-ca.crt"]) || len(now["front-proxy-ca.key"]) == 0 || !bytes.Equal(now["karmada.key"], is["karmada.key"]) {
		t.Error("the certificate of the front proxy was not renewed, or the shared pair was")
	}
	delete(was.Data, "server-ca.key")
	if err := settings().Write(t.Context(), host(was), at(0)); err == nil || !strings.Contains(err.Error(), "has no server-ca.key") {
		t.Errorf("an authority without its key: %v", err)
	}
}

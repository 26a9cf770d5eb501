package pki

import (
	"crypto/ecdsa"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

var start = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

func newCA(t *testing.T, name string) Pair {
	t.Helper()
	ca, err := NewCA(CAConfig{CommonName: name}, nil, start)
	if err != nil {
		t.Fatal(err)
	}
	return ca
}

func newLeaf(t *testing.T, cfg LeafConfig, ca Pair, now time.Time) Pair {
	t.Helper()
	leaf, err := NewLeaf(cfg, ca, now)
	if err != nil {
		t.Fatal(err)
	}
	return leaf
}

func TestNewCA(t *testing.T) {
	ca := newCA(t, "karmada")
	if !ca.Cert.IsCA || ca.Cert.Subject.CommonName != "karmada" || !slices.Equal(ca.Cert.DNSNames, []string{"karmada"}) {
		t.Errorf("got subject %s, names %v, CA %t", ca.Cert.Subject, ca.Cert.DNSNames, ca.Cert.IsCA)
	}
	if want := start.Add(CAValidity); !ca.Cert.NotAfter.Equal(want) {
		t.Errorf("ends %s, want %s", ca.Cert.NotAfter, want)
	}
	if want := x509.KeyUsageKeyEncipherment | x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign; ca.Cert.KeyUsage != want {
		t.Errorf("key usage %v, want %v", ca.Cert.KeyUsage, want)
	}
}

func TestNewLeaf(t *testing.T) {
	ca := newCA(t, "ca")
	leaf := newLeaf(t, LeafConfig{
		CommonName: "server", Organization: []string{"", "system:masters"},
		Hosts: []string{"b.example", "10.0.0.1", "", "a.example", "b.example", "10.0.0.1", "::1", " a.example "},
	}, ca, start)
	var ips []string
	for _, ip := range leaf.Cert.IPAddresses {
		ips = append(ips, ip.String())
	}
	if diff := cmp.Diff([]string{"a.example", "b.example"}, leaf.Cert.DNSNames); diff != "" {
		t.Errorf("names (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"10.0.0.1", "::1"}, ips); diff != "" {
		t.Errorf("addresses (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"system:masters"}, leaf.Cert.Subject.Organization); diff != "" {
		t.Errorf("organization (-want +got):\n%s", diff)
	}
	pool := x509.NewCertPool()
	pool.AddCert(ca.Cert)
	for _, usage := range []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth} {
		if _, err := leaf.Cert.Verify(x509.VerifyOptions{Roots: pool, CurrentTime: start, DNSName: "a.example", KeyUsages: []x509.ExtKeyUsage{usage}}); err != nil {
			t.Errorf("usage %v: %v", usage, err)
		}
	}
	if leaf.Cert.SerialNumber.Sign() <= 0 || leaf.Cert.SerialNumber.BitLen() > 63 {
		t.Errorf("serial number %s is not a positive 63-bit number", leaf.Cert.SerialNumber)
	}
}

func TestNewLeaf_NeverOutlivesItsAuthority(t *testing.T) {
	ca := newCA(t, "ca")
	leaf := newLeaf(t, LeafConfig{CommonName: "x"}, ca, start.Add(CAValidity-time.Hour))
	if leaf.Cert.NotAfter.After(ca.Cert.NotAfter) {
		t.Errorf("ends %s, its authority %s", leaf.Cert.NotAfter, ca.Cert.NotAfter)
	}
}

func TestNewLeaf_AuthorityWithoutKey(t *testing.T) {
	if _, err := NewLeaf(LeafConfig{CommonName: "x"}, Pair{Cert: newCA(t, "ca").Cert}, start); err == nil {
		t.Error("signed without a key")
	}
}

func TestKeys_RoundTrip(t *testing.T) {
	for _, algorithm := range []Algorithm{ECDSA, RSA, ""} {
		t.Run("algorithm "+string(algorithm), func(t *testing.T) {
			key, err := NewKey(algorithm)
			if err != nil {
				t.Fatal(err)
			}
			data, err := EncodeKey(key)
			if err != nil {
				t.Fatal(err)
			}
			back, err := ParseKey(data)
			if err != nil {
				t.Fatal(err)
			}
			switch k := key.(type) {
			case *ecdsa.PrivateKey:
				if !k.Equal(back) || algorithm == RSA {
					t.Errorf("got %T", back)
				}
			case *rsa.PrivateKey:
				if !k.Equal(back) || algorithm != RSA || k.N.BitLen() != 3072 || !strings.HasPrefix(string(data), "-----BEGIN RSA PRIVATE KEY-----") {
					t.Errorf("got %T of %d bits", back, k.N.BitLen())
				}
			}
		})
	}
	if _, err := NewKey("DSA"); err == nil || !strings.Contains(err.Error(), `"DSA"`) {
		t.Errorf("unknown algorithm: got %v", err)
	}
}

func pemBlock(kind string, der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
}

func TestParseKey_PKCS8(t *testing.T) {
	key, err := NewKey(ECDSA)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	back, err := ParseKey(pemBlock("PRIVATE KEY", der))
	if err != nil || !key.(*ecdsa.PrivateKey).Equal(back) {
		t.Errorf("got %T, %v", back, err)
	}
}

func TestParsePair_Errors(t *testing.T) {
	a, b := newCA(t, "a"), newCA(t, "b")
	keyOf := func(p Pair) []byte {
		data, err := p.KeyPEM()
		if err != nil {
			t.Fatal(err)
		}
		return data
	}
	tests := []struct {
		name      string
		cert, key []byte
		want      string
	}{
		{"no certificate", nil, keyOf(a), "data does not contain any valid RSA or ECDSA certificates"},
		{"no key", a.CertPEM(), nil, "data does not contain a valid RSA or ECDSA private key"},
		{"another's key", a.CertPEM(), keyOf(b), "does not belong"},
		{"a key in place of the certificate", keyOf(a), keyOf(a), "data does not contain any valid RSA or ECDSA certificates"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if _, err := ParsePair(tt.cert, tt.key); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want an error with %q", err, tt.want)
			}
		})
	}
	if _, err := ParsePair(a.CertPEM(), keyOf(a)); err != nil {
		t.Errorf("a good pair: %v", err)
	}
}

func TestRenewReason(t *testing.T) {
	ca, otherCA := newCA(t, "ca"), newCA(t, "ca")
	cfg := LeafConfig{CommonName: "server", Organization: []string{"o"}, Hosts: []string{"a.example", "10.0.0.1"}}
	leaf := newLeaf(t, cfg, ca, start)
	short := cfg
	short.Validity = 3 * time.Hour
	tests := []struct {
		name string
		pair Pair
		cfg  LeafConfig
		ca   Pair
		at   time.Time
		want string
	}{
		{"fresh", leaf, cfg, ca, start, ""},
		{"31 days before the end", leaf, cfg, ca, leaf.Cert.NotAfter.AddDate(0, 0, -31), ""},
		{"29 days before the end", leaf, cfg, ca, leaf.Cert.NotAfter.AddDate(0, 0, -29), "near its end"},
		{"past the end", leaf, cfg, ca, leaf.Cert.NotAfter, "near its end"},
		{"a short one, in the middle", newLeaf(t, short, ca, start), short, ca, start.Add(time.Hour), ""},
		{"a short one, in the last third", newLeaf(t, short, ca, start), short, ca, start.Add(2*time.Hour + time.Minute), "near its end"},
		{"the clock went back", leaf, cfg, ca, start.AddDate(0, 0, -1), "not valid yet"},
		{"another authority of the same name", leaf, cfg, otherCA, start, "signed by another authority"},
		{"other common name", leaf, LeafConfig{CommonName: "x", Organization: cfg.Organization}, ca, start, "other common name"},
		{"other organization", leaf, LeafConfig{CommonName: "server"}, ca, start, "other organization"},
		{"fewer hosts are fine", leaf, LeafConfig{CommonName: "server", Organization: cfg.Organization}, ca, start, ""},
		{"one more name", leaf, LeafConfig{CommonName: "server", Organization: cfg.Organization, Hosts: []string{"b.example"}}, ca, start, "lacks the name b.example"},
		{"one more address", leaf, LeafConfig{CommonName: "server", Organization: cfg.Organization, Hosts: []string{"10.0.0.2"}}, ca, start, "lacks the address 10.0.0.2"},
		{"another usage", leaf, LeafConfig{CommonName: "server", Organization: cfg.Organization, Usages: []x509.ExtKeyUsage{x509.ExtKeyUsageCodeSigning}}, ca, start, "lacks a key usage"},
		{"another's key", Pair{Cert: leaf.Cert, Key: otherCA.Key}, cfg, ca, start, "key and certificate do not belong together"},
		{"nothing", Pair{}, cfg, ca, start, "key and certificate do not belong together"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := RenewReason(tt.pair, tt.cfg, tt.ca.Cert, tt.at); got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

func TestRenewReason_NotBeforeTheAuthorityEndsToo(t *testing.T) {
	ca := newCA(t, "ca")
	leaf := newLeaf(t, LeafConfig{CommonName: "x"}, ca, start.Add(CAValidity-time.Hour))
	if got := RenewReason(leaf, LeafConfig{CommonName: "x"}, ca.Cert, start.Add(CAValidity-time.Minute)); got != "" {
		t.Errorf("got %q although a new one would not live longer", got)
	}
}

func TestBundleContainsAndSameSigner(t *testing.T) {
	a, b := newCA(t, "a"), newCA(t, "b")
	bundle := slices.Concat(a.CertPEM(), b.CertPEM())
	for name, tc := range map[string]struct {
		bundle, data    []byte
		contained, same bool
	}{
		"the first":          {bundle, a.CertPEM(), true, true},
		"another text":       {bundle, append([]byte("text\n"), a.CertPEM()...), true, true},
		"the second":         {bundle, b.CertPEM(), true, false},
		"the other way":      {a.CertPEM(), bundle, true, true},
		"in another order":   {bundle, slices.Concat(b.CertPEM(), a.CertPEM()), true, false},
		"another":            {b.CertPEM(), bundle, false, false},
		"no certificate":     {bundle, nil, false, false},
		"no bundle":          {[]byte("x"), a.CertPEM(), false, false},
		"neither, but equal": {[]byte("x"), []byte("x"), false, false},
	} {
		if contained, same := BundleContains(tc.bundle, tc.data), SameSigner(tc.bundle, tc.data); contained != tc.contained || same != tc.same {
			t.Errorf("%s: contained %t, the same %t", name, contained, same)
		}
	}
}

func TestStore_KeepsBundles(t *testing.T) {
	old, next := newCA(t, "ca"), newCA(t, "ca")
	keyPEM, err := next.KeyPEM()
	if err != nil {
		t.Fatal(err)
	}
	bundle := slices.Concat(next.CertPEM(), old.CertPEM())
	stored := memory{"ca.crt": bundle, "ca.key": keyPEM}
	store := Store{Storage: stored, Now: func() time.Time { return start }}
	ca, err := store.CA("ca", CAConfig{CommonName: "ca"})
	if err != nil || !ca.Cert.Equal(next.Cert) || string(stored["ca.crt"]) != string(bundle) {
		t.Fatalf("got %v, %v", ca.Cert, err)
	}
	leaf, err := store.Leaf("x", LeafConfig{CommonName: "x"}, ca)
	if err != nil || leaf.Cert.CheckSignatureFrom(next.Cert) != nil {
		t.Errorf("the first does not sign: %v", err)
	}
}

// memory is a Storage in a map.
type memory map[string][]byte

func (m memory) Read(name string) ([]byte, error) {
	data, ok := m[name]
	if !ok {
		return nil, fs.ErrNotExist
	}
	return data, nil
}

func (m memory) Write(name string, data []byte, _ bool) error {
	m[name] = data
	return nil
}

// storages are the two kinds of storage, both empty.
func storages(t *testing.T) map[string]Storage {
	t.Helper()
	return map[string]Storage{"directory": Dir(filepath.Join(t.TempDir(), "pki")), "memory": memory{}}
}

func TestStore_SecondRunFindsEverything(t *testing.T) {
	for name, storage := range storages(t) {
		t.Run(name, func(t *testing.T) {
			run := func(now time.Time) []string {
				store := Store{Storage: storage, Now: func() time.Time { return now }}
				ca, err := store.CA("ca", CAConfig{CommonName: "ca"})
				if err != nil {
					t.Fatal(err)
				}
				leaf, err := store.Leaf("server", LeafConfig{CommonName: "server", Hosts: []string{"localhost"}}, ca)
				if err != nil {
					t.Fatal(err)
				}
				key, err := store.Key("sa", ECDSA)
				if err != nil {
					t.Fatal(err)
				}
				public, err := x509.MarshalPKIXPublicKey(key.Public())
				if err != nil {
					t.Fatal(err)
				}
				return []string{string(ca.CertPEM()), string(leaf.CertPEM()), string(public)}
			}
			first := run(start)
			if diff := cmp.Diff(first, run(start.AddDate(0, 1, 0))); diff != "" {
				t.Errorf("a second run changed something:\n%s", diff)
			}
			later := run(start.Add(DefaultValidity - time.Hour))
			if later[0] != first[0] || later[2] != first[2] {
				t.Error("the authority or the key was replaced")
			}
			if later[1] == first[1] {
				t.Error("the leaf was not renewed near its end")
			}
		})
	}
}

func TestStore_CA(t *testing.T) {
	ca := newCA(t, "ca")
	keyPEM, err := ca.KeyPEM()
	if err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		name   string
		stored memory
		at     time.Time
		want   string // part of the error
	}{
		{"nothing yet", memory{}, start, ""},
		{"key only, after an interruption", memory{"ca.key": keyPEM}, start, ""},
		{"certificate only", memory{"ca.crt": ca.CertPEM()}, start, "no key"},
		{"expired", memory{"ca.crt": ca.CertPEM(), "ca.key": keyPEM}, start.Add(CAValidity + time.Hour), "ended on"},
		{"damaged", memory{"ca.crt": []byte("x"), "ca.key": keyPEM}, start, "put the right files back"},
		{"damaged key only", memory{"ca.key": []byte("x")}, start, "reading ca.key"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			store := Store{Storage: tt.stored, Now: func() time.Time { return tt.at }}
			got, err := store.CA("ca", CAConfig{CommonName: "ca"})
			if tt.want == "" {
				if err != nil || !got.Matches() || !got.Cert.IsCA {
					t.Errorf("got %v", err)
				}
				if stored, ok := tt.stored["ca.key"]; !ok || tt.name == "key only, after an interruption" && string(stored) != string(keyPEM) {
					t.Error("the key was lost or replaced")
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want an error with %q", err, tt.want)
			}
		})
	}
}

func TestStore_DamagedLeafIsMadeAgain(t *testing.T) {
	ca, storage := newCA(t, "ca"), memory{"server.crt": []byte("x"), "server.key": []byte("y")}
	leaf, err := Store{Storage: storage, Now: func() time.Time { return start }}.Leaf("server", LeafConfig{CommonName: "server"}, ca)
	if err != nil || !leaf.Matches() {
		t.Fatalf("got %v", err)
	}
	if string(storage["server.crt"]) != string(leaf.CertPEM()) {
		t.Error("it was not stored")
	}
}

func TestDir_Modes(t *testing.T) {
	dir := Dir(filepath.Join(t.TempDir(), "a", "pki"))
	if _, err := (Store{Storage: dir, Now: func() time.Time { return start }}).CA("ca", CAConfig{CommonName: "ca"}); err != nil {
		t.Fatal(err)
	}
	got := map[string]fs.FileMode{}
	entries, err := os.ReadDir(string(dir))
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		info, err := entry.Info()
		if err != nil {
			t.Fatal(err)
		}
		got[entry.Name()] = info.Mode()
	}
	if diff := cmp.Diff(map[string]fs.FileMode{"ca.crt": 0o644, "ca.key": 0o600}, got); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
}

func TestWriteFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	for _, content := range []string{"first", "second"} {
		if err := WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		if got, err := os.ReadFile(path); err != nil || string(got) != content {
			t.Errorf("got %q, %v", got, err)
		}
	}
	if err := os.Mkdir(path+".d", 0o700); err != nil {
		t.Fatal(err)
	}
	if err := WriteFile(path+".d", nil, 0o600); err == nil {
		t.Error("wrote over a directory")
	}
	entries, err := os.ReadDir(filepath.Dir(path))
	if err != nil || len(entries) != 2 {
		t.Errorf("%d entries, %v; a temporary file was left behind", len(entries), err)
	}
}

func TestKubeconfig(t *testing.T) {
	ca := newCA(t, "ca")
	client := newLeaf(t, LeafConfig{CommonName: "admin"}, ca, start)
	cfg, err := NewKubeconfig(KubeconfigEntry{Context: "karmada-apiserver", User: "karmada-admin", Server: "https://127.0.0.1:5443", CA: ca.CertPEM(), Client: client})
	if err != nil {
		t.Fatal(err)
	}
	other, err := NewKubeconfig(KubeconfigEntry{Context: "member1", Server: "https://127.0.0.1:6443", CA: ca.CertPEM(), Client: client})
	if err != nil {
		t.Fatal(err)
	}
	MergeKubeconfig(cfg, other)
	byToken, err := NewKubeconfig(KubeconfigEntry{Context: "t", Server: "https://127.0.0.1:1", Token: "secret"})
	if err != nil || byToken.AuthInfos["t"].Token != "secret" || byToken.AuthInfos["t"].ClientKeyData != nil {
		t.Errorf("a kubeconfig with a token has user %+v, %v", byToken.AuthInfos["t"], err)
	}
	path := filepath.Join(t.TempDir(), "kubeconfig")
	if err := WriteKubeconfig(path, cfg); err != nil {
		t.Fatal(err)
	}
	got, err := clientcmd.LoadFromFile(path)
	if err != nil {
		t.Fatal(err)
	}
	contexts := map[string]clientcmdapi.Context{}
	for name, c := range got.Contexts {
		contexts[name] = clientcmdapi.Context{Cluster: c.Cluster, AuthInfo: c.AuthInfo}
	}
	want := map[string]clientcmdapi.Context{
		"karmada-apiserver": {Cluster: "karmada-apiserver", AuthInfo: "karmada-admin"},
		"member1":           {Cluster: "member1", AuthInfo: "member1"},
	}
	if diff := cmp.Diff(want, contexts); diff != "" {
		t.Errorf("contexts (-want +got):\n%s", diff)
	}
	if got.CurrentContext != "karmada-apiserver" || got.Clusters["member1"].Server != "https://127.0.0.1:6443" {
		t.Errorf("current context %q, member1 at %q", got.CurrentContext, got.Clusters["member1"].Server)
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode() != 0o600 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
}

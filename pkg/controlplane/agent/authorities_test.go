package agent

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	testingclock "k8s.io/utils/clock/testing"

	"github.com/karmada-toolkit/karmada/internal/pki"
	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
	"github.com/karmada-toolkit/karmada/pkg/member/registration/agentcert"
)

// controlPlane serves cluster-info to clients without a certificate, and nothing else.
type controlPlane struct {
	*httptest.Server
	serving atomic.Pointer[tls.Certificate]
	// info is the kubeconfig in cluster-info; nil means that there is none.
	info atomic.Pointer[string]
}

func (c *controlPlane) serve(t *testing.T, ca pki.Pair) {
	t.Helper()
	pair, err := pki.NewLeaf(pki.LeafConfig{CommonName: "apiserver", Hosts: []string{"127.0.0.1"}, Usages: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}}, ca, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	certificate := pair.TLS()
	c.serving.Store(&certificate)
}

// publish has cluster-info name authorities in PEM form.
func (c *controlPlane) publish(t *testing.T, authorities ...[]byte) {
	t.Helper()
	config := clientcmdapi.NewConfig()
	config.Clusters[""] = &clientcmdapi.Cluster{Server: "https://elsewhere.example", CertificateAuthorityData: bytes.Join(authorities, nil)}
	data, err := clientcmd.Write(*config)
	if err != nil {
		t.Fatal(err)
	}
	c.info.Store(new(string(data)))
}

// newControlPlane starts a control plane with a certificate of ca, and returns it with a follower whose kubeconfig has a further
// cluster.
func newControlPlane(t *testing.T, ca pki.Pair) (*controlPlane, *follower) {
	t.Helper()
	c := &controlPlane{}
	c.serve(t, ca)
	c.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		info := c.info.Load()
		if info == nil || r.URL.Path != "/api/v1/namespaces/kube-public/configmaps/cluster-info" || len(r.TLS.PeerCertificates) != 0 {
			w.WriteHeader(http.StatusForbidden)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(&corev1.ConfigMap{
			TypeMeta: metav1.TypeMeta{Kind: "ConfigMap", APIVersion: "v1"}, Data: map[string]string{"kubeconfig": *info},
		})
	}))
	c.TLS = &tls.Config{
		MinVersion: tls.VersionTLS12,
		GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) {
			return &tls.Config{Certificates: []tls.Certificate{*c.serving.Load()}, ClientAuth: tls.RequestClientCert, MinVersion: tls.VersionTLS12}, nil
		},
	}
	c.Config.ErrorLog = nil
	c.StartTLS()
	t.Cleanup(c.Close)

	config, err := pki.NewKubeconfig(pki.KubeconfigEntry{
		Context: "m3@plane", Cluster: "plane", User: "m3", Server: c.URL, CA: ca.CertPEM(), Client: leaf(t, ca, time.Hour),
	})
	if err != nil {
		t.Fatal(err)
	}
	config.Contexts["other"] = &clientcmdapi.Context{Cluster: "other", AuthInfo: "m3"}
	config.Clusters["other"] = &clientcmdapi.Cluster{Server: "https://127.0.0.1:1", CertificateAuthorityData: ca.CertPEM()}
	config.CurrentContext = "other"
	return c, newFollower(t, config)
}

func newFollower(t *testing.T, config *clientcmdapi.Config) *follower {
	t.Helper()
	path := filepath.Join(t.TempDir(), "kubeconfig")
	if err := clientcmd.WriteToFile(*config, path); err != nil {
		t.Fatal(err)
	}
	p, err := newPlane(path, "m3@plane", "test", testingclock.NewFakeClock(time.Now()))
	if err != nil {
		t.Fatal(err)
	}
	return &follower{plane: p, store: &fileStore{path: path, context: "m3@plane", name: "m3"}, log: logr.Discard()}
}

// check compares the authorities that are in use and stored.
func (f *follower) check(t *testing.T, want ...pki.Pair) {
	t.Helper()
	var data []byte
	for _, ca := range want {
		data = append(data, ca.CertPEM()...)
	}
	if got := f.plane.credentials.Authorities(); !bytes.Equal(got, data) {
		t.Errorf("in use is\n%s, want\n%s", got, data)
	}
	config, err := clientcmd.LoadFromFile(f.plane.path)
	if err != nil {
		t.Fatal(err)
	}
	if got := config.Clusters["plane"].CertificateAuthorityData; !bytes.Equal(got, data) {
		t.Errorf("stored is\n%s, want\n%s", got, data)
	}
}

// answers reports whether a client of the control plane gets an answer.
func (f *follower) answers(t *testing.T) bool {
	t.Helper()
	api, err := kubernetes.NewForConfig(f.plane.credentials.Config)
	if err != nil {
		t.Fatal(err)
	}
	_, err = api.CoreV1().Namespaces().Get(t.Context(), "default", metav1.GetOptions{})
	if err != nil && !apierrors.IsForbidden(err) {
		t.Log(err)
	}
	return apierrors.IsForbidden(err)
}

func TestFollower_TakesOverTheAuthoritiesOfClusterInfo(t *testing.T) {
	old, next := authority(t), authority(t)
	c, f := newControlPlane(t, old)
	c.publish(t, old.CertPEM())
	if got := f.follow(t.Context()); len(got) == 0 || f.logged != "" {
		t.Errorf("%d authorities, %s", len(got), f.logged)
	}
	f.check(t, old)
	c.publish(t, old.CertPEM(), next.CertPEM())
	f.follow(t.Context())
	f.check(t, old, next)
	// Another order changes what is returned only.
	c.publish(t, next.CertPEM(), old.CertPEM())
	if got := f.follow(t.Context()); len(got) == 0 || !got[0].Equal(next.Cert) {
		t.Errorf("got %v", got)
	}
	f.check(t, old, next)
	c.serve(t, next)
	if !f.answers(t) {
		t.Error("a server of the next authority is refused")
	}
	c.publish(t, next.CertPEM())
	// The certificate of the agent may still be of the old one.
	if got := f.follow(t.Context()); !got[0].Equal(next.Cert) || !slices.ContainsFunc(got, old.Cert.Equal) {
		t.Errorf("got %v", got)
	}
	f.check(t, next)
	if !f.answers(t) {
		t.Error("a server of the next authority is refused")
	}
	c.serve(t, old)
	c.CloseClientConnections()
	if f.answers(t) {
		t.Error("a server of the old authority is accepted")
	}
	// The answer of a server that is not verified does not count.
	c.publish(t, old.CertPEM())
	f.follow(t.Context())
	f.check(t, next)
	config, err := clientcmd.LoadFromFile(f.plane.path)
	if err != nil || !bytes.Equal(config.Clusters["other"].CertificateAuthorityData, old.CertPEM()) || config.Clusters["plane"].Server != c.URL || len(config.AuthInfos["m3"].ClientKeyData) == 0 {
		t.Errorf("something else changed: %v, %v", config, err)
	}
}

func TestFollower_KeepsTheAuthorities(t *testing.T) {
	old, next := authority(t), authority(t)
	many := [][]byte{old.CertPEM()}
	for range maxAuthorities {
		many = append(many, authority(t).CertPEM())
	}
	damaged := bytes.Replace(next.CertPEM(), []byte("MII"), []byte("AAA"), 1)
	for name, change := range map[string]func(c *controlPlane){
		"missing":            func(*controlPlane) {},
		"empty":              func(c *controlPlane) { c.info.Store(new("")) },
		"no kubeconfig":      func(c *controlPlane) { c.info.Store(new("{")) },
		"no certificate":     func(c *controlPlane) { c.publish(t) },
		"text":               func(c *controlPlane) { c.publish(t, []byte("nonsense")) },
		"one is damaged":     func(c *controlPlane) { c.publish(t, old.CertPEM(), damaged) },
		"too many":           func(c *controlPlane) { c.publish(t, many...) },
		"none of the server": func(c *controlPlane) { c.publish(t, next.CertPEM()) },
		"of another name": func(c *controlPlane) {
			c.publish(t, old.CertPEM(), next.CertPEM())
			c.info.Store(new(strings.Replace(*c.info.Load(), `name: ""`, "name: x", 1)))
		},
	} {
		t.Run(name, func(t *testing.T) {
			c, f := newControlPlane(t, old)
			change(c)
			messages := 0
			f.log = funcr.New(func(_, _ string) { messages++ }, funcr.Options{})
			for range 3 {
				if got := f.follow(t.Context()); got != nil {
					t.Errorf("got %v", got)
				}
			}
			f.check(t, old)
			if !f.answers(t) || messages != 1 {
				t.Errorf("%d messages, want 1 and an answer", messages)
			}
		})
	}
}

// Authorities that the kubeconfig does not have itself are those of its owner.
func TestFollower_AuthoritiesOfOthers(t *testing.T) {
	old, next := authority(t), authority(t)
	c, _ := newControlPlane(t, old)
	c.publish(t, old.CertPEM(), next.CertPEM())
	file := filepath.Join(t.TempDir(), "ca.crt")
	if err := os.WriteFile(file, old.CertPEM(), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func(c *clientcmdapi.Cluster){
		"a file":       func(c *clientcmdapi.Cluster) { c.CertificateAuthority = file },
		"not verified": func(c *clientcmdapi.Cluster) { c.InsecureSkipTLSVerify = true },
		"no TLS": func(c *clientcmdapi.Cluster) {
			c.Server, c.CertificateAuthorityData = strings.Replace(c.Server, "https", "http", 1), old.CertPEM()
		},
	} {
		t.Run(name, func(t *testing.T) {
			config, err := pki.NewKubeconfig(pki.KubeconfigEntry{
				Context: "m3@plane", Cluster: "plane", User: "m3", Server: c.URL, Client: leaf(t, old, time.Hour),
			})
			if err != nil {
				t.Fatal(err)
			}
			change(config.Clusters["plane"])
			f := newFollower(t, config)
			before, err := os.ReadFile(f.plane.path)
			if err != nil {
				t.Fatal(err)
			}
			if got := f.follow(t.Context()); got != nil {
				t.Errorf("got %v", got)
			}
			after, err := os.ReadFile(f.plane.path)
			if err != nil || !bytes.Equal(before, after) || bytes.Contains(f.plane.credentials.Authorities(), next.CertPEM()) {
				t.Errorf("the kubeconfig changed, or the next authority is used: %v", err)
			}
		})
	}
}

func TestSecretStore_AuthoritiesAndCertificateOfOneKubeconfig(t *testing.T) {
	old, next := authority(t), authority(t)
	_, f := newControlPlane(t, old)
	data, err := os.ReadFile(f.plane.path)
	if err != nil {
		t.Fatal(err)
	}
	api := fake.NewClientset(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "karmada-system", Name: kubeconfigSecret}, Data: map[string][]byte{kubeconfigSecret: data}})
	conflicts := 1
	api.PrependReactor("update", "secrets", func(clienttesting.Action) (bool, runtime.Object, error) {
		conflicts--
		return conflicts >= 0, nil, apierrors.NewConflict(schema.GroupResource{Resource: "secrets"}, kubeconfigSecret, nil)
	})
	store, err := openStore(t.Context(), f.plane, api.CoreV1(), "karmada-system", "m3")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []contents{{authorities: next.CertPEM()}, {certificate: []byte("certificate"), key: []byte("key")}} {
		if err := store.write(t.Context(), c); err != nil {
			t.Fatal(err)
		}
	}
	secret, err := api.CoreV1().Secrets("karmada-system").Get(t.Context(), kubeconfigSecret, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	config, err := clientcmd.Load(secret.Data[kubeconfigSecret])
	if err != nil || !bytes.Equal(config.Clusters["plane"].CertificateAuthorityData, next.CertPEM()) || string(config.AuthInfos["m3"].ClientCertificateData) != "certificate" ||
		!bytes.Equal(config.Clusters["other"].CertificateAuthorityData, old.CertPEM()) {
		t.Errorf("got %v, %v", config, err)
	}
}

func TestRotation_AnotherAuthoritySigns(t *testing.T) {
	s := &signer{life: 2 * time.Hour}
	r, _ := newRotation(t, 3*time.Hour, s)
	old, next, foreign := s.ca, authority(t), authority(t)
	now := testingclock.NewFakeClock(time.Now())
	r.clock, r.threshold = now, 0
	check := func(requests int, by pki.Pair, bundle ...*x509.Certificate) {
		t.Helper()
		r.bundle = bundle
		_, err := r.check(t.Context())
		if len(s.requests) != requests || r.credentials.Leaf().CheckSignatureFrom(by.Cert) != nil {
			t.Fatalf("%d requests, want %d; %v", len(s.requests), requests, err)
		}
	}
	check(0, old)
	check(0, old, old.Cert, next.Cert)
	check(0, old, foreign.Cert)            // clients have an authority of their own
	check(0, old, foreign.Cert, next.Cert) // also when that of servers changes
	// The controller that signs has not read the next one yet.
	check(1, old, next.Cert, old.Cert)
	check(1, old, next.Cert, old.Cert)
	now.Step(signerRetry)
	check(2, old, next.Cert, old.Cert)
	for range 3600 {
		now.Step(time.Second)
		_, _ = r.check(t.Context())
	}
	if n := len(s.requests); n < 10 || n > 20 {
		t.Errorf("%d requests in an hour", n)
	}
}

func TestRotation_CertificateOfTheNextAuthority(t *testing.T) {
	s := &signer{life: time.Hour}
	r, path := newRotation(t, time.Hour, s)
	old, next := s.ca, authority(t)
	r.threshold, r.bundle = 0, []*x509.Certificate{next.Cert, old.Cert}
	s.ca = next
	for range 2 {
		if _, err := r.check(t.Context()); err != nil || len(s.requests) != 1 {
			t.Fatalf("%d requests, %v", len(s.requests), err)
		}
	}
	config, err := clientcmd.LoadFromFile(path)
	if err != nil {
		t.Fatal(err)
	}
	stored, err := pki.ParseCert(config.AuthInfos["m3"].ClientCertificateData)
	if err != nil || stored.CheckSignatureFrom(next.Cert) != nil || !stored.Equal(r.credentials.Leaf()) {
		t.Errorf("stored %v, in use %v, %v", stored, r.credentials.Leaf(), err)
	}
}

func TestNewLease_ReportsTheCertificate(t *testing.T) {
	old, next := authority(t), authority(t)
	p, _ := openPlane(t, leaf(t, old, time.Hour), old)
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{
		Namespace: clusterv1alpha1.NamespaceKarmadaCluster, Name: "m3", OwnerReferences: []metav1.OwnerReference{{Name: "m3"}},
	}}
	api := fake.NewClientset(lease)
	o := NewOptions()
	o.ClusterName, o.plane, o.LeaseDuration = "m3", p, 100*time.Millisecond
	go newLease(t.Context(), &agent{options: o, kube: api}).Run(t.Context())
	await := func(ca pki.Pair, trusted ...pki.Pair) {
		t.Helper()
		var status agentcert.Status
		for range 200 {
			got, err := api.CoordinationV1().Leases(lease.Namespace).Get(t.Context(), "m3", metav1.GetOptions{})
			if err != nil {
				t.Fatal(err)
			}
			if status, err = agentcert.StatusIn(got); err != nil {
				t.Fatal(err)
			}
			if status.Uses(ca.Cert) && len(status.Trusts) == len(trusted) && status.NotAfter.Equal(p.credentials.Leaf().NotAfter) {
				return
			}
			time.Sleep(20 * time.Millisecond)
		}
		t.Fatalf("the Lease has %v", status)
	}
	await(old, old)
	if err := p.credentials.UseAuthorities(append(old.CertPEM(), next.CertPEM()...)); err != nil {
		t.Fatal(err)
	}
	await(old, old, next)
	fresh := leaf(t, next, 2*time.Hour).TLS()
	p.credentials.Use(&fresh)
	await(next, old, next)
}

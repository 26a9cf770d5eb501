package certs

import (
	"bytes"
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/tools/clientcmd"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/karmada-toolkit/karmada/internal/kube"
	"github.com/karmada-toolkit/karmada/internal/pki"
	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
	"github.com/karmada-toolkit/karmada/pkg/apis/names"
	"github.com/karmada-toolkit/karmada/pkg/member/registration/agentcert"
)

var scheme = kube.NewScheme()

var start = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// site is an installation in memory: its contents by SECRET/KEY, its control plane, and what its processes use.
type site struct {
	t    *testing.T
	data map[string][]byte
	cp   client.Client
	// used is what the processes read last.
	used  map[string][]byte
	state map[string][]byte
	// fail ends the run at a call that changes something: 1 is the next one. 0 means never.
	fail      int
	rolledOut []restarts
	// keepsKey is the file whose key is used for something else too.
	keepsKey string
	// now is when certificates are verified; zero is when all are valid.
	now      time.Time
	keptText map[string]string
}

var errKilled = errors.New("killed")

func (s *site) step() error {
	if s.fail--; s.fail == 0 {
		return errKilled
	}
	return nil
}

func (s *site) own(context.Context) (*inventory, error) {
	out := &inventory{}
	for _, key := range sortedKeys(s.data) {
		name, file, _ := strings.Cut(key, "/")
		c := &content{Place: Place{Kind: "Secret", Namespace: "karmada-system", Name: name, Key: file}, data: s.data[key], set: func([]byte) {}, signs: name == "karmada-cert", keepsKey: file == s.keepsKey}
		c.holder = &holder{save: func(context.Context) error {
			if err := s.step(); err != nil {
				return err
			}
			s.data[key] = c.data
			return nil
		}}
		if len(c.pieces()) > 0 {
			out.contents = append(out.contents, c)
		}
	}
	return out, nil
}

func (s *site) connect(context.Context) (client.Client, error) { return s.cp, nil }
func (s *site) kept(_ context.Context, a named) (string, error) {
	return s.keptText[a.Cert.Subject.CommonName], nil
}
func (s *site) load(context.Context) (map[string][]byte, error) { return s.state, nil }

func (s *site) store(_ context.Context, state map[string][]byte) error {
	if err := s.step(); err != nil {
		return err
	}
	s.state = state
	return nil
}

// rollOut has one half of the processes read what is there, then the other: after each they understand each other.
func (s *site) rollOut(_ context.Context, which restarts) error {
	s.rolledOut = append(s.rolledOut, which)
	keys := sortedKeys(s.data)
	for _, half := range [][]string{keys[:len(keys)/2], keys[len(keys)/2:]} {
		if err := s.step(); err != nil {
			return err
		}
		for _, key := range half {
			s.used[key] = s.data[key]
		}
		s.understand()
	}
	return nil
}

// understand verifies that every certificate that a process uses, or that is there, is accepted by every process that trusts its authority.
func (s *site) understand() {
	s.t.Helper()
	if !s.now.IsZero() {
		return // nothing is accepted until the end
	}
	families := map[string][]*x509.CertPool{}
	for _, contents := range []map[string][]byte{s.used, s.data} {
		for key, data := range contents {
			if _, file, _ := strings.Cut(key, "/"); file == "ca.crt" || file == "front-proxy-ca.crt" {
				pool := x509.NewCertPool()
				pool.AppendCertsFromPEM(data)
				families[file] = append(families[file], pool)
			}
		}
	}
	for _, c := range readControlPlane(s.t.Context(), s.cp).contents {
		if c.Kind == "APIService" || c.Kind == "MutatingWebhookConfiguration" {
			pool := x509.NewCertPool()
			pool.AppendCertsFromPEM(c.data)
			families["ca.crt"] = append(families["ca.crt"], pool)
		}
	}
	for _, contents := range []map[string][]byte{s.used, s.data} {
		for key, data := range contents {
			family := map[string]string{"apiserver.crt": "ca.crt", "tls.crt": "ca.crt", "admin.crt": "ca.crt", "front-proxy-client.crt": "front-proxy-ca.crt"}[key[strings.Index(key, "/")+1:]]
			if family == "" || strings.HasPrefix(key, "foreign") {
				continue
			}
			c := &content{data: data}
			intermediates := x509.NewCertPool()
			for _, p := range c.pieces()[1:] {
				intermediates.AddCert(p.cert)
			}
			for _, pool := range families[family] {
				_, err := c.pieces()[0].cert.Verify(x509.VerifyOptions{Roots: pool, Intermediates: intermediates, CurrentTime: start.Add(48 * time.Hour), KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageAny}})
				if err != nil {
					s.t.Errorf("%s is not accepted: %v", key, err)
				}
			}
		}
	}
}

// newSite returns an installation with two authorities, a server, an administrator, a webhook with a Secret of its own, a component with a
// kubeconfig, and a certificate of another authority.
func newSite(t *testing.T) *site {
	t.Helper()
	s := &site{t: t, data: map[string][]byte{}, used: map[string][]byte{}}
	put := func(name string, pair pki.Pair, err error) pki.Pair {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		key, err := pair.KeyPEM()
		if err != nil {
			t.Fatal(err)
		}
		s.data["karmada-cert/"+name+".crt"], s.data["karmada-cert/"+name+".key"] = pair.CertPEM(), key
		return pair
	}
	authority := func(name, common string) pki.Pair {
		pair, err := pki.NewCA(pki.CAConfig{CommonName: common}, nil, start)
		return put(name, pair, err)
	}
	ca, proxy := authority("ca", "karmada"), authority("front-proxy-ca", "front-proxy-ca")
	leaf := func(name string, signer pki.Pair, cfg pki.LeafConfig) pki.Pair {
		pair, err := pki.NewLeaf(cfg, signer, start)
		return put(name, pair, err)
	}
	leaf("apiserver", ca, pki.LeafConfig{CommonName: "karmada-apiserver", Hosts: []string{"localhost", "10.0.0.1"}})
	leaf("admin", ca, pki.LeafConfig{CommonName: "system:admin", Organization: []string{"system:masters"}, Usages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}})
	leaf("front-proxy-client", proxy, pki.LeafConfig{CommonName: "front-proxy-client", Usages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}})
	leaf("etcd-server", ca, pki.LeafConfig{CommonName: "karmada-etcd-server"})
	webhook := leaf("karmada-webhook", ca, pki.LeafConfig{CommonName: "karmada-webhook", Usages: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}})
	s.data["karmada-cert/signing-ca.crt"] = ca.CertPEM()
	s.data["karmada-webhook-cert/tls.crt"], s.data["karmada-webhook-cert/tls.key"] = s.data["karmada-cert/karmada-webhook.crt"], s.data["karmada-cert/karmada-webhook.key"]
	scheduler := leaf("karmada-scheduler-client", ca, pki.LeafConfig{CommonName: "system:karmada:scheduler", Usages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}})
	cfg, err := pki.NewKubeconfig(pki.KubeconfigEntry{Context: "karmada", Server: "https://10.0.0.1", CA: ca.CertPEM(), Client: scheduler})
	if err != nil {
		t.Fatal(err)
	}
	kubeconfig, err := clientcmd.Write(*cfg)
	if err != nil {
		t.Fatal(err)
	}
	s.data["karmada-scheduler-config/karmada.config"] = kubeconfig
	other, err := pki.NewCA(pki.CAConfig{CommonName: "other"}, nil, start)
	if err != nil {
		t.Fatal(err)
	}
	foreign := leaf("foreign", other, pki.LeafConfig{CommonName: "foreign"})
	s.data["foreign/tls.crt"] = foreign.CertPEM()
	key, err := pki.NewKey(pki.ECDSA)
	if err != nil {
		t.Fatal(err)
	}
	if s.data["karmada-cert/service-account.key"], err = pki.EncodeKey(key); err != nil {
		t.Fatal(err)
	}
	info := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-public", Name: "cluster-info"}, Data: map[string]string{"kubeconfig": string(kubeconfig)}}
	api := &apiregistrationv1.APIService{ObjectMeta: metav1.ObjectMeta{Name: "v1alpha1.cluster.karmada.io"}, Spec: apiregistrationv1.APIServiceSpec{CABundle: ca.CertPEM()}}
	hooks := &admissionregistrationv1.MutatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: "mutating-config"}, Webhooks: []admissionregistrationv1.MutatingWebhook{
		{Name: "a.karmada.io", ClientConfig: admissionregistrationv1.WebhookClientConfig{CABundle: ca.CertPEM()}},
		{Name: "b.karmada.io", ClientConfig: admissionregistrationv1.WebhookClientConfig{CABundle: ca.CertPEM()}},
	}}
	s.cp = fake.NewClientBuilder().WithScheme(scheme).WithObjects(info, api, hooks).Build()
	_ = webhook
	maps.Copy(s.used, s.data)
	return s
}

// agent registers a cluster in Pull mode, whose agent reports a status.
func (s *site) agent(cluster string, status agentcert.Status) {
	s.t.Helper()
	c := &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: cluster}, Spec: clusterv1alpha1.ClusterSpec{SyncMode: clusterv1alpha1.Pull}}
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: clusterv1alpha1.NamespaceKarmadaCluster, Name: cluster}}
	if status.Serial != "" {
		lease.Annotations = map[string]string{agentcert.StatusAnnotation: status.String()}
	}
	for _, o := range []client.Object{c, lease} {
		if err := s.cp.Create(s.t.Context(), o); err != nil {
			s.t.Fatal(err)
		}
	}
}

func (s *site) cert(key string) *x509.Certificate {
	s.t.Helper()
	c, err := pki.ParseCert(s.data[key])
	if err != nil {
		s.t.Fatalf("%s: %v", key, err)
	}
	return c
}

func options(now time.Time) Options {
	return Options{Program: "karmadactl", Now: func() time.Time { return now }, AgentTimeout: time.Millisecond}
}

func TestRenew_ReplacesEveryCopy(t *testing.T) {
	s := newSite(t)
	s.keepsKey = "etcd-server.crt"
	before := maps.Clone(s.data)
	out, err := Renew(t.Context(), s, options(start.Add(24*time.Hour)))
	if err != nil {
		t.Fatal(err)
	}
	if len(out.Renewed) != 6 {
		t.Errorf("renewed %q", out.Renewed)
	}
	for key, data := range s.data {
		same := strings.Contains(key, "ca.") || strings.Contains(key, "foreign") || strings.Contains(key, "service-account") || strings.HasSuffix(key, "etcd-server.key")
		if bytes.Equal(before[key], data) != same {
			t.Errorf("%s: same is %t, want %t", key, !same, same)
		}
	}
	if !bytes.Equal(s.data["karmada-cert/karmada-webhook.crt"], s.data["karmada-webhook-cert/tls.crt"]) {
		t.Error("two copies have different successors")
	}
	cfg, err := clientcmd.Load(s.data["karmada-scheduler-config/karmada.config"])
	if err != nil {
		t.Fatal(err)
	}
	if user := cfg.AuthInfos["karmada"]; !bytes.Equal(user.ClientCertificateData, s.data["karmada-cert/karmada-scheduler-client.crt"]) || !bytes.Equal(user.ClientKeyData, s.data["karmada-cert/karmada-scheduler-client.key"]) {
		t.Error("the kubeconfig has another certificate or key")
	}
	got := s.cert("karmada-cert/apiserver.crt")
	if diff := cmp.Diff([]string{"localhost"}, got.DNSNames); diff != "" || got.IPAddresses[0].String() != "10.0.0.1" || !got.NotAfter.Equal(start.Add(24*time.Hour+pki.DefaultValidity)) {
		t.Errorf("names %v, addresses %v, until %s", got.DNSNames, got.IPAddresses, got.NotAfter)
	}
	if _, err := pki.ParsePair(s.data["karmada-cert/apiserver.crt"], s.data["karmada-cert/apiserver.key"]); err != nil {
		t.Error(err)
	}
	s.understand()
}

// Two authorities each have a certificate of the same name.
func TestRenew_KeepsToTheAuthority(t *testing.T) {
	s := newSite(t)
	proxy, err := pki.ParsePair(s.data["karmada-cert/front-proxy-ca.crt"], s.data["karmada-cert/front-proxy-ca.key"])
	if err != nil {
		t.Fatal(err)
	}
	admin, err := pki.NewLeaf(pki.LeafConfig{CommonName: "system:admin", Organization: []string{"system:masters"}, Usages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}, proxy, start)
	if err != nil {
		t.Fatal(err)
	}
	key, err := admin.KeyPEM()
	if err != nil {
		t.Fatal(err)
	}
	s.data["other/x.crt"], s.data["other/x.key"] = admin.CertPEM(), key
	if _, err := Renew(t.Context(), s, options(start.Add(time.Hour))); err != nil {
		t.Fatal(err)
	}
	if err := s.cert("other/x.crt").CheckSignatureFrom(proxy.Cert); err != nil {
		t.Error(err)
	}
	s.understand()
}

func TestRenew_Only(t *testing.T) {
	s := newSite(t)
	before := maps.Clone(s.data)
	o := options(start.Add(time.Hour))
	o.Only = []string{"etcd", "karmada-webhook"}
	if _, err := Renew(t.Context(), s, o); err != nil {
		t.Fatal(err)
	}
	var changed []string
	for _, key := range sortedKeys(s.data) {
		if !bytes.Equal(before[key], s.data[key]) && strings.HasSuffix(key, ".crt") {
			changed = append(changed, key)
		}
	}
	if diff := cmp.Diff([]string{"karmada-cert/etcd-server.crt", "karmada-cert/karmada-webhook.crt", "karmada-webhook-cert/tls.crt"}, changed); diff != "" {
		t.Error(diff)
	}
	o.Only = []string{"etc"}
	if _, err := Renew(t.Context(), s, o); err == nil || !strings.Contains(err.Error(), `no certificate "etc"; there are admin, apiserver, etcd-server`) {
		t.Errorf("an unknown name: %v", err)
	}
}

func TestRenew_EndedOnesAreRestarted(t *testing.T) {
	s := newSite(t)
	if _, err := Renew(t.Context(), s, options(start.Add(pki.DefaultValidity+time.Hour))); err != nil {
		t.Fatal(err)
	}
	if s.rolledOut[0] != restartAll {
		t.Error("the processes are not restarted")
	}
}

func TestRenew_AuthorityWithoutKey(t *testing.T) {
	s := newSite(t)
	delete(s.data, "karmada-cert/ca.key")
	_, err := Renew(t.Context(), s, options(start.Add(time.Hour)))
	if err == nil || !strings.Contains(err.Error(), `the authority "karmada", whose key the installation does not have: give its file with --ca-key-file`) {
		t.Error(err)
	}
}

// A change of authorities is ended at each call that changes something, and run again. At each point all that run understand each other.
func TestRenewAuthorities_KilledAnywhere(t *testing.T) {
	calls := 0
	for kill := 0; kill == 0 || kill <= calls; kill++ {
		t.Run(fmt.Sprint(kill), func(t *testing.T) {
			s := newSite(t)
			s.agent("old", agentcert.Status{})
			old := s.cert("karmada-cert/ca.crt")
			s.fail = kill
			run := func() error {
				if _, err := RenewAuthorities(t.Context(), s, options(start.Add(24*time.Hour))); err != nil {
					return err
				}
				_, err := Finish(t.Context(), s, options(start.Add(25*time.Hour)), true)
				return err
			}
			err := run()
			if kill == 0 {
				calls = -s.fail
			} else {
				if !errors.Is(err, errKilled) {
					t.Fatalf("not killed: %v", err)
				}
				s.understand()
				if s.state != nil && decoded(t, s).Step == StepFinishing {
					_, err = Finish(t.Context(), s, options(start.Add(26*time.Hour)), true)
				} else if err = run(); err != nil && s.state == nil {
					err = nil // it was finished, and killed after that
				}
			}
			if err != nil {
				t.Fatal(err)
			}
			s.understand()
			for key, data := range s.data {
				c := &content{Place: Place{Key: key}, data: data}
				for _, p := range c.pieces() {
					if p.cert != nil && (p.cert.Equal(old) || !strings.Contains(key, "foreign") && p.cert.CheckSignatureFrom(old) == nil) {
						t.Errorf("%s has something of the old authority", key)
					}
				}
			}
			for _, c := range readControlPlane(t.Context(), s.cp).contents {
				if !bytes.Contains(c.data, nil) || len(c.pieces()) == 0 || slices.ContainsFunc(c.pieces(), func(p piece) bool { return p.cert != nil && p.cert.Equal(old) }) {
					t.Errorf("%s has the old authority", c.Place)
				}
			}
			if _, err := pki.ParsePair(s.data["karmada-cert/ca.crt"], s.data["karmada-cert/ca.key"]); err != nil {
				t.Error(err)
			}
			if s.state != nil {
				t.Error("the state is left")
			}
		})
	}
	if calls < 20 {
		t.Errorf("there were %d calls that change something", calls)
	}
}

func decoded(t *testing.T, s *site) *Renewal {
	t.Helper()
	r, err := decodeRenewal(s.state)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestRenewAuthorities_Steps(t *testing.T) {
	s := newSite(t)
	old := s.cert("karmada-cert/ca.crt")
	out, err := RenewAuthorities(t.Context(), s, options(start.Add(24*time.Hour)))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(&Result{Renewed: out.Renewed, Authorities: []string{"karmada", "front-proxy-ca"}, Step: StepIssued}, out); diff != "" {
		t.Error(diff)
	}
	// The one that signs is the first, and alone for the signer.
	ca := &content{data: s.data["karmada-cert/ca.crt"]}
	if got := ca.pieces(); len(got) != 2 || got[0].cert.Equal(old) || !got[1].cert.Equal(old) {
		t.Errorf("ca.crt has %d certificates", len(got))
	}
	if got := (&content{data: s.data["karmada-cert/signing-ca.crt"]}).pieces(); len(got) != 1 || got[0].cert.Equal(old) {
		t.Errorf("signing-ca.crt has %d certificates", len(got))
	}
	// Renewing again keeps to the new authority.
	if _, err := Renew(t.Context(), s, options(start.Add(30*time.Hour))); err != nil {
		t.Fatal(err)
	}
	s.understand()
	report, err := Check(t.Context(), s)
	if err != nil || report.Renewal == nil || report.Renewal.Step != StepIssued || len(report.Renewal.Done) != 3 {
		t.Errorf("the report has %+v, %v", report.Renewal, err)
	}
}

// With an authority that has ended nothing works; processes are restarted with both authorities, and then with certificates of the new one.
func TestRenewAuthorities_Ended(t *testing.T) {
	s := newSite(t)
	now := start.Add(pki.CAValidity + time.Hour)
	if _, err := Renew(t.Context(), s, options(now)); err == nil || !strings.Contains(err.Error(), `the authority "karmada" ended at 2035-12-30T00:00:00Z, so that it can sign no more: run karmadactl certs renew --ca`) {
		t.Errorf("without new authorities: %v", err)
	}
	s.now = now
	if _, err := RenewAuthorities(t.Context(), s, options(now)); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(s.rolledOut, []restarts{restartAll, restartAll}) {
		t.Errorf("the processes are waited for %+v", s.rolledOut)
	}
	if c := s.cert("karmada-cert/apiserver.crt"); !c.NotAfter.Equal(now.Add(pki.DefaultValidity)) {
		t.Errorf("the API server's is valid until %s", c.NotAfter)
	}
}

func TestRenewAuthorities_Kept(t *testing.T) {
	s := newSite(t)
	s.keptText = map[string]string{"front-proxy-ca": "because"}
	out, err := RenewAuthorities(t.Context(), s, options(start.Add(24*time.Hour)))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"the authority front-proxy-ca is kept: because"}, out.Notes); diff != "" {
		t.Error(diff)
	}
}

func TestFinish_WaitsForAgents(t *testing.T) {
	s := newSite(t)
	s.agent("silent", agentcert.Status{})
	s.agent("slow", agentcert.Status{Serial: "1", NotAfter: start.AddDate(1, 0, 0), Trusts: []string{"sha256:00"}})
	if _, err := Finish(t.Context(), s, options(start), false); err == nil || !strings.Contains(err.Error(), "nothing to finish") {
		t.Error(err)
	}
	out, err := RenewAuthorities(t.Context(), s, options(start.Add(24*time.Hour)))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"silent", "slow"}, out.Waiting); diff != "" {
		t.Error(diff)
	}
	_, err = Finish(t.Context(), s, options(start.Add(25*time.Hour)), false)
	if err == nil || !strings.Contains(err.Error(), "the agents of silent, slow do not use the new authority") {
		t.Fatal(err)
	}
	pin := pki.Pin(s.cert("karmada-cert/ca.crt"))
	for _, cluster := range []string{"silent", "slow"} {
		lease := &coordinationv1.Lease{}
		if err := s.cp.Get(t.Context(), client.ObjectKey{Namespace: clusterv1alpha1.NamespaceKarmadaCluster, Name: cluster}, lease); err != nil {
			t.Fatal(err)
		}
		lease.Annotations = map[string]string{agentcert.StatusAnnotation: agentcert.Status{Serial: "2", NotAfter: start.AddDate(1, 0, 0), Authority: pin, Trusts: []string{pin}}.String()}
		if err := s.cp.Update(t.Context(), lease); err != nil {
			t.Fatal(err)
		}
	}
	if out, err = Finish(t.Context(), s, options(start.Add(25*time.Hour)), false); err != nil || out.Step != "" {
		t.Error(out, err)
	}
}

func TestRenewAuthorities_Custom(t *testing.T) {
	s := newSite(t)
	custom, err := pki.NewCA(pki.CAConfig{CommonName: "Example Inc."}, nil, start)
	if err != nil {
		t.Fatal(err)
	}
	key, err := custom.KeyPEM()
	if err != nil {
		t.Fatal(err)
	}
	s.data["karmada-cert/ca.crt"], s.data["karmada-cert/ca.key"] = custom.CertPEM(), key
	_, err = RenewAuthorities(t.Context(), s, options(start.Add(time.Hour)))
	if err == nil || !strings.Contains(err.Error(), `the authority "Example Inc." was given by a user: give the new one with --ca-cert-file and --ca-key-file`) {
		t.Error(err)
	}
	if s.state != nil {
		t.Error("something was begun")
	}
	state, err := (&Renewal{changes: []change{{old: custom.Cert, new: custom}}}).encode()
	if err != nil {
		t.Fatal(err)
	}
	for key := range state {
		if problems := validation.IsConfigMapKey(key); len(problems) > 0 {
			t.Errorf("a Secret cannot have the key %q: %v", key, problems)
		}
	}
}

func TestCheck(t *testing.T) {
	s := newSite(t)
	s.agent("m1", agentcert.Status{Serial: "7", NotAfter: start.AddDate(0, 0, 1), Issuer: "karmada"})
	r, err := Check(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	if got := r.Ends(start.AddDate(0, 0, 2)); len(got) != 1 || got[0].Subject != names.AgentUser("m1") {
		t.Errorf("the first to end are %v", got)
	}
	i := slices.IndexFunc(r.Certificates, func(c Certificate) bool { return c.Authority && c.Subject == "karmada" })
	var where []string
	for _, p := range r.Certificates[i].Places {
		where = append(where, p.String())
	}
	want := []string{
		"Secret karmada-system/karmada-cert ca.crt", "Secret karmada-system/karmada-cert signing-ca.crt",
		"Secret karmada-system/karmada-scheduler-config karmada.config (cluster karmada)", "ConfigMap kube-public/cluster-info kubeconfig (cluster karmada)",
		"APIService v1alpha1.cluster.karmada.io caBundle", "MutatingWebhookConfiguration mutating-config a.karmada.io caBundle",
		"MutatingWebhookConfiguration mutating-config b.karmada.io caBundle",
	}
	if diff := cmp.Diff(want, where); diff != "" {
		t.Error(diff)
	}
	if len(r.Keys) != 1 || r.Keys[0].Name != "service-account" {
		t.Errorf("keys %v", r.Keys)
	}
}

package controllermanager

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/karmada-toolkit/karmada/internal/build"
	"github.com/karmada-toolkit/karmada/internal/pki"
	"github.com/karmada-toolkit/karmada/internal/testenv/memory"
	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
	"github.com/karmada-toolkit/karmada/pkg/apis/names"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/env"
	"github.com/karmada-toolkit/karmada/pkg/member/registration/agentcert"
)

var start = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

const days = 24 * time.Hour

// agentsOf are certificates of as many agents that end after a time.
func agentsOf(n int, after time.Duration) []certificate {
	var out []certificate
	for i := range n {
		out = append(out, certificate{key: fmt.Sprint("of-agent-m", i), subject: fmt.Sprint("m", i), issuer: "ca", place: "that of an agent", notAfter: start.Add(after)})
	}
	return out
}

func TestCertificateEvents_Messages(t *testing.T) {
	plane := certificate{key: "p", subject: "plane", issuer: "ca", place: "the API server; renew it"}
	at := func(c certificate, after time.Duration) certificate { c.notAfter = start.Add(after); return c }
	const renew = "the API server; renew it"
	for name, tc := range map[string]struct {
		known certificate
		want  string // reason and message
	}{
		"31 days":     {at(plane, 31*days), ""},
		"29 days":     {at(plane, 29*days), "CertificateEnding certificate plane of issuer ca ends at 2026-01-30T00:00:00Z: " + renew},
		"now":         {at(plane, 0), "CertificateEnded certificate plane of issuer ca ended at 2026-01-01T00:00:00Z: " + renew},
		"long ago":    {at(plane, -400*days), "CertificateEnded certificate plane of issuer ca ended at 2024-11-27T00:00:00Z: " + renew},
		"of no issue": {certificate{}, ""},
		"of an agent": {agentsOf(1, days)[0], "CertificateEnding certificate m0 of issuer ca ends at 2026-01-02T00:00:00Z: that of an agent"},
		"hostile": {certificate{subject: "m", issuer: "\x1b[2J\n" + strings.Repeat("a", 4000), place: "that of an agent", notAfter: start},
			"CertificateEnded certificate m of issuer [2J " + strings.Repeat("a", 121) + "... ended at 2026-01-01T00:00:00Z: that of an agent"},
	} {
		t.Run(name, func(t *testing.T) {
			got := ""
			for _, e := range certificateEvents(start, []certificate{tc.known}, nil) {
				got += e.Reason + " " + e.Message
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// written returns events as they are stored.
func written(events []*corev1.Event) (out []corev1.Event) {
	for _, e := range events {
		stored := *e
		stored.ResourceVersion = "1"
		out = append(out, stored)
	}
	return out
}

func TestCertificateEvents_OneADay(t *testing.T) {
	known := agentsOf(1, days)
	first := certificateEvents(start, known, nil)
	if got := certificateEvents(start.Add(time.Minute), known, written(first)); len(got) != 0 {
		t.Errorf("another leader writes %v", got)
	}
	known[0].issuer, known[0].notAfter = "another", start.Add(2*time.Hour)
	again := certificateEvents(start.Add(time.Hour), known, written(first))
	if len(again) != 1 || again[0].Name != first[0].Name || again[0].Count != 2 || again[0].ResourceVersion == "" || !again[0].FirstTimestamp.Time.Equal(start) {
		t.Errorf("an hour later: %v", again)
	}
	if got := certificateEvents(start.Add(24*time.Hour), known, written(again)); len(got) != 1 || got[0].Name == first[0].Name || got[0].Count != 1 {
		t.Errorf("a day later: %v", got)
	}
}

func TestCertificateEvents_Many(t *testing.T) {
	known := agentsOf(60, days)
	first := certificateEvents(start, known, nil)
	if len(first) != maxCertificates+1 || !strings.HasPrefix(first[len(first)-1].Message, "10 more certificates end ") {
		t.Fatalf("%d events, %s", len(first), first[len(first)-1].Message)
	}
	// Others than before.
	slices.Reverse(known)
	for _, e := range certificateEvents(start.Add(time.Hour), known, written(first)) {
		if e.ResourceVersion == "" {
			t.Errorf("one more event: %s", e.Message)
		}
	}
}

// newPlane starts an API server, and returns its address and a transport whose client certificate ends soon.
func newPlane(t *testing.T) (string, http.RoundTripper) {
	t.Helper()
	now := time.Now()
	ca, err := pki.NewCA(pki.CAConfig{CommonName: "ca"}, nil, now)
	if err != nil {
		t.Fatal(err)
	}
	leaf := func(name string, validity time.Duration) tls.Certificate {
		pair, err := pki.NewLeaf(pki.LeafConfig{
			CommonName: name, Hosts: []string{"127.0.0.1"}, Validity: validity, Usages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth},
		}, ca, now)
		if err != nil {
			t.Fatal(err)
		}
		return pair.TLS()
	}
	server := httptest.NewUnstartedServer(http.NotFoundHandler())
	server.TLS, server.EnableHTTP2 = &tls.Config{Certificates: []tls.Certificate{leaf("apiserver", 29*days)}}, true
	server.StartTLS()
	t.Cleanup(server.Close)
	own, roots := leaf("controller-manager", 28*days), x509.NewCertPool()
	roots.AddCert(ca.Cert)
	return server.URL, &http.Transport{TLSClientConfig: &tls.Config{
		RootCAs: roots, NextProtos: []string{"h2"}, GetClientCertificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &own, nil },
	}}
}

func TestRecordCertificates(t *testing.T) {
	lease := func(name, annotation string) client.Object {
		return &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: "karmada-cluster", Name: name, Annotations: map[string]string{agentcert.StatusAnnotation: annotation}}}
	}
	cluster := func(name string, mode clusterv1alpha1.ClusterSyncMode) client.Object {
		c := build.Cluster(name)
		c.Spec.SyncMode = mode
		return c
	}
	said := agentcert.Status{NotAfter: time.Now().Add(days), Serial: "1", Issuer: "ca"}.String()
	b := memory.New(t, cluster("pull", clusterv1alpha1.Pull), cluster("wrong", clusterv1alpha1.Pull), cluster("push", clusterv1alpha1.Push),
		lease("pull", said), lease("wrong", strings.Repeat(said, 100)), lease("push", said), lease("foreign", said))
	b.Clock.SetTime(time.Now().UTC().Truncate(days).Add(days / 2)) // all is on one day
	b.Index(&corev1.Event{}, "involvedObject.kind", func(o client.Object) []string { return []string{o.(*corev1.Event).InvolvedObject.Kind} })
	b.Index(&corev1.Event{}, "involvedObject.name", func(o client.Object) []string { return []string{o.(*corev1.Event).InvolvedObject.Name} })
	server, transport := newPlane(t)
	record := func() error {
		return recordCertificates(t.Context(), &env.Env{Client: b.Client, Live: b.Stored, Clock: b.Clock}, server, transport)
	}
	for range 2 {
		b.Must(record())
	}
	var got []string
	for _, e := range memory.List[*corev1.EventList](b).Items {
		got = append(got, e.Annotations[names.CertificateSubject])
	}
	slices.Sort(got)
	if message := memory.Get[*corev1.Event](b, memory.Key("default", "certificate-of-agent-pull"+b.Clock.Now().UTC().Format(".20060102"))).Message; !strings.HasSuffix(message, "while it reaches the control plane") {
		t.Error(message)
	}
	writes := b.Writes()
	if diff := cmp.Diff([]string{"apiserver", "controller-manager", names.AgentUser("pull")}, got); diff != "" || len(writes) != 3 {
		t.Error(writes, diff)
	}
	b.Clock.Step(50 * time.Minute)
	b.Must(record())
	if writes = b.Writes(); len(writes) != 3 || !strings.HasPrefix(writes[0], "update Event") {
		t.Error(writes)
	}
	// Agents are recorded while the API server cannot be reached anew.
	server = "https://127.0.0.1:1"
	b.Clock.Step(time.Hour)
	err := record()
	if writes = b.Writes(); err == nil || !strings.Contains(err.Error(), "connecting to "+server) || len(writes) != 2 { // its own and that of the agent
		t.Error(err, writes)
	}
}

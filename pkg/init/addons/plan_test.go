package addons

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/karmada-toolkit/karmada/internal/pki"
	"github.com/karmada-toolkit/karmada/pkg/init/components"
	"github.com/karmada-toolkit/karmada/pkg/init/config"
	"github.com/karmada-toolkit/karmada/pkg/init/hostcluster"
)

// While the authority is replaced, the certificate of a server is signed by the next one, and its clients are verified by both.
func TestSetServerCertificate_OfABundle(t *testing.T) {
	now := time.Unix(1_900_000_000, 0)
	var authorities [2]pki.Pair
	for i := range authorities {
		ca, err := pki.NewCA(pki.CAConfig{CommonName: "karmada"}, nil, now)
		if err != nil {
			t.Fatal(err)
		}
		authorities[i] = ca
	}
	next, old := authorities[0], authorities[1]
	keyPEM, err := next.KeyPEM()
	if err != nil {
		t.Fatal(err)
	}
	bundle := slices.Concat(next.CertPEM(), old.CertPEM())
	p := &planner{
		deps: &Deps{Now: func() time.Time { return now }}, request: &Request{Selection: Selection{Namespace: config.DefaultNamespace}, Config: config.New()},
		host: &hostcluster.Host{API: fake.NewClientset()},
		cfg:  &components.Config{Namespace: config.DefaultNamespace, Certificates: map[string][]byte{"ca.crt": bundle, "ca.key": keyPEM}},
	}
	if err := p.setServerCertificate(t.Context(), components.Search); err != nil {
		t.Fatal(err)
	}
	secret := components.AddonSecret(p.cfg, components.Search).(*corev1.Secret)
	if diff := cmp.Diff(string(bundle), string(secret.Data[components.AddonCA])); diff != "" {
		t.Error(diff)
	}
	server, err := pki.ParseCert(secret.Data[components.AddonCert])
	if err != nil || server.CheckSignatureFrom(next.Cert) != nil {
		t.Errorf("the certificate is not of the first authority: %v", err)
	}
}

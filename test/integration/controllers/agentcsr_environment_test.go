//go:build integration

package controllers_test

import (
	"context"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/karmada-toolkit/karmada/internal/apply"
	"github.com/karmada-toolkit/karmada/internal/kube"
	"github.com/karmada-toolkit/karmada/internal/pki"
	"github.com/karmada-toolkit/karmada/internal/testenv"
	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
	workv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha1"
	workv1alpha2 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha2"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/aggregated"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/controllers/agentcsr"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/controllers/agentrbac"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/controllers/cluster"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/env"
	"github.com/karmada-toolkit/karmada/pkg/init/components"
	"github.com/karmada-toolkit/karmada/pkg/member"
	"github.com/karmada-toolkit/karmada/pkg/member/registration"
)

// agentPlane is a control plane that clusters can register at.
type agentPlane struct {
	// cache is that of the controllers.
	cache client.Reader
	home  *testenv.Cluster
	admin client.Client
}

// startAgentPlane runs a control plane: API servers and the controllers that agents need, and
// more.
func startAgentPlane(t *testing.T, more ...func(context.Context, manager.Manager) error) *agentPlane {
	t.Helper()
	home := testenv.Start(t, testenv.ControlPlane())
	admin, err := client.New(home.Config, client.Options{Scheme: kube.NewScheme()})
	if err != nil {
		t.Fatal(err)
	}
	p := &agentPlane{home: home, admin: admin}
	o, port, ca := p.aggregatedOptions(t)
	p.install(t, port, ca)
	mgr, err := ctrl.NewManager(home.Config, manager.Options{
		Scheme: admin.Scheme(), Metrics: metricsserver.Options{BindAddress: "0"},
		Controller: config.Controller{SkipNameValidation: new(true)}, // a control plane for each test
	})
	if err != nil {
		t.Fatal(err)
	}
	p.cache = mgr.GetClient()
	e := env.New(mgr)
	for _, setup := range []func() error{
		func() error { return aggregated.Setup(t.Context(), mgr, o) },
		func() error { return cluster.Setup(t.Context(), e, cluster.Options{}) },
		func() error { return agentrbac.Setup(t.Context(), e) },
		func() error { return agentcsr.Setup(t.Context(), e, agentrbac.NewGranter(e).Grant) },
	} {
		if err := setup(); err != nil {
			t.Fatal(err)
		}
	}
	for _, setup := range more {
		// Right after they were made CRDs are not served yet.
		testenv.Eventually(t, time.Minute, func(ctx context.Context) error {
			return errors.Join(admin.List(ctx, &workv1alpha1.WorkList{}), admin.List(ctx, &workv1alpha2.ResourceBindingList{}), admin.List(ctx, &workv1alpha2.ClusterResourceBindingList{}))
		})
		if err := setup(t.Context(), mgr); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- mgr.Start(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := testenv.Stopped(<-done); err != nil {
			t.Errorf("running the control plane: %v", err)
		}
	})
	testenv.Eventually(t, time.Minute, func(ctx context.Context) error { return admin.List(ctx, &clusterv1alpha1.ClusterList{}) })
	return p
}

func (p *agentPlane) aggregatedOptions(t *testing.T) (o *aggregated.Options, port int, ca []byte) {
	t.Helper()
	authority, err := pki.NewCA(pki.CAConfig{CommonName: "ca"}, nil, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	leaf, err := pki.NewLeaf(pki.LeafConfig{CommonName: "server", Hosts: []string{components.AggregatedService + ".karmada-system.svc"}}, authority, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	key, err := leaf.KeyPEM()
	if err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	o = aggregated.NewOptions()
	dir := t.TempDir()
	certificate := &o.SecureServing.ServerCert.CertKey
	certificate.CertFile, certificate.KeyFile = filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key")
	for path, data := range map[string][]byte{certificate.CertFile: leaf.CertPEM(), certificate.KeyFile: key} {
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	o.SecureServing.Listener = listener
	o.Etcd.StorageConfig.Transport.ServerList = []string{p.home.Info.Etcd}
	if err := o.Validate(); err != nil {
		t.Fatal(err)
	}
	return o, listener.Addr().(*net.TCPAddr).Port, authority.CertPEM()
}

// install writes the objects of a control plane, without webhooks.
func (p *agentPlane) install(t *testing.T, port int, ca []byte) {
	t.Helper()
	objects := components.SystemNamespaces()
	for _, o := range components.LocalServing(components.Serving{
		AggregatedHost: "localhost", AggregatedPort: port, CABundle: ca, WebhookURL: "https://127.0.0.1",
	}) {
		if !strings.Contains(fmt.Sprintf("%T", o), "Webhook") {
			objects = append(objects, o)
		}
	}
	crds, err := components.CRDs("https://127.0.0.1", ca)
	if err != nil {
		t.Fatal(err)
	}
	config := rest.CopyConfig(p.home.Config)
	if err := rest.LoadTLSFiles(config); err != nil {
		t.Fatal(err)
	}
	bootstrap, err := registration.Bootstrap(config.Host, config.CAData)
	if err != nil {
		t.Fatal(err)
	}
	objects = slices.Concat(objects, crds, components.FederationRBAC(), bootstrap, registration.Limits(components.Users()))
	applier := &apply.Applier{Client: p.admin, Manager: "test"}
	if _, err := applier.Apply(t.Context(), components.SystemNamespaces()...); err != nil {
		t.Fatal(err)
	}
	if _, err := applier.Apply(t.Context(), objects...); err != nil {
		t.Fatal(err)
	}
}

// token makes a bootstrap token.
func (p *agentPlane) token(t *testing.T, change ...func(*registration.Token)) registration.Token {
	t.Helper()
	token, err := member.NewToken(time.Now().Add(time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range change {
		c(&token)
	}
	if err := member.CreateToken(t.Context(), p.admin, token); err != nil {
		t.Fatal(err)
	}
	return token
}

func (p *agentPlane) discovery(t *testing.T, token string) member.Discovery {
	t.Helper()
	config := rest.CopyConfig(p.home.Config)
	if err := rest.LoadTLSFiles(config); err != nil {
		t.Fatal(err)
	}
	pins, err := member.Pins(config.CAData)
	if err != nil {
		t.Fatal(err)
	}
	return member.Discovery{Endpoint: strings.TrimPrefix(config.Host, "https://"), Token: token, Pins: pins, Timeout: time.Minute}
}

// enrol gives a cluster its identity.
func (p *agentPlane) enrol(t *testing.T, token registration.Token, name, id string) (*member.Identity, error) {
	t.Helper()
	server, err := member.Discover(t.Context(), p.discovery(t, token.String()), nil)
	if err != nil {
		t.Fatal(err)
	}
	return member.Enrol(t.Context(), *server, member.EnrolRequest{Name: name, ID: id, Token: token.String(), Timeout: 2 * time.Minute}, nil)
}

func (p *agentPlane) mustEnrol(t *testing.T, name, id string) *member.Identity {
	t.Helper()
	identity, err := p.enrol(t, p.token(t), name, id)
	if err != nil {
		t.Fatal(err)
	}
	return identity
}

// asToken returns a client that authenticates with a bootstrap token, once the API server knows the token.
func (p *agentPlane) asToken(t *testing.T, token registration.Token) client.Client {
	t.Helper()
	config := rest.AnonymousClientConfig(p.home.Config)
	config.BearerToken = token.String()
	c, err := member.NewClient(config)
	if err != nil {
		t.Fatal(err)
	}
	testenv.Eventually(t, time.Minute, func(ctx context.Context) error {
		if err := c.Get(ctx, client.ObjectKey{Name: "none"}, &certificatesv1.CertificateSigningRequest{}); apierrors.IsUnauthorized(err) {
			return err
		}
		return nil
	})
	return c
}

// certificateRequest is a request for a client certificate.
func certificateRequest(t *testing.T, name string, subject pkix.Name, change ...func(*x509.CertificateRequest, *certificatesv1.CertificateSigningRequestSpec)) *certificatesv1.CertificateSigningRequest {
	t.Helper()
	key, err := pki.NewKey(pki.ECDSA)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.CertificateRequest{Subject: subject}
	csr := &certificatesv1.CertificateSigningRequest{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: certificatesv1.CertificateSigningRequestSpec{
			SignerName: certificatesv1.KubeAPIServerClientSignerName,
			Usages:     []certificatesv1.KeyUsage{certificatesv1.UsageDigitalSignature, certificatesv1.UsageClientAuth},
		},
	}
	for _, c := range change {
		c(template, &csr.Spec)
	}
	der, err := x509.CreateCertificateRequest(rand.Reader, template, key)
	if err != nil {
		t.Fatal(err)
	}
	csr.Spec.Request = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der})
	return csr
}

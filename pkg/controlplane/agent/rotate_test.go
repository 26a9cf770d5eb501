package agent

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"math/big"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	certificatesv1 "k8s.io/api/certificates/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	certificatesclient "k8s.io/client-go/kubernetes/typed/certificates/v1"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/utils/clock"
	testingclock "k8s.io/utils/clock/testing"

	"github.com/karmada-toolkit/karmada/internal/pki"
)

// signer answers requests for certificates.
type signer struct {
	certificatesclient.CertificateSigningRequestInterface
	ca   pki.Pair
	life time.Duration
	// refused reports whether requests are denied. Hidden is how often reading them is
	// forbidden at first.
	refused bool
	hidden  int

	requests []*certificatesv1.CertificateSigningRequest
}

func (s *signer) Create(_ context.Context, csr *certificatesv1.CertificateSigningRequest, _ metav1.CreateOptions) (*certificatesv1.CertificateSigningRequest, error) {
	s.requests = append(s.requests, csr)
	return csr, nil
}

func (s *signer) Get(_ context.Context, name string, _ metav1.GetOptions) (*certificatesv1.CertificateSigningRequest, error) {
	if s.hidden > 0 {
		s.hidden--
		return nil, apierrors.NewForbidden(schema.GroupResource{Resource: "certificatesigningrequests"}, name, errors.New("not yet"))
	}
	csr := s.requests[len(s.requests)-1].DeepCopy()
	if s.refused {
		csr.Status.Conditions = []certificatesv1.CertificateSigningRequestCondition{{Type: certificatesv1.CertificateDenied, Reason: "ClusterGone", Message: "it is not registered any more"}}
		return csr, nil
	}
	block, _ := pem.Decode(csr.Spec.Request)
	request, err := x509.ParseCertificateRequest(block.Bytes)
	if err != nil {
		return nil, err
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(int64(len(s.requests))), RawSubject: request.RawSubject,
		NotBefore: time.Now().Add(-time.Minute), NotAfter: time.Now().Add(s.life),
	}
	der, err := x509.CreateCertificate(rand.Reader, template, s.ca.Cert, request.PublicKey, s.ca.Key)
	if err != nil {
		return nil, err
	}
	csr.Status.Certificate = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	return csr, nil
}

func newRotation(t *testing.T, life time.Duration, s *signer) (*rotation, string) {
	t.Helper()
	s.ca = authority(t)
	p, path := openPlane(t, leaf(t, s.ca, life), s.ca)
	return &rotation{
		credentials: p.credentials, store: &fileStore{path: path, name: "m3"}, requests: s,
		interval: 5 * time.Minute, threshold: 0.2, clock: clock.RealClock{}, log: logr.Discard(),
	}, path
}

func TestRotation_NotBeforeItIsTime(t *testing.T) {
	s := &signer{life: time.Hour}
	r, _ := newRotation(t, 24*time.Hour, s)
	wait, err := r.check(t.Context())
	if err != nil || wait != r.interval || len(s.requests) != 0 {
		t.Errorf("next check after %s, %d requests, %v", wait, len(s.requests), err)
	}
	// What is due before the interval is over is not missed.
	r.interval = 48 * time.Hour
	if wait, _ = r.check(t.Context()); wait >= 24*time.Hour {
		t.Errorf("next check after %s, when the certificate has ended", wait)
	}
}

func TestRotation_SameSubjectInUseAndInTheFile(t *testing.T) {
	s := &signer{life: time.Hour, hidden: 1}
	r, path := newRotation(t, time.Minute, s)
	old := r.credentials.Certificate()
	if wait, err := r.check(t.Context()); err != nil || wait != 0 {
		t.Fatalf("%s, %v", wait, err)
	}
	now := r.credentials.Certificate()
	if now == old {
		t.Fatal("the old certificate is still in use")
	}
	cert, err := x509.ParseCertificate(now.Certificate[0])
	if err != nil || cert.Subject.CommonName != "system:karmada:agent:m3" {
		t.Errorf("subject %v, %v", cert.Subject, err)
	}
	config, err := clientcmd.LoadFromFile(path)
	if err != nil {
		t.Fatal(err)
	}
	stored, err := tls.X509KeyPair(config.AuthInfos["m3"].ClientCertificateData, config.AuthInfos["m3"].ClientKeyData)
	if err != nil || !stored.Leaf.Equal(now.Leaf) {
		t.Errorf("the file has another certificate: %v", err)
	}
	csr := s.requests[0]
	if !strings.HasPrefix(csr.Name, "m3-") || len(csr.Name) != len("m3-")+5 || csr.Spec.SignerName != certificatesv1.KubeAPIServerClientSignerName ||
		*csr.Spec.ExpirationSeconds < int32(shortestRequest/time.Second) {
		t.Errorf("requested %s, %s, %d s", csr.Name, csr.Spec.SignerName, *csr.Spec.ExpirationSeconds)
	}
}

func TestRotation_DeniedRequestIsReported(t *testing.T) {
	s := &signer{refused: true}
	r, _ := newRotation(t, time.Minute, s)
	wait, err := r.check(t.Context())
	if err == nil || !strings.Contains(err.Error(), "it is not registered any more") || wait != rotationRetry {
		t.Errorf("%s, %v", wait, err)
	}
}

func TestRotation_EndedCertificateNeedsAUser(t *testing.T) {
	s := &signer{}
	r, _ := newRotation(t, time.Minute, s)
	r.clock = testingclock.NewFakeClock(time.Now().Add(time.Hour))
	if _, err := r.check(t.Context()); err == nil || !strings.Contains(err.Error(), "register the cluster again") || len(s.requests) != 0 {
		t.Errorf("%d requests, %v", len(s.requests), err)
	}
}

package agent

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/go-logr/logr"
	certificatesv1 "k8s.io/api/certificates/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilrand "k8s.io/apimachinery/pkg/util/rand"
	apiwait "k8s.io/apimachinery/pkg/util/wait"
	certificatesclient "k8s.io/client-go/kubernetes/typed/certificates/v1"
	"k8s.io/client-go/util/cert"
	"k8s.io/client-go/util/keyutil"
	"k8s.io/utils/clock"

	"github.com/karmada-toolkit/karmada/internal/kube"
	workv1alpha2 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha2"
)

const (
	// approvalLimit is how long a request for a certificate may take.
	approvalLimit = 5 * time.Minute
	// approvalPause is the time between two reads of its status.
	approvalPause = time.Second
	// rotationRetry is the time between attempts to renew.
	rotationRetry = 10 * time.Second
	// signerRetry and signerRetryMax are the first and the last time between requests for a certificate of another authority.
	signerRetry, signerRetryMax = 30 * time.Second, 5 * time.Minute
	// shortestRequest is the shortest validity that may be requested.
	shortestRequest = 10 * time.Minute
)

// rotation renews the client certificate of the agent before it expires.
type rotation struct {
	credentials *kube.Credentials
	store       kubeconfigStore
	requests    certificatesclient.CertificateSigningRequestInterface
	// interval is the longest time between two checks, threshold the fraction of the
	// validity of the certificate that is left when it is renewed.
	interval  time.Duration
	threshold float64
	clock     clock.Clock
	log       logr.Logger
	// follower keeps the authorities current.
	follower *follower
	// bundle are the authorities in use in the order of cluster-info, and those that were in use: the first is the one that
	// signs. Nil if it is not known.
	bundle []*x509.Certificate
	// signerDelay is the current time between requests for a certificate of the first authority, signerNext when the next may
	// be made.
	signerDelay time.Duration
	signerNext  time.Time
	// logged is the last error, which is logged once.
	logged string
}

// run follows the authorities, and renews the certificate, until ctx ends.
func (r *rotation) run(ctx context.Context) {
	for {
		r.bundle = r.follower.follow(ctx)
		wait, err := r.interval, error(nil)
		if r.credentials.Certificate() != nil {
			wait, err = r.check(ctx)
		}
		if differs(&r.logged, err) && ctx.Err() == nil {
			r.log.Error(err, "Renewing the client certificate failed, trying again", "after", wait.String())
		}
		wait = min(wait, apiwait.Jitter(followInterval, 0.2))
		select {
		case <-ctx.Done():
			return
		case <-r.clock.After(wait):
		}
	}
}

// check renews the certificate if it is time to, and returns the time until the next check.
func (r *rotation) check(ctx context.Context) (time.Duration, error) {
	identity := r.credentials.Certificate()
	begin, end, err := validity(identity)
	if err != nil {
		return r.interval, err
	}
	now, due := r.clock.Now(), renewAt(begin, end, r.threshold)
	early := now.Before(due)
	if early && !r.signerChanged(identity.Leaf, now) {
		return min(r.interval, due.Sub(now)), nil
	}
	if !now.Before(end) {
		return r.interval, fmt.Errorf("the client certificate expired at %s, and a renewal requires a valid one: register the cluster again", end.UTC().Format(time.RFC3339))
	}
	r.log.Info("Renewing the client certificate", "endsAt", end.UTC().Format(time.RFC3339))
	retry := rotationRetry
	if early {
		retry = r.signerDelay
	}
	certificate, key, err := r.request(ctx, identity, end.Sub(begin))
	if err != nil {
		return retry, err
	}
	fresh, err := tls.X509KeyPair(certificate, key)
	if err != nil {
		return retry, fmt.Errorf("reading the new certificate: %w", err)
	}
	if early && fresh.Leaf.CheckSignatureFrom(r.bundle[0]) != nil {
		return retry, fmt.Errorf("the control plane does not sign with its new authority %s yet", r.bundle[0].Subject)
	}
	renewed := contents{certificate: certificate, key: key}
	stored := r.store.write(ctx, renewed)
	r.credentials.Use(&fresh)
	_, end, err = validity(&fresh)
	r.log.Info("Renewed the client certificate", "endsAt", end.UTC().Format(time.RFC3339))
	if stored != nil {
		// The new one is in use, but the next start would find the old one.
		return rotationRetry, errors.Join(err, r.storeLater(ctx, renewed, stored))
	}
	return 0, err
}

// signerChanged reports whether another authority of the control plane than the one that signed the certificate signs now, and a
// request may be made. At most 16 are made in an hour. A certificate of an authority that is not in the bundle has its own.
func (r *rotation) signerChanged(leaf *x509.Certificate, now time.Time) bool {
	signer := slices.IndexFunc(r.bundle, func(ca *x509.Certificate) bool { return leaf.CheckSignatureFrom(ca) == nil })
	if signer == 0 {
		r.signerDelay = 0
	}
	if signer <= 0 || now.Before(r.signerNext) {
		return false
	}
	r.signerDelay = min(max(2*r.signerDelay, signerRetry), signerRetryMax)
	r.signerNext = now.Add(r.signerDelay)
	return true
}

// storeLater retries to store a certificate that is in use already, 30 times at most.
func (r *rotation) storeLater(ctx context.Context, renewed contents, err error) error {
	for range 30 {
		r.log.Error(err, "Storing the new client certificate failed, trying again", "after", rotationRetry.String())
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-r.clock.After(rotationRetry):
		}
		if err = r.store.write(ctx, renewed); err == nil {
			return nil
		}
	}
	return err
}

// renewAt is when a certificate is renewed.
func renewAt(begin, end time.Time, threshold float64) time.Time {
	return end.Add(-time.Duration(float64(end.Sub(begin)) * threshold))
}

// validity returns the time during which all of a chain is valid.
func validity(identity *tls.Certificate) (begin, end time.Time, err error) {
	if identity == nil || len(identity.Certificate) == 0 {
		return begin, end, errors.New("the kubeconfig of the control plane has no client certificate to renew")
	}
	for _, der := range identity.Certificate {
		c, err := x509.ParseCertificate(der)
		if err != nil {
			return begin, end, fmt.Errorf("reading the client certificate: %w", err)
		}
		if c.NotBefore.After(begin) {
			begin = c.NotBefore
		}
		if end.IsZero() || c.NotAfter.Before(end) {
			end = c.NotAfter
		}
	}
	return begin, end, nil
}

// request requests a certificate with the subject and the validity of the old one.
func (r *rotation) request(ctx context.Context, old *tls.Certificate, life time.Duration) (certificate, key []byte, err error) {
	leaf, err := x509.ParseCertificate(old.Certificate[0])
	if err != nil {
		return nil, nil, fmt.Errorf("reading the client certificate: %w", err)
	}
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, fmt.Errorf("making a key: %w", err)
	}
	if key, err = keyutil.MarshalPrivateKeyToPEM(private); err != nil {
		return nil, nil, fmt.Errorf("encoding the key: %w", err)
	}
	der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{RawSubject: leaf.RawSubject}, private)
	if err != nil {
		return nil, nil, fmt.Errorf("making a request for a certificate: %w", err)
	}
	seconds := min(max(life, shortestRequest)/time.Second, math.MaxInt32)
	csr := &certificatesv1.CertificateSigningRequest{
		ObjectMeta: metav1.ObjectMeta{
			Name:   r.store.user() + "-" + utilrand.String(5),
			Labels: map[string]string{workv1alpha2.SystemLabel: workv1alpha2.SystemLabelValue},
		},
		Spec: certificatesv1.CertificateSigningRequestSpec{
			Request:           pem.EncodeToMemory(&pem.Block{Type: cert.CertificateRequestBlockType, Bytes: der}),
			SignerName:        certificatesv1.KubeAPIServerClientSignerName,
			ExpirationSeconds: new(int32(seconds)),
			Usages:            []certificatesv1.KeyUsage{certificatesv1.UsageDigitalSignature, certificatesv1.UsageKeyEncipherment, certificatesv1.UsageClientAuth},
		},
	}
	if csr, err = r.requests.Create(ctx, csr, metav1.CreateOptions{}); err != nil {
		return nil, nil, fmt.Errorf("requesting a certificate: %w", err)
	}
	certificate, err = r.await(ctx, csr.Name)
	return certificate, key, err
}

// await returns the certificate once it is signed.
func (r *rotation) await(ctx context.Context, name string) ([]byte, error) {
	began := r.clock.Now()
	state := "it is not approved"
	for r.clock.Since(began) < approvalLimit {
		csr, err := r.requests.Get(ctx, name, metav1.GetOptions{})
		switch {
		case apierrors.IsForbidden(err), apierrors.IsNotFound(err):
			state = err.Error() // the permission to read it may be created later
		case err != nil:
			state = err.Error()
		case len(csr.Status.Certificate) > 0:
			return csr.Status.Certificate, nil
		default:
			for _, c := range csr.Status.Conditions {
				switch c.Type {
				case certificatesv1.CertificateDenied, certificatesv1.CertificateFailed:
					return nil, fmt.Errorf("the request for a certificate %s was refused: %s: %s", name, c.Reason, c.Message)
				case certificatesv1.CertificateApproved:
					state = "it is approved but not signed"
				}
			}
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-r.clock.After(approvalPause):
		}
	}
	return nil, fmt.Errorf("the request for a certificate %s was not answered within %s: %s", name, approvalLimit, state)
}

package kubelite

import (
	"context"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	certificatesv1beta1 "k8s.io/api/certificates/v1beta1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/certificate/csr"
	certificatesapi "k8s.io/kubernetes/pkg/apis/certificates"
	csrcontroller "k8s.io/kubernetes/pkg/controller/certificates"
	"k8s.io/kubernetes/pkg/controller/certificates/authority"

	"github.com/karmada-toolkit/karmada/internal/pki"
)

const (
	// signingDuration is how long a certificate is valid that asks for no other duration, and the maximum;
	// signingMinimum is the minimum. Both are those of kube-controller-manager.
	signingDuration = 365 * 24 * time.Hour
	signingMinimum  = 10 * time.Minute
	// signingBackdate is how long before now a certificate begins to be valid, for clocks that are late. It counts
	// towards the duration of certificates that are valid for signingShort or longer.
	signingBackdate = 5 * time.Minute
	signingShort    = 8 * time.Hour
	signingWorkers  = 2
	// reasonSignerValidationFailure is the reason of the condition Failed of a request that no signer can sign.
	reasonSignerValidationFailure = "SignerValidationFailure"
)

// signer signs approved certificate requests for the signers that kube-controller-manager implements. It replaces
// kube-controller-manager's controllers, one for each of the signers, which watch the files of the authority with an
// inotify instance each. The authority of a cluster does not change while it runs.
type signer struct {
	ca     authority.CertificateAuthority
	client kubernetes.Interface
	now    func() time.Time
}

// runSigner signs until ctx ends.
func runSigner(ctx context.Context, config *rest.Config, ca pki.Pair, now func() time.Time) error {
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	s := &signer{ca: authority.CertificateAuthority{Certificate: ca.Cert, PrivateKey: ca.Key}, client: client, now: now}
	factory := informers.NewSharedInformerFactoryWithOptions(client, 0, informers.WithTransform(dropManagedFields))
	controller := csrcontroller.NewCertificateController(ctx, "csrsigning", client, factory.Certificates().V1().CertificateSigningRequests(), s.handle)
	factory.Start(ctx.Done())
	defer factory.Shutdown()
	controller.Run(ctx, signingWorkers)
	return nil
}

// handle signs one request, or marks it as failed when it can never be signed.
func (s *signer) handle(ctx context.Context, request *certificatesv1.CertificateSigningRequest) error {
	if !csrcontroller.IsCertificateRequestApproved(request) || csrcontroller.HasTrueCondition(request, certificatesv1.CertificateFailed) {
		return nil
	}
	check, ok := requestChecks()[request.Spec.SignerName]
	if !ok {
		return nil
	}
	parsed, err := certificatesapi.ParseCSR(request.Spec.Request)
	if err != nil {
		return fmt.Errorf("parsing certificate signing request %q: %w", request.Name, err)
	}
	if err := check(parsed, request.Spec.Usages); err != nil {
		request.Status.Conditions = append(request.Status.Conditions, certificatesv1.CertificateSigningRequestCondition{
			Type: certificatesv1.CertificateFailed, Status: corev1.ConditionTrue, Reason: reasonSignerValidationFailure,
			Message: err.Error(), LastUpdateTime: metav1.NewTime(s.now()),
		})
	} else if request.Status.Certificate, err = s.sign(parsed, request.Spec); err != nil {
		return fmt.Errorf("signing certificate signing request %q: %w", request.Name, err)
	}
	if _, err := s.client.CertificatesV1().CertificateSigningRequests().UpdateStatus(ctx, request, metav1.UpdateOptions{}); err != nil {
		return fmt.Errorf("writing the status of certificate signing request %q: %w", request.Name, err)
	}
	return nil
}

// sign returns the certificate in PEM.
func (s *signer) sign(request *x509.CertificateRequest, spec certificatesv1.CertificateSigningRequestSpec) ([]byte, error) {
	der, err := s.ca.Sign(request.Raw, authority.PermissiveSigningPolicy{
		TTL: certificateDuration(spec.ExpirationSeconds), Usages: spec.Usages, Backdate: signingBackdate, Short: signingShort, Now: s.now,
	})
	if err != nil {
		return nil, err
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), nil
}

// certificateDuration returns how long a certificate is valid for a request of seconds; nil means that the request
// does not specify it.
func certificateDuration(seconds *int32) time.Duration {
	if seconds == nil {
		return signingDuration
	}
	return min(max(csr.ExpirationSecondsToDuration(*seconds), signingMinimum), signingDuration)
}

// requestCheck returns why a signer refuses a request, or nil.
type requestCheck func(request *x509.CertificateRequest, usages []certificatesv1.KeyUsage) error

// requestChecks returns the check of each signer by its name.
func requestChecks() map[string]requestCheck {
	return map[string]requestCheck{
		certificatesv1.KubeletServingSignerName: func(request *x509.CertificateRequest, usages []certificatesv1.KeyUsage) error {
			return certificatesapi.ValidateKubeletServingCSR(request, usageNames(usages))
		},
		certificatesv1.KubeAPIServerClientKubeletSignerName: func(request *x509.CertificateRequest, usages []certificatesv1.KeyUsage) error {
			return certificatesapi.ValidateKubeletClientCSR(request, usageNames(usages))
		},
		certificatesv1.KubeAPIServerClientSignerName: func(_ *x509.CertificateRequest, usages []certificatesv1.KeyUsage) error {
			return checkClientUsages(usages)
		},
		// The signer of requests from the API's first versions restricts nothing.
		certificatesv1beta1.LegacyUnknownSignerName: func(*x509.CertificateRequest, []certificatesv1.KeyUsage) error { return nil },
	}
}

func usageNames(usages []certificatesv1.KeyUsage) sets.String { //nolint:staticcheck // the type that Kubernetes' checks take
	names := sets.NewString()
	for _, usage := range usages {
		names.Insert(string(usage))
	}
	return names
}

// checkClientUsages checks the usages of a client certificate: client auth, and what a TLS client may need beside.
func checkClientUsages(usages []certificatesv1.KeyUsage) error {
	allowed := sets.New(certificatesv1.UsageDigitalSignature, certificatesv1.UsageKeyEncipherment, certificatesv1.UsageClientAuth)
	for _, usage := range usages {
		if !allowed.Has(usage) {
			return fmt.Errorf("invalid usage for client certificate: %s", usage)
		}
	}
	if !sets.New(usages...).Has(certificatesv1.UsageClientAuth) {
		return fmt.Errorf("missing required usage for client certificate: %s", certificatesv1.UsageClientAuth)
	}
	return nil
}

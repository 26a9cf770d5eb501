package agents

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	certificatesv1 "k8s.io/api/certificates/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/karmada-toolkit/karmada/pkg/apis/names"
)

// maxRequests is how many certificate requests of one agent stay that are open, and
// how many that are answered.
const maxRequests = 5

// excess returns the certificate requests of one agent that are too many: of those
// that are open the newest, of those that are answered the oldest.
func excess(requests []*certificatesv1.CertificateSigningRequest) []*certificatesv1.CertificateSigningRequest {
	var waiting, answered []*certificatesv1.CertificateSigningRequest
	for _, csr := range requests {
		if len(csr.Status.Certificate) > 0 || slices.ContainsFunc(csr.Status.Conditions, final) {
			answered = append(answered, csr)
		} else {
			waiting = append(waiting, csr)
		}
	}
	older := func(a, b *certificatesv1.CertificateSigningRequest) int {
		return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name))
	}
	slices.SortFunc(waiting, older)
	slices.SortFunc(answered, older)
	return append(slices.Clone(waiting[min(len(waiting), maxRequests):]), answered[:max(0, len(answered)-maxRequests)]...)
}

// final reports whether a condition means that a request gets no certificate.
func final(c certificatesv1.CertificateSigningRequestCondition) bool {
	return c.Type == certificatesv1.CertificateDenied || c.Type == certificatesv1.CertificateFailed
}

// requests returns the names of the certificate requests that the agent of a cluster
// has made, and deletes those that are too many.
func (r *Rights) requests(ctx context.Context, cluster string) ([]string, error) {
	list := &certificatesv1.CertificateSigningRequestList{}
	if err := r.client.List(ctx, list, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing certificate requests: %w", err)
	}
	var own []*certificatesv1.CertificateSigningRequest
	for i := range list.Items {
		if csr := &list.Items[i]; csr.Spec.Username == names.AgentUser(cluster) {
			own = append(own, csr)
		}
	}
	tooMany := excess(own)
	var errs []error
	for _, csr := range tooMany {
		target := &certificatesv1.CertificateSigningRequest{ObjectMeta: metav1.ObjectMeta{Name: csr.Name}}
		if err := r.client.Delete(ctx, target, client.Preconditions{UID: &csr.UID}); client.IgnoreNotFound(err) != nil {
			errs = append(errs, fmt.Errorf("deleting certificate request %s: %w", csr.Name, err))
		}
	}
	if len(tooMany) > 0 {
		log.FromContext(ctx).Info("Deleted certificate requests of an agent that has too many", "cluster", cluster, "count", len(tooMany), "limit", maxRequests)
	}
	var out []string
	for _, csr := range own {
		if !slices.Contains(tooMany, csr) {
			out = append(out, csr.Name)
		}
	}
	return out, errors.Join(errs...)
}

package agentrbac

import (
	"cmp"
	"context"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"slices"

	certificatesv1 "k8s.io/api/certificates/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/karmada-toolkit/karmada/internal/patch"
	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
	"github.com/karmada-toolkit/karmada/pkg/apis/names"
	workv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha1"
	"github.com/karmada-toolkit/karmada/pkg/domain/services"
)

// maxRequests is the limit of pending certificate requests of one agent, and that of
// completed ones.
const maxRequests = 5

// excess returns the certificate requests of one agent above the limits: the newest of
// the pending ones, and the oldest of the completed ones.
func excess(requests []*certificatesv1.CertificateSigningRequest) []*certificatesv1.CertificateSigningRequest {
	var pending, done []*certificatesv1.CertificateSigningRequest
	for _, csr := range requests {
		if completed(csr) {
			done = append(done, csr)
		} else {
			pending = append(pending, csr)
		}
	}
	older := func(a, b *certificatesv1.CertificateSigningRequest) int {
		return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name))
	}
	slices.SortFunc(pending, older)
	slices.SortFunc(done, older)
	return append(slices.Clone(pending[min(len(pending), maxRequests):]), done[:max(0, len(done)-maxRequests)]...)
}

// maxCollected and maxCollectedBytes limit the collected EndpointSlices that an agent has in Works: their number, and the bytes of
// their manifests. The controllers that read them hold as much.
const maxCollected, maxCollectedBytes = 1024, 64 << 20

// excessSlices returns the Works of collected EndpointSlices above the limits, the newest.
func excessSlices(works []workv1alpha1.Work) []*workv1alpha1.Work {
	var own []*workv1alpha1.Work
	for i := range works {
		if services.Collected(&works[i]) {
			own = append(own, &works[i])
		}
	}
	slices.SortFunc(own, func(a, b *workv1alpha1.Work) int {
		return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name))
	})
	size := 0
	for i, work := range own {
		if size += len(work.Spec.Workload.Manifests[0].Raw); i >= maxCollected || size > maxCollectedBytes {
			return own[i:]
		}
	}
	return nil
}

// limitSlices deletes the Works of EndpointSlices that the agent of a cluster collected above the limits. The agent may have set
// finalizers that it never removes.
func (g *Granter) limitSlices(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	cluster, list := &clusterv1alpha1.Cluster{}, &workv1alpha1.WorkList{}
	err := errors.Join(client.IgnoreNotFound(g.client.Get(ctx, req.NamespacedName, cluster)),
		g.client.List(ctx, list, client.InNamespace(names.ExecutionNamespace(req.Name)), client.UnsafeDisableDeepCopy))
	if err != nil || cluster.Spec.SyncMode != clusterv1alpha1.Pull {
		return reconcile.Result{}, err
	}
	above := excessSlices(list.Items)
	var errs []error
	for _, cached := range above {
		work := cached.DeepCopy()
		err := g.client.Delete(ctx, work, client.Preconditions{UID: &cached.UID})
		if err == nil && len(work.Finalizers) > 0 {
			err = patch.Change(ctx, g.client, work, func() { work.Finalizers = nil })
		}
		if client.IgnoreNotFound(err) != nil {
			errs = append(errs, fmt.Errorf("deleting work %s/%s: %w", cached.Namespace, cached.Name, err))
		}
	}
	if len(above) > 0 {
		log.FromContext(ctx).Info("Deleted EndpointSlices of an agent that has too many", "cluster", req.Name, "count", len(above), "limit", maxCollected)
	}
	return reconcile.Result{}, errors.Join(errs...)
}

// completed reports whether a request has its certificate, or never gets one.
func completed(csr *certificatesv1.CertificateSigningRequest) bool {
	return len(csr.Status.Certificate) > 0 || slices.ContainsFunc(csr.Status.Conditions, final)
}

// final reports whether a request with a condition never gets a certificate.
func final(c certificatesv1.CertificateSigningRequestCondition) bool {
	return c.Type == certificatesv1.CertificateDenied || c.Type == certificatesv1.CertificateFailed
}

// forget deletes the completed certificate requests of the agent of a cluster that is leaving, and those with which it was
// registered. New ones for its name are refused meanwhile.
func (g *Granter) forget(ctx context.Context, cluster string) error {
	list := &certificatesv1.CertificateSigningRequestList{}
	if err := g.client.List(ctx, list, client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("listing certificate requests: %w", err)
	}
	var leaving []*certificatesv1.CertificateSigningRequest
	for i := range list.Items {
		csr := &list.Items[i]
		if completed(csr) && (csr.Spec.Username == names.AgentUser(cluster) || requested(csr) == names.AgentUser(cluster)) {
			leaving = append(leaving, csr)
		}
	}
	return g.delete(ctx, leaving)
}

// delete deletes certificate requests.
func (g *Granter) delete(ctx context.Context, requests []*certificatesv1.CertificateSigningRequest) error {
	var errs []error
	for _, csr := range requests {
		target := &certificatesv1.CertificateSigningRequest{ObjectMeta: metav1.ObjectMeta{Name: csr.Name}}
		if err := g.client.Delete(ctx, target, client.Preconditions{UID: &csr.UID}); client.IgnoreNotFound(err) != nil {
			errs = append(errs, fmt.Errorf("deleting certificate request %s: %w", csr.Name, err))
		}
	}
	return errors.Join(errs...)
}

// requested returns the user that a request for a certificate of a client names; empty for other requests.
func requested(csr *certificatesv1.CertificateSigningRequest) string {
	block, _ := pem.Decode(csr.Spec.Request)
	if csr.Spec.SignerName != certificatesv1.KubeAPIServerClientSignerName || block == nil {
		return ""
	}
	request, err := x509.ParseCertificateRequest(block.Bytes)
	if err != nil {
		return ""
	}
	return request.Subject.CommonName
}

// requests returns the names of the certificate requests that the agent of a cluster
// has created, and deletes those above the limits.
func (g *Granter) requests(ctx context.Context, cluster string) ([]string, error) {
	list := &certificatesv1.CertificateSigningRequestList{}
	if err := g.client.List(ctx, list, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing certificate requests: %w", err)
	}
	var own []*certificatesv1.CertificateSigningRequest
	for i := range list.Items {
		if csr := &list.Items[i]; csr.Spec.Username == names.AgentUser(cluster) {
			own = append(own, csr)
		}
	}
	above := excess(own)
	err := g.delete(ctx, above)
	if len(above) > 0 {
		log.FromContext(ctx).Info("Deleted certificate requests of an agent that has too many", "cluster", cluster, "count", len(above), "limit", maxRequests)
	}
	var out []string
	for _, csr := range own {
		if !slices.Contains(above, csr) {
			out = append(out, csr.Name)
		}
	}
	return out, err
}

package agentcsr

import (
	"context"
	"fmt"
	"slices"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/karmada-toolkit/karmada/pkg/apis/names"
)

// refusedTTL is how long a refused request remains: whoever registers the cluster reads the reason meanwhile.
const refusedTTL = 5 * time.Minute

// refused returns the denial of a request that may be of an agent, or nil.
func refused(obj client.Object) *certificatesv1.CertificateSigningRequestCondition {
	csr, ok := obj.(*certificatesv1.CertificateSigningRequest)
	if !ok || csr.Spec.SignerName != certificatesv1.KubeAPIServerClientSignerName {
		return nil
	}
	i := slices.IndexFunc(csr.Status.Conditions, func(c certificatesv1.CertificateSigningRequestCondition) bool {
		return c.Type == certificatesv1.CertificateDenied
	})
	if i < 0 {
		return nil
	}
	return &csr.Status.Conditions[i]
}

// forget deletes a refused request to register a cluster when refusedTTL is over. Those of agents are limited in number.
func (a *approver) forget(ctx context.Context, csr *certificatesv1.CertificateSigningRequest, cluster string, denial *certificatesv1.CertificateSigningRequestCondition) (reconcile.Result, error) {
	if csr.Spec.Username == names.AgentUser(cluster) {
		return reconcile.Result{}, nil
	}
	if left := denial.LastUpdateTime.Add(refusedTTL).Sub(a.clock.Now()); left > 0 {
		return reconcile.Result{RequeueAfter: left}, nil
	}
	if err := a.client.Delete(ctx, csr, client.Preconditions{UID: &csr.UID}); client.IgnoreNotFound(err) != nil {
		return reconcile.Result{}, fmt.Errorf("deleting refused certificate request %s: %w", csr.Name, err)
	}
	return reconcile.Result{}, nil
}

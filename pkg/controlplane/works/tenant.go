package works

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	workv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha1"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/domain/scope"
)

// Tenant returns the function for queues of Works that returns the namespace of the template of a Work, or the one that the
// first of some labels names. It is empty for Works of objects without a namespace and for those that a cache does not have.
// ctx is that of the controller: queues have none.
func Tenant(ctx context.Context, cache client.Reader, labels ...string) func(reconcile.Request) string {
	return func(req reconcile.Request) string {
		work := &workv1alpha1.Work{}
		if cache.Get(ctx, req.NamespacedName, work, client.UnsafeDisableDeepCopy) != nil {
			return ""
		}
		if _, key := scope.BindingOf(work); key.Name != "" {
			return key.Namespace
		}
		for _, label := range labels {
			if namespace := work.Labels[label]; namespace != "" {
				return namespace
			}
		}
		return ""
	}
}

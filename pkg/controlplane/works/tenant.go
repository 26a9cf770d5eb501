package works

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	workv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha1"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/scope"
)

// Tenant returns the function for queues of Works that returns the namespace of the template of a Work, or the one that the
// first of some labels names. It is empty for Works of objects without a namespace and for those that a cache does not have.
func Tenant(cache client.Reader, labels ...string) func(reconcile.Request) string {
	return func(req reconcile.Request) string {
		work := &workv1alpha1.Work{}
		// A queue asks for the key, so that there is no context; a cache that is started answers at once.
		if cache.Get(context.Background(), req.NamespacedName, work, client.UnsafeDisableDeepCopy) != nil {
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

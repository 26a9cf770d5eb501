package scheduler

import (
	toolscache "k8s.io/client-go/tools/cache"

	"github.com/karmada-toolkit/karmada/internal/gates"
	policyv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/policy/v1alpha1"
)

// watchesQuotas says whether bindings that a quota refused wait for the quota.
func (s *scheduler) watchesQuotas() bool {
	return s.options.Gates.Enabled(gates.FederatedQuotaEnforcement)
}

// quotaHandler is told of changes of quotas. One that leaves more room wakes the
// bindings of its namespace.
func (s *scheduler) quotaHandler() toolscache.ResourceEventHandler {
	wake := func(namespace string) {
		s.queue.Recheck(func(k key) bool { return k.Namespace == namespace })
	}
	return toolscache.ResourceEventHandlerFuncs{
		UpdateFunc: func(old, obj any) {
			before, ok1 := old.(*policyv1alpha1.FederatedResourceQuota)
			after, ok2 := obj.(*policyv1alpha1.FederatedResourceQuota)
			if ok1 && ok2 && leavesMore(before, after) {
				wake(after.Namespace)
			}
		},
		DeleteFunc: func(obj any) {
			if gone, ok := obj.(toolscache.DeletedFinalStateUnknown); ok {
				obj = gone.Obj
			}
			if q, ok := obj.(*policyv1alpha1.FederatedResourceQuota); ok {
				wake(q.Namespace)
			}
		},
	}
}

// leavesMore says whether there is more left of some resource than before.
func leavesMore(before, after *policyv1alpha1.FederatedResourceQuota) bool {
	for name, had := range before.Spec.Overall {
		now, limited := after.Spec.Overall[name]
		if !limited {
			return true
		}
		left, was := now.DeepCopy(), had.DeepCopy()
		left.Sub(after.Status.OverallUsed[name])
		was.Sub(before.Status.OverallUsed[name])
		if left.Cmp(was) > 0 {
			return true
		}
	}
	return false
}

// Package quota counts what bindings use of a FederatedResourceQuota. It is
// pure.
package quota

import (
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	policyv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/policy/v1alpha1"
	workv1alpha2 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha2"
)

// Usage returns what a scheduled binding uses over all its clusters. It has no
// zeros.
func Usage(spec *workv1alpha2.ResourceBindingSpec) corev1.ResourceList {
	out := corev1.ResourceList{}
	if len(spec.Components) > 0 {
		for i := range spec.Components {
			c := &spec.Components[i]
			if c.ReplicaRequirements != nil {
				add(out, c.ReplicaRequirements.ResourceRequest, int64(c.Replicas)*int64(len(spec.Clusters)))
			}
		}
		return dropZeros(out)
	}
	if spec.ReplicaRequirements != nil {
		add(out, spec.ReplicaRequirements.ResourceRequest, scheduledReplicas(spec))
	}
	return dropZeros(out)
}

// Delta returns what a binding uses more than before, or less where it is
// negative; old is nil for a new one. It has no zeros.
func Delta(obj, old *workv1alpha2.ResourceBindingSpec) corev1.ResourceList {
	out := Usage(obj)
	if old != nil {
		add(out, Usage(old), -1)
	}
	return dropZeros(out)
}

// Exceeded names the quota that a binding would exceed.
type Exceeded struct {
	Namespace, Name  string
	Resource         corev1.ResourceName
	Requested, Limit resource.Quantity
}

// Error implements error.
func (e *Exceeded) Error() string {
	return fmt.Sprintf("FederatedResourceQuota(%s/%s) exceeded for resource %s: requested sum %s, limit %s.",
		e.Namespace, e.Name, e.Resource, e.Requested.String(), e.Limit.String())
}

// Charge returns what would be used of a quota with the delta, and whether that
// is another amount than before. Only what the delta adds can exceed the quota:
// to use less is always possible.
func Charge(q *policyv1alpha1.FederatedResourceQuota, delta corev1.ResourceList) (used corev1.ResourceList, changed bool, err error) {
	used = maps.Clone(q.Status.OverallUsed)
	if used == nil {
		used = corev1.ResourceList{}
	}
	for _, name := range slices.Sorted(maps.Keys(delta)) {
		limit, limited := q.Spec.Overall[name]
		if !limited {
			continue
		}
		changed = true
		difference, sum := delta[name], used[name].DeepCopy()
		sum.Add(difference)
		if difference.Sign() > 0 && sum.Cmp(limit) > 0 {
			return nil, false, &Exceeded{Namespace: q.Namespace, Name: q.Name, Resource: name, Requested: sum, Limit: limit}
		}
		if used[name] = sum; sum.Sign() <= 0 {
			delete(used, name)
		}
	}
	return used, changed, nil
}

func scheduledReplicas(spec *workv1alpha2.ResourceBindingSpec) int64 {
	var sum int64
	for _, c := range spec.Clusters {
		sum += int64(c.Replicas)
	}
	return sum
}

// add adds a list, times a factor, to a sum.
func add(sum, list corev1.ResourceList, times int64) {
	for name, quantity := range list {
		q := quantity.DeepCopy()
		q.Mul(times)
		total := sum[name].DeepCopy()
		if total.IsZero() {
			total.Format = q.Format
		}
		total.Add(q)
		sum[name] = total
	}
}

func dropZeros(list corev1.ResourceList) corev1.ResourceList {
	for name, quantity := range list {
		if quantity.IsZero() {
			delete(list, name)
		}
	}
	return list
}

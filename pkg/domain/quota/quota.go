// Package quota decides about FederatedResourceQuotas: what bindings use, what may be
// added, and which ResourceQuotas clusters get. It is pure.
package quota

import (
	"fmt"
	"maps"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

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
	maps.DeleteFunc(list, func(_ corev1.ResourceName, q resource.Quantity) bool { return q.IsZero() })
	return list
}

package estimate

import (
	"math"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/karmada-toolkit/karmada/pkg/apis/validation"
	workv1alpha2 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha2"
	"github.com/karmada-toolkit/karmada/pkg/domain/replicas"
)

// Quota has the fields of a ResourceQuota that estimates need.
type Quota struct {
	// scoped is set if the quota counts some pods only: those whose priority class one of the selectors matches.
	scoped    bool
	selectors []labels.Selector
	// free is what is left of each limited resource; it may be negative.
	free []Amount
}

// QuotaOf returns the fields of a ResourceQuota that estimates need.
func QuotaOf(q *corev1.ResourceQuota) Quota {
	out := Quota{scoped: len(q.Spec.Scopes) > 0 || q.Spec.ScopeSelector != nil}
	for _, scope := range q.Spec.Scopes {
		out.addSelector(corev1.ScopedResourceSelectorRequirement{ScopeName: scope, Operator: corev1.ScopeSelectorOpExists})
	}
	if q.Spec.ScopeSelector != nil {
		for _, r := range q.Spec.ScopeSelector.MatchExpressions {
			out.addSelector(r)
		}
	}
	for name, hard := range q.Status.Hard {
		used, known := q.Status.Used[name]
		counted, ok := quotaResource(name)
		if !known || !ok {
			continue
		}
		left := hard.DeepCopy()
		left.Sub(used)
		out.free = append(out.free, Amount{Name: counted, Value: replicas.Value(counted, left)})
	}
	return out
}

// priorityClassLabel is the label that stands for the priority class in selectors. A pod without a class has none.
const priorityClassLabel = "class"

func (q *Quota) addSelector(r corev1.ScopedResourceSelectorRequirement) {
	if r.ScopeName != corev1.ResourceQuotaScopePriorityClass {
		return
	}
	selector, err := validation.LabelSelector(&metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{
		Key: priorityClassLabel, Operator: metav1.LabelSelectorOperator(r.Operator), Values: r.Values,
	}}})
	if err == nil {
		q.selectors = append(q.selectors, selector)
	}
}

// quotaResource returns the resource that a key of a quota limits. It reports false for keys that estimates do not
// count.
func quotaResource(key corev1.ResourceName) (corev1.ResourceName, bool) {
	name := corev1.ResourceName(strings.TrimPrefix(string(key), corev1.DefaultResourceRequestsPrefix))
	return name, replicas.Modeled(name)
}

// applies reports whether the quota counts pods of a priority class.
func (q *Quota) applies(priorityClass string) bool {
	if !q.scoped {
		return true
	}
	class := labels.Set{}
	if priorityClass != "" {
		class[priorityClassLabel] = priorityClass
	}
	return slices.ContainsFunc(q.selectors, func(s labels.Selector) bool { return s.Matches(class) })
}

// QuotaReplicas returns how many replicas quotas leave room for, once the assumed workloads of the namespace are there.
// It is below 0 if a quota is exceeded.
func QuotaReplicas(quotas []Quota, r *workv1alpha2.ReplicaRequirements, assumed []replicas.Workload) int32 {
	if r == nil {
		return Unlimited
	}
	one := []workv1alpha2.Component{{Replicas: 1, ReplicaRequirements: &workv1alpha2.ComponentReplicaRequirements{
		ResourceRequest: r.ResourceRequest, PriorityClassName: r.PriorityClassName,
	}}}
	return QuotaSets(quotas, r.Namespace, one, assumed)
}

// QuotaSets returns how many sets of components quotas leave room for, once the assumed workloads of the namespace are
// there. It is below 0 if a quota is exceeded.
func QuotaSets(quotas []Quota, namespace string, components []workv1alpha2.Component, assumed []replicas.Workload) int32 {
	best := int64(Unlimited)
	for i := range quotas {
		q := &quotas[i]
		set := q.charges(components)
		if len(set) == 0 {
			continue
		}
		reserved := map[corev1.ResourceName]int64{}
		for j := range assumed {
			if assumed[j].Namespace == namespace {
				for name, value := range q.charges(assumed[j].Components) {
					reserved[name] = replicas.Sum(reserved[name], value)
				}
			}
		}
		for _, free := range q.free {
			if need := set[free.Name]; need > 0 {
				best = min(best, quotient(free.Value, reserved[free.Name], need))
			}
		}
	}
	return int32(max(best, math.MinInt32))
}

// quotient returns how often a need fits into what is free without what is reserved.
func quotient(free, reserved, need int64) int64 {
	if reserved > 0 && free < reserved {
		return 0
	}
	return (free - reserved) / need
}

// charges returns what the quota counts of one set of components.
func (q *Quota) charges(components []workv1alpha2.Component) map[corev1.ResourceName]int64 {
	var out map[corev1.ResourceName]int64
	for i := range components {
		c := &components[i]
		if c.ReplicaRequirements == nil || c.Replicas <= 0 || !q.applies(c.ReplicaRequirements.PriorityClassName) {
			continue
		}
		for name, quantity := range c.ReplicaRequirements.ResourceRequest {
			if value := replicas.Value(name, quantity); value > 0 {
				if out == nil {
					out = map[corev1.ResourceName]int64{}
				}
				out[name] = replicas.Sum(out[name], replicas.Product(value, int64(c.Replicas)))
			}
		}
	}
	return out
}

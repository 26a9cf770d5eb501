package quota

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/karmada-toolkit/karmada/internal/quantity"
	"github.com/karmada-toolkit/karmada/pkg/apis/names"
	policyv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/policy/v1alpha1"
	"github.com/karmada-toolkit/karmada/pkg/apis/validation"
	workv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha1"
)

// Aggregate returns the limit and the usage in each cluster that has applied its ResourceQuota, sorted by cluster.
func Aggregate(works []workv1alpha1.Work) ([]policyv1alpha1.ClusterQuotaStatus, error) {
	var out []policyv1alpha1.ClusterQuotaStatus
	for i := range works {
		w := &works[i]
		if !meta.IsStatusConditionPresentAndEqual(w.Status.Conditions, workv1alpha1.WorkApplied, metav1.ConditionTrue) || len(w.Status.ManifestStatuses) == 0 {
			continue
		}
		cluster, err := names.ClusterOfExecutionNamespace(w.Namespace)
		if err != nil {
			return nil, fmt.Errorf("work %s/%s: %w", w.Namespace, w.Name, err)
		}
		item := policyv1alpha1.ClusterQuotaStatus{ClusterName: cluster}
		if raw := w.Status.ManifestStatuses[0].Status; raw != nil {
			var reported struct {
				Hard, Used map[corev1.ResourceName]json.RawMessage
			}
			if err := json.Unmarshal(raw.Raw, &reported); err != nil {
				return nil, fmt.Errorf("reading the usage in cluster %s: %w", cluster, err)
			}
			item.Hard, item.Used = valid(reported.Hard), valid(reported.Used)
		}
		out = append(out, item)
	}
	slices.SortFunc(out, func(a, b policyv1alpha1.ClusterQuotaStatus) int { return cmp.Compare(a.ClusterName, b.ClusterName) })
	return out, nil
}

// valid returns a list without what admission refuses: an agent that reports it would make every later update of the
// quota fail. Nor does it have quantities that take long to parse.
func valid(list map[corev1.ResourceName]json.RawMessage) corev1.ResourceList {
	if list == nil {
		return nil
	}
	out := make(corev1.ResourceList, len(list))
	for name, text := range list {
		q, err := quantity.ParseJSON(text)
		if err == nil && len(validation.ValidateQuotaList(corev1.ResourceList{name: q}, nil)) == 0 {
			out[name] = q
		}
	}
	return out
}

// Sum returns the usage over all clusters.
func Sum(items []policyv1alpha1.ClusterQuotaStatus) corev1.ResourceList {
	out := corev1.ResourceList{}
	for i := range items {
		add(out, items[i].Used, 1)
	}
	return out
}

// Counted reports whether the usage of bindings has a resource: it counts what containers request.
func Counted(name corev1.ResourceName) bool { return validation.RequestedByContainers(name) }

// Count sets the limit in force and the usage of a quota, which is what the bindings of the namespace use.
func Count(q *policyv1alpha1.FederatedResourceQuota, total corev1.ResourceList) {
	q.Status.Overall, q.Status.OverallUsed = q.Spec.Overall, Restrict(total, q.Spec.Overall)
}

// SetAggregated sets the status by cluster. Where the usage is not that of bindings, because they are not limited, it is
// the sum over the clusters.
func SetAggregated(q *policyv1alpha1.FederatedResourceQuota, items []policyv1alpha1.ClusterQuotaStatus, enforced bool) {
	if q.Status.AggregatedStatus = items; !enforced {
		q.Status.Overall, q.Status.OverallUsed = q.Spec.Overall, Sum(items)
	}
}

// Restrict returns what a list has of the resources of a limit.
func Restrict(list, limit corev1.ResourceList) corev1.ResourceList {
	out := corev1.ResourceList{}
	for name, q := range list {
		if _, limited := limit[name]; limited {
			out[name] = q
		}
	}
	return out
}

// Warnings returns what of a limit has no effect on bindings: they are counted by what their containers request. With
// enforcement off, what is assigned to a cluster has an effect there.
func Warnings(q *policyv1alpha1.FederatedResourceQuota, enforced bool) []string {
	var out []string
	for _, name := range slices.Sorted(maps.Keys(q.Spec.Overall)) {
		assigned := slices.ContainsFunc(q.Spec.StaticAssignments, func(a policyv1alpha1.StaticClusterAssignment) bool {
			_, ok := a.Hard[name]
			return ok
		})
		if Counted(name) || assigned && !enforced {
			continue
		}
		out = append(out, fmt.Sprintf("spec.overall[%s] does not limit workloads: they are counted by what their containers request%s", name, instead(name)))
	}
	return out
}

// instead returns which key to use.
func instead(name corev1.ResourceName) string {
	if plain, ok := strings.CutPrefix(string(name), corev1.DefaultResourceRequestsPrefix); ok && Counted(corev1.ResourceName(plain)) {
		return "; use " + plain
	}
	return ", such as cpu and memory"
}

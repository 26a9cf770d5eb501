package binding

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	policyv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/policy/v1alpha1"
	workv1alpha2 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha2"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/replicas"
)

// completions divides the completions of a Job between its targets in proportion
// to their replicas. Nil means that there is nothing to divide.
func completions(obj *unstructured.Unstructured, spec *workv1alpha2.ResourceBindingSpec, targets []workv1alpha2.TargetCluster) map[string]int64 {
	gvk := obj.GroupVersionKind()
	if gvk.Group != "batch" || gvk.Kind != "Job" || spec.Replicas <= 0 || spec.Placement == nil ||
		spec.Placement.ReplicaSchedulingType() != policyv1alpha1.ReplicaSchedulingTypeDivided {
		return nil
	}
	total, found, err := unstructured.NestedInt64(obj.Object, "spec", "completions")
	if err != nil || !found {
		return nil
	}
	parties := make([]replicas.Party, len(targets))
	for i, t := range targets {
		parties[i] = replicas.Party{Name: t.Name, Votes: int64(t.Replicas)}
	}
	out := make(map[string]int64, len(parties))
	if !replicas.Dispense(total, parties, replicas.TieOf(string(obj.GetUID()))) {
		return out // no target gets any; revise fails for each
	}
	for _, p := range parties {
		out[p.Name] = p.Seats
	}
	return out
}

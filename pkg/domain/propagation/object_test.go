package propagation

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	policyv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/policy/v1alpha1"
	workv1alpha2 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha2"
)

func TestCompletions(t *testing.T) {
	job := func(uid string, completions any) *unstructured.Unstructured {
		obj := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "batch/v1", "kind": "Job", "spec": map[string]any{}}}
		obj.SetUID(types.UID(uid))
		if completions != nil {
			_ = unstructured.SetNestedField(obj.Object, completions, "spec", "completions")
		}
		return obj
	}
	divided := &policyv1alpha1.Placement{ReplicaScheduling: &policyv1alpha1.ReplicaSchedulingStrategy{
		ReplicaSchedulingType: policyv1alpha1.ReplicaSchedulingTypeDivided,
	}}
	other := job("", int64(5))
	other.SetAPIVersion("example.io/v1")
	for name, tc := range map[string]struct {
		job       *unstructured.Unstructured
		placement *policyv1alpha1.Placement
		targets   map[string]int32
		want      map[string]int64
	}{
		"in proportion to replicas":       {job("", int64(9)), divided, map[string]int32{"m1": 1, "m2": 2}, map[string]int64{"m1": 3, "m2": 6}},
		"the first by name gets the rest": {job("", int64(5)), divided, map[string]int32{"m1": 1, "m2": 1}, map[string]int64{"m1": 3, "m2": 2}},
		"duplicated jobs are not divided": {job("", int64(5)), &policyv1alpha1.Placement{}, map[string]int32{"m1": 1}, nil},
		"no completions":                  {job("", nil), divided, map[string]int32{"m1": 1}, nil},
		"no placement":                    {job("", int64(5)), nil, map[string]int32{"m1": 1}, nil},
		"another kind of that name":       {other, divided, map[string]int32{"m1": 1}, nil},
		"no weights":                      {job("", int64(5)), divided, map[string]int32{"m1": 0}, map[string]int64{}},
	} {
		t.Run(name, func(t *testing.T) {
			var clusters []workv1alpha2.TargetCluster
			for _, name := range []string{"m1", "m2"} {
				if n, ok := tc.targets[name]; ok {
					clusters = append(clusters, workv1alpha2.TargetCluster{Name: name, Replicas: n})
				}
			}
			spec := &workv1alpha2.ResourceBindingSpec{Replicas: 3, Placement: tc.placement}
			if diff := cmp.Diff(tc.want, completions(tc.job, spec, clusters)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

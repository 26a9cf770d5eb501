package propagation

import (
	"reflect"
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	policyv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/policy/v1alpha1"
	workv1alpha2 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha2"
	"github.com/karmada-toolkit/karmada/pkg/domain/scope"
)

// others returns the fields of the spec of a binding that other controllers write.
func others(s *scope.Binding) []string {
	out := []string{"Clusters", "GracefulEvictionTasks", "RequiredBy", "RescheduleTriggeredAt"}
	if !s.Priority {
		out = append(out, "SchedulePriority")
	}
	if !s.Affinity {
		out = append(out, "WorkloadAffinityGroups")
	}
	return out
}

// bindingSpec returns a spec in which every field is set.
func bindingSpec(t *testing.T) *workv1alpha2.ResourceBindingSpec {
	t.Helper()
	spec := &workv1alpha2.ResourceBindingSpec{
		Resource: workv1alpha2.ObjectReference{Name: "before"}, PropagateDeps: true,
		ReplicaRequirements: &workv1alpha2.ReplicaRequirements{Namespace: "before"}, Replicas: 1,
		Components: []workv1alpha2.Component{{Name: "before"}}, Clusters: []workv1alpha2.TargetCluster{{Name: "before"}},
		GracefulEvictionTasks: []workv1alpha2.GracefulEvictionTask{{FromCluster: "before"}},
		RequiredBy:            []workv1alpha2.BindingSnapshot{{Name: "before"}}, SchedulerName: "before",
		Placement: &policyv1alpha1.Placement{ClusterTolerations: nil}, Failover: &policyv1alpha1.FailoverBehavior{},
		ConflictResolution: policyv1alpha1.ConflictOverwrite, RescheduleTriggeredAt: &metav1.Time{Time: time.Unix(1, 0)},
		Suspension:                  &workv1alpha2.Suspension{Suspension: policyv1alpha1.Suspension{Dispatching: new(true)}},
		PreserveResourcesOnDeletion: new(true), SchedulePriority: &workv1alpha2.SchedulePriority{Priority: 1},
		WorkloadAffinityGroups: &workv1alpha2.WorkloadAffinityGroups{AffinityGroup: "before"},
	}
	for _, field := range reflect.VisibleFields(reflect.TypeFor[workv1alpha2.ResourceBindingSpec]()) {
		if reflect.ValueOf(*spec).FieldByIndex(field.Index).IsZero() {
			t.Fatalf("set the new field %s here, and write it in Spec.Apply or add it to the fields of others", field.Name)
		}
	}
	return spec
}

func TestSpec_WritesEveryFieldThatNoOtherControllerWrites(t *testing.T) {
	for _, s := range scope.Bindings() {
		t.Run(s.Kind, func(t *testing.T) {
			before, after := bindingSpec(t), bindingSpec(t)
			w := &Spec{Scope: s, Policy: &policyv1alpha1.PropagationSpec{Placement: policyv1alpha1.Placement{
				ClusterAffinity: &policyv1alpha1.ClusterAffinity{},
			}}}
			w.Apply(after, "2")
			for _, field := range reflect.VisibleFields(reflect.TypeFor[workv1alpha2.ResourceBindingSpec]()) {
				have, want := reflect.ValueOf(*after).FieldByIndex(field.Index), reflect.ValueOf(*before).FieldByIndex(field.Index)
				kept := reflect.DeepEqual(have.Interface(), want.Interface())
				if kept != slices.Contains(others(s), field.Name) {
					t.Errorf("field %s: kept is %t", field.Name, kept)
				}
			}
		})
	}
}

func TestSpec_KeepsTheSuspensionOfScheduling(t *testing.T) {
	dispatching := &policyv1alpha1.Suspension{Dispatching: new(true)}
	for name, tc := range map[string]struct {
		have   *workv1alpha2.Suspension
		policy *policyv1alpha1.Suspension
		want   *workv1alpha2.Suspension
	}{
		"nothing":               {nil, nil, nil},
		"policy":                {nil, dispatching, &workv1alpha2.Suspension{Suspension: *dispatching}},
		"scheduling":            {&workv1alpha2.Suspension{Scheduling: new(true)}, nil, &workv1alpha2.Suspension{Scheduling: new(true)}},
		"both":                  {&workv1alpha2.Suspension{Scheduling: new(true)}, dispatching, &workv1alpha2.Suspension{Scheduling: new(true), Suspension: *dispatching}},
		"no longer by a policy": {&workv1alpha2.Suspension{Suspension: *dispatching}, nil, nil},
	} {
		if got := suspension(tc.have, tc.policy); !reflect.DeepEqual(got, tc.want) {
			t.Errorf("%s: %v, want %v", name, got, tc.want)
		}
	}
}

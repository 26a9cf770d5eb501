package core_test

import (
	"encoding/json"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
	policyv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/policy/v1alpha1"
	workv1alpha2 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha2"
	"github.com/karmada-toolkit/karmada/pkg/domain/schedule/core"
	"github.com/karmada-toolkit/karmada/pkg/domain/schedule/framework"
)

// scheduled returns a binding that was scheduled as it is.
func scheduled(placement *policyv1alpha1.Placement) *workv1alpha2.ResourceBinding {
	applied, err := json.Marshal(placement)
	if err != nil {
		panic(err)
	}
	b := &workv1alpha2.ResourceBinding{}
	b.Namespace, b.Name = "default", "nginx-deployment"
	b.Annotations = map[string]string{policyv1alpha1.AppliedPlacementAnnotation: string(applied)}
	b.Spec.Placement = placement.DeepCopy()
	b.Spec.Replicas = 3
	b.Spec.Clusters = []workv1alpha2.TargetCluster{{Name: "m1", Replicas: 2}, {Name: "m2", Replicas: 1}}
	b.Status.LastScheduledTime = &metav1.Time{Time: time.Unix(100, 0)}
	return b
}

func terms(names ...string) *policyv1alpha1.Placement {
	p := &policyv1alpha1.Placement{ReplicaScheduling: divided(policyv1alpha1.ReplicaDivisionPreferenceAggregated, nil)}
	for _, n := range names {
		p.ClusterAffinities = append(p.ClusterAffinities, policyv1alpha1.ClusterAffinityTerm{AffinityName: n})
	}
	return p
}

func TestNeedsScheduling(t *testing.T) {
	simple := &policyv1alpha1.Placement{ReplicaScheduling: divided(policyv1alpha1.ReplicaDivisionPreferenceAggregated, nil)}
	at := func(sec int64) *metav1.Time { return &metav1.Time{Time: time.Unix(sec, 0)} }
	for _, tc := range []struct {
		name      string
		placement *policyv1alpha1.Placement
		change    func(*workv1alpha2.ResourceBinding)
		want      core.Cause
	}{
		{"a divided workload as it was is left alone", simple, func(*workv1alpha2.ResourceBinding) {}, core.CauseNone},
		{"never applied", simple, func(b *workv1alpha2.ResourceBinding) { b.Annotations = nil }, core.CausePlacement},
		{"what cannot be parsed counts as unchanged", simple, func(b *workv1alpha2.ResourceBinding) {
			b.Annotations[policyv1alpha1.AppliedPlacementAnnotation] = "{"
		}, core.CauseNone},
		{"a toleration was added", simple, func(b *workv1alpha2.ResourceBinding) {
			b.Spec.Placement.ClusterTolerations = tolerateAll()
		}, core.CausePlacement},
		{"another term was added", terms("a", "b"), func(b *workv1alpha2.ResourceBinding) {
			b.Status.SchedulerObservedAffinityName = "a"
			b.Spec.Placement.ClusterAffinities = append(b.Spec.Placement.ClusterAffinities, policyv1alpha1.ClusterAffinityTerm{AffinityName: "c"})
		}, core.CauseNone},
		{"the observed term was edited", terms("a", "b"), func(b *workv1alpha2.ResourceBinding) {
			b.Status.SchedulerObservedAffinityName = "b"
			b.Spec.Placement.ClusterAffinities[1].ClusterNames = []string{"m1"}
		}, core.CausePlacement},
		{"the observed term is gone", terms("a", "b"), func(b *workv1alpha2.ResourceBinding) {
			b.Status.SchedulerObservedAffinityName = "b"
			b.Spec.Placement.ClusterAffinities = b.Spec.Placement.ClusterAffinities[:1]
		}, core.CausePlacement},
		{"terms changed and none was observed", terms("a"), func(b *workv1alpha2.ResourceBinding) {
			b.Spec.Placement.ClusterAffinities[0].AffinityName = "z"
		}, core.CausePlacement},
		{"a workload affinity alone, with an observed term", terms("a"), func(b *workv1alpha2.ResourceBinding) {
			b.Status.SchedulerObservedAffinityName = "a"
			b.Spec.Placement.WorkloadAffinity = &policyv1alpha1.WorkloadAffinity{}
		}, core.CauseNone},
		{"scaled", simple, func(b *workv1alpha2.ResourceBinding) { b.Spec.Replicas = 4 }, core.CauseReplicas},
		{"a target was evicted", simple, func(b *workv1alpha2.ResourceBinding) { b.Spec.Clusters = b.Spec.Clusters[:1] }, core.CauseReplicas},
		{"asked for later than the last scheduling", simple, func(b *workv1alpha2.ResourceBinding) { b.Spec.RescheduleTriggeredAt = at(101) }, core.CauseTriggered},
		{"asked for in the second of the last scheduling", simple, func(b *workv1alpha2.ResourceBinding) { b.Spec.RescheduleTriggeredAt = at(100) }, core.CauseNone},
		{"asked for before it was ever scheduled", simple, func(b *workv1alpha2.ResourceBinding) {
			b.Status.LastScheduledTime, b.Spec.RescheduleTriggeredAt = nil, at(101)
		}, core.CauseNone},
		{"duplicated follows the clusters", &policyv1alpha1.Placement{}, func(*workv1alpha2.ResourceBinding) {}, core.CauseAlways},
		{"no workload follows the clusters", simple, func(b *workv1alpha2.ResourceBinding) {
			b.Spec.Replicas = 0
			b.Spec.Clusters = []workv1alpha2.TargetCluster{{Name: "m1"}}
		}, core.CauseAlways},
		{"a target is being deleted", simple, func(b *workv1alpha2.ResourceBinding) { b.Spec.Clusters[1].Name = "gone" }, core.CauseTerminating},
	} {
		t.Run(tc.name, func(t *testing.T) {
			gone := &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "gone", DeletionTimestamp: at(1)}}
			b := scheduled(tc.placement)
			tc.change(b)
			need, err := core.NeedsScheduling(b, core.NeedFacts{Snapshot: framework.SnapshotOf([]*clusterv1alpha1.Cluster{gone}, true)})
			if err != nil || need.Cause != tc.want || need.Due() != (tc.want != core.CauseNone) {
				t.Errorf("got %q, %v, want %q", need.Cause, err, tc.want)
			}
			wantType := core.ReconcileSchedule
			if tc.want == core.CauseReplicas {
				wantType = core.ScaleSchedule
			}
			if need.Due() && need.Type != wantType {
				t.Errorf("got type %s, want %s", need.Type, wantType)
			}
		})
	}
}

func TestNeedsScheduling_WithoutPlacement(t *testing.T) {
	rb := &workv1alpha2.ResourceBinding{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "x"}}
	crb := &workv1alpha2.ClusterResourceBinding{ObjectMeta: metav1.ObjectMeta{Name: "x"}}
	for want, b := range map[string]workv1alpha2.Binding{
		"failed to get placement from resourceBinding(ns/x)":     rb,
		"failed to get placement from clusterResourceBinding(x)": crb,
	} {
		if _, err := core.NeedsScheduling(b, core.NeedFacts{}); err == nil || err.Error() != want {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}

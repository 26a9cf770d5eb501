package delivery

import (
	"encoding/json"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"

	policyv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/policy/v1alpha1"
	workv1alpha2 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha2"
)

func TestPending_Wait(t *testing.T) {
	placement := policyv1alpha1.Placement{
		ClusterAffinity:   &policyv1alpha1.ClusterAffinity{ClusterNames: []string{"m1"}},
		ReplicaScheduling: &policyv1alpha1.ReplicaSchedulingStrategy{ReplicaSchedulingType: policyv1alpha1.ReplicaSchedulingTypeDivided},
	}
	applied, err := json.Marshal(placement)
	if err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		change func(*workv1alpha2.ResourceBinding)
		waits  bool
	}{
		"nothing to schedule":              {func(*workv1alpha2.ResourceBinding) {}, false},
		"another placement":                {func(b *workv1alpha2.ResourceBinding) { b.Spec.Placement.ClusterAffinity.ClusterNames[0] = "m2" }, true},
		"other replicas":                   {func(b *workv1alpha2.ResourceBinding) { b.Spec.Replicas = 7 }, true},
		"a scheduler that records nothing": {func(b *workv1alpha2.ResourceBinding) { b.Annotations, b.Spec.Replicas = nil, 7 }, false},
		"no placement":                     {func(b *workv1alpha2.ResourceBinding) { b.Spec.Placement, b.Spec.Replicas = nil, 7 }, false},
		"scheduling is suspended": {func(b *workv1alpha2.ResourceBinding) {
			b.Spec.Suspension, b.Spec.Replicas = &workv1alpha2.Suspension{Scheduling: new(true)}, 7
		}, false},
		"nothing fits": {func(b *workv1alpha2.ResourceBinding) {
			b.Spec.Replicas = 7
			b.Status.Conditions = []metav1.Condition{{Type: workv1alpha2.Scheduled, Status: metav1.ConditionFalse}}
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			b := &workv1alpha2.ResourceBinding{ObjectMeta: metav1.ObjectMeta{
				Name: "b", Generation: 2, Annotations: map[string]string{policyv1alpha1.AppliedPlacementAnnotation: string(applied)},
			}}
			b.Spec.Replicas, b.Spec.Placement, b.Spec.Clusters = 3, placement.DeepCopy(), []workv1alpha2.TargetCluster{{Name: "m1", Replicas: 3}}
			tc.change(b)
			now := clocktesting.NewFakePassiveClock(time.Unix(1000, 0))
			p, want := NewPending(now), time.Duration(0)
			if tc.waits {
				want = SchedulerWait
			}
			for range 2 { // whatever else happens to it
				if got := p.Wait(b); got != want {
					t.Errorf("waits %v, want %v", got, want)
				}
			}
			now.SetTime(now.Now().Add(SchedulerWait))
			if got := p.Wait(b); got > 0 {
				t.Errorf("waits %v when nothing answers", got)
			}
			b.Generation++
			if got := p.Wait(b); got != want {
				t.Errorf("waits %v after another change, want %v", got, want)
			}
		})
	}
}

package core_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
	policyv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/policy/v1alpha1"
	workv1alpha2 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha2"
	"github.com/karmada-toolkit/karmada/pkg/domain/schedule/core"
	"github.com/karmada-toolkit/karmada/pkg/domain/schedule/framework"
)

// withReady returns a cluster with room for a number of pods, in a region of its own, whose condition Ready has a status.
func withReady(name string, pods int64, status metav1.ConditionStatus) *clusterv1alpha1.Cluster {
	c := roomy(name, pods)
	c.Spec.Region = "region-" + name
	c.Status.Conditions = []metav1.Condition{{Type: clusterv1alpha1.ClusterConditionReady, Status: status}}
	return c
}

// spreadBy allows a number of groups.
func spreadBy(field policyv1alpha1.SpreadFieldValue, n int) policyv1alpha1.SpreadConstraint {
	return policyv1alpha1.SpreadConstraint{SpreadByField: field, MinGroups: 1, MaxGroups: n}
}

// A cluster that is not Ready keeps the replicas that it has, and gets no more.
func TestSchedule_NotReadyTargets(t *testing.T) {
	even := divided("", nil)
	weights := divided("", &policyv1alpha1.ClusterPreferences{StaticWeightList: []policyv1alpha1.StaticClusterWeight{
		{TargetCluster: policyv1alpha1.ClusterAffinity{ClusterNames: []string{"m1"}}, Weight: 1},
	}})
	oneCluster, oneRegion := spreadBy(policyv1alpha1.SpreadByFieldCluster, 1), spreadBy(policyv1alpha1.SpreadByFieldRegion, 1)
	const failed = "failed to assign replicas: "
	const none = "Clusters available replicas 0 are not enough to schedule."
	for _, tc := range []struct {
		name     string
		strategy *policyv1alpha1.ReplicaSchedulingStrategy
		spread   []policyv1alpha1.SpreadConstraint
		replicas int32
		held     []workv1alpha2.TargetCluster
		fresh    bool
		want     []workv1alpha2.TargetCluster
		err      string
		room     string
	}{
		{"scaling up by room", dynamic, nil, 6, targets("m1", 2, "m2", 2), false, targets("m1", 2, "m2", 4), "", ""},
		{"scaling up aggregated", aggregated, nil, 6, targets("m1", 2), false, targets("m1", 2, "m2", 4), "", ""},
		{"scaling up by weight", even, nil, 6, targets("m1", 2, "m2", 2), false, targets("m1", 2, "m2", 4), "", ""},
		{"scaling up beyond the room of Ready clusters", dynamic, nil, 20, targets("m1", 2, "m2", 2), false, nil,
			failed + "failed to scale up: Clusters available replicas 10 are not enough to schedule.", "m1 0 (not Ready), m2 10 (pods)"},
		{"scaling up by weight, which no Ready cluster has", weights, nil, 6, targets("m1", 2), false, nil, failed + none, "m1 0 (not Ready), m2 10 (pods)"},
		{"scaling up where another cluster is not allowed", dynamic, []policyv1alpha1.SpreadConstraint{oneCluster}, 6, targets("m1", 2), false, nil,
			failed + "failed to scale up: " + none, "m1 0 (not Ready)"},
		{"scaling up where another region is not allowed", aggregated, []policyv1alpha1.SpreadConstraint{oneRegion}, 6, targets("m1", 2), false, nil,
			failed + "failed to scale up: " + none, "m1 0 (not Ready)"},
		{"scaling up what is duplicated", nil, nil, 6, targets("m1", 2, "m2", 2), false, targets("m1", 6, "m2", 6), "", ""},
		{"scaling up what is duplicated in one cluster", nil, []policyv1alpha1.SpreadConstraint{oneCluster}, 6, targets("m1", 2), false, targets("m1", 6), "", ""},
		{"scaling up what is duplicated in one region", nil, []policyv1alpha1.SpreadConstraint{oneRegion}, 6, targets("m1", 2), false, targets("m1", 6), "", ""},
		{"scaling down by room", dynamic, nil, 3, targets("m1", 4, "m2", 2), false, targets("m1", 2, "m2", 1), "", ""},
		{"scaling down by weight", even, nil, 2, targets("m1", 3, "m2", 3), false, targets("m1", 1, "m2", 1), "", ""},
		{"as many as before", aggregated, nil, 4, targets("m2", 2, "m1", 2), false, targets("m2", 2, "m1", 2), "", ""},
		{"a new one by room", dynamic, nil, 6, nil, false, targets("m2", 6), "", ""},
		{"a new one aggregated", aggregated, nil, 6, nil, false, targets("m2", 6), "", ""},
		{"a new one by weight", even, nil, 6, nil, false, targets("m2", 6), "", ""},
		{"a new one in one cluster", dynamic, []policyv1alpha1.SpreadConstraint{oneCluster}, 6, nil, false, targets("m2", 6), "", ""},
		{"a new one in one region", dynamic, []policyv1alpha1.SpreadConstraint{oneRegion}, 6, nil, false, targets("m2", 6), "", ""},
		{"a new duplicated one in one cluster", nil, []policyv1alpha1.SpreadConstraint{oneCluster}, 6, nil, false, targets("m2", 6), "", ""},
		{"a new duplicated one", nil, nil, 6, nil, false, targets("m2", 6, "m1", 6), "", ""},
		{"a new one in one cluster, with more replicas than Ready clusters have room", dynamic, []policyv1alpha1.SpreadConstraint{oneCluster}, 11, nil, false, nil,
			"failed to select clusters: no enough resource when selecting 1 clusters", "m1 0 (not Ready), m2 10 (pods)"},
		{"a fresh one by room", dynamic, nil, 11, targets("m1", 1), true, targets("m1", 1, "m2", 10), "", ""},
		{"a fresh one aggregated", aggregated, nil, 4, targets("m1", 2, "m2", 2), true, targets("m2", 4), "", ""},
		{"a fresh one by weight", even, nil, 4, targets("m1", 1, "m2", 3), true, targets("m1", 1, "m2", 3), "", ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			for _, status := range []metav1.ConditionStatus{metav1.ConditionFalse, metav1.ConditionUnknown} {
				r := requestFor(t, &policyv1alpha1.Placement{ReplicaScheduling: tc.strategy, SpreadConstraints: tc.spread}, tc.replicas)
				r.Spec.ReplicaRequirements, r.Spec.Clusters = &workv1alpha2.ReplicaRequirements{}, tc.held
				if tc.fresh {
					r.Spec.RescheduleTriggeredAt = &metav1.Time{Time: time.Unix(2, 0)}
					r.Status.LastScheduledTime = &metav1.Time{Time: time.Unix(1, 0)}
				}
				got, err := core.Schedule(framework.SnapshotOf([]*clusterv1alpha1.Cluster{withReady("m1", 40, status), withReady("m2", 10, metav1.ConditionTrue)}, true), r)
				if (err != nil || tc.err != "") && fmt.Sprint(err) != tc.err {
					t.Errorf("got error %v, want %s", err, tc.err)
				}
				if diff := cmp.Diff(tc.want, got.Clusters); diff != "" {
					t.Error(diff)
				}
				if got.Room() != tc.room {
					t.Errorf("got room %q, want %q", got.Room(), tc.room)
				}
			}
		})
	}
}

// A policy that tolerates the taints of a cluster that is not Ready gets no new replicas there either.
func TestSchedule_NotReadyIsNotTolerated(t *testing.T) {
	lost := withReady("m1", 40, metav1.ConditionFalse)
	lost.Spec.Taints = []corev1.Taint{{Key: clusterv1alpha1.TaintClusterNotReady, Effect: corev1.TaintEffectNoSchedule}}
	r := requestFor(t, &policyv1alpha1.Placement{ReplicaScheduling: dynamic, ClusterTolerations: tolerateAll()}, 6)
	r.Spec.ReplicaRequirements = nil
	d, err := core.Schedule(framework.SnapshotOf([]*clusterv1alpha1.Cluster{lost, roomy("m2", 10)}, true), r) // m2 has no condition yet
	if diff := cmp.Diff(targets("m2", 6), d.Clusters); diff != "" || err != nil {
		t.Error(err, diff)
	}
}

func TestSchedule_NotReadyTier(t *testing.T) {
	names := func(n ...string) policyv1alpha1.ClusterAffinity {
		return policyv1alpha1.ClusterAffinity{ClusterNames: n}
	}
	r := requestFor(t, &policyv1alpha1.Placement{ReplicaScheduling: dynamic, ClusterAffinities: []policyv1alpha1.ClusterAffinityTerm{{
		AffinityName: "main", ClusterAffinity: names("m1"), OverflowAffinities: []policyv1alpha1.OverflowAffinityTerm{{AffinityName: "more", ClusterAffinity: names("m2")}},
	}}}, 6)
	r.Spec.ReplicaRequirements, r.Spec.Clusters = nil, targets("m1", 2)
	d, err := core.Schedule(framework.SnapshotOf([]*clusterv1alpha1.Cluster{withReady("m1", 40, metav1.ConditionFalse), roomy("m2", 10)}, true), r)
	if diff := cmp.Diff(targets("m1", 2, "m2", 4), d.Clusters); diff != "" || err != nil {
		t.Error(err, diff)
	}
}

// A set of components goes to a cluster that is Ready, and stays where it is.
func TestSchedule_NotReadySets(t *testing.T) {
	for want, held := range map[string][]workv1alpha2.TargetCluster{"m2": nil, "m1": targets("m1", 0)} {
		r := requestFor(t, &policyv1alpha1.Placement{SpreadConstraints: []policyv1alpha1.SpreadConstraint{spreadBy(policyv1alpha1.SpreadByFieldCluster, 1)}}, 0)
		r.Spec.ReplicaRequirements, r.Spec.Clusters, r.MultiplePodTemplates = nil, held, true
		r.Spec.Components = []workv1alpha2.Component{{Name: "jobmanager", Replicas: 1}, {Name: "taskmanager", Replicas: 4}}
		d, err := core.Schedule(framework.SnapshotOf([]*clusterv1alpha1.Cluster{withReady("m1", 40, metav1.ConditionFalse), withReady("m2", 10, metav1.ConditionTrue)}, true), r)
		if err != nil || len(d.Clusters) != 1 || d.Clusters[0].Name != want {
			t.Errorf("held %v: got %v, %v, want %s", held, d.Clusters, err, want)
		}
	}
}

// Whatever the placement, what is divided gives no more replicas to clusters that are not Ready.
func TestSchedule_NotReadyProperties(t *testing.T) {
	decided := 0
	for seed := range uint64(4000) {
		d := newDice(seed)
		clusters := d.clusters()
		r := d.request(t, d.placement())
		first, err := core.Schedule(framework.SnapshotOf(clusters, true), r)
		if err != nil || !dividedOver(r.Spec) || !r.Spec.IsWorkload() {
			continue
		}
		held := map[string]int32{}
		for _, c := range first.Clusters {
			held[c.Name] = c.Replicas
		}
		for i := range clusters {
			if d.one(2) {
				clusters[i] = clusters[i].DeepCopy()
				clusters[i].Status.Conditions = []metav1.Condition{{Type: clusterv1alpha1.ClusterConditionReady, Status: metav1.ConditionUnknown}}
			}
		}
		r.Spec.Clusters = first.Clusters
		r.Spec.Replicas += d.Int32N(20)
		if d.one(3) {
			r.Spec.RescheduleTriggeredAt = &metav1.Time{Time: time.Unix(2, 0)}
			r.Status.LastScheduledTime = &metav1.Time{Time: time.Unix(1, 0)}
		}
		snapshot := framework.SnapshotOf(clusters, true)
		second, err := core.Schedule(snapshot, r)
		if err != nil {
			continue
		}
		decided++
		check(t, snapshot, r, &second)
		for _, c := range second.Clusters {
			if snapshot.At(snapshot.Find(c.Name)).NotReady && c.Replicas > held[c.Name] {
				t.Fatalf("seed %d: %s is not Ready: %v to %v", seed, c.Name, first.Clusters, second.Clusters)
			}
		}
	}
	if decided < 500 {
		t.Errorf("only %d decisions succeeded", decided)
	}
}

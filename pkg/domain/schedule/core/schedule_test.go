package core_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
	policyv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/policy/v1alpha1"
	workv1alpha2 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha2"
	"github.com/karmada-toolkit/karmada/pkg/domain/replicas"
	"github.com/karmada-toolkit/karmada/pkg/domain/schedule/core"
	"github.com/karmada-toolkit/karmada/pkg/domain/schedule/framework"
)

// roomy returns a cluster with room for a number of pods.
func roomy(name string, pods int64) *clusterv1alpha1.Cluster {
	c := &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: name}}
	c.Status.APIEnablements = []clusterv1alpha1.APIEnablement{
		{GroupVersion: "apps/v1", Resources: []clusterv1alpha1.APIResource{{Name: "deployments", Kind: "Deployment"}}},
	}
	c.Status.ResourceSummary = &clusterv1alpha1.ResourceSummary{Allocatable: corev1.ResourceList{corev1.ResourcePods: *resource.NewQuantity(pods, resource.DecimalSI)}}
	return c
}

// targets pairs names and replicas.
func targets(clusters ...any) []workv1alpha2.TargetCluster {
	var out []workv1alpha2.TargetCluster
	for i := 0; i < len(clusters); i += 2 {
		out = append(out, workv1alpha2.TargetCluster{Name: clusters[i].(string), Replicas: int32(clusters[i+1].(int))})
	}
	return out
}

var (
	dynamic    = divided(policyv1alpha1.ReplicaDivisionPreferenceWeighted, available)
	aggregated = divided(policyv1alpha1.ReplicaDivisionPreferenceAggregated, nil)
)

// A cluster whose condition Ready changes often keeps the replicas that it has, and gets no more.
func TestSchedule_FlappingTargets(t *testing.T) {
	flapping := func(name string) *clusterv1alpha1.Cluster {
		c := roomy(name, 9)
		c.Spec.Taints = []corev1.Taint{{Key: clusterv1alpha1.TaintClusterFlapping, Effect: corev1.TaintEffectNoSchedule}}
		return c
	}
	even := divided("", nil)
	for _, tc := range []struct {
		name     string
		strategy *policyv1alpha1.ReplicaSchedulingStrategy
		tolerant bool
		replicas int32
		held     []workv1alpha2.TargetCluster
		fresh    bool
		want     []workv1alpha2.TargetCluster
	}{
		{"scaling up by room", dynamic, false, 6, targets("m1", 2, "m2", 1), false, targets("m1", 2, "m2", 4)},
		{"scaling up aggregated", aggregated, false, 6, targets("m1", 2), false, targets("m1", 2, "m2", 4)},
		{"scaling up by weight", even, false, 6, targets("m1", 1, "m2", 1), false, targets("m1", 1, "m2", 5)},
		{"a fresh one", dynamic, false, 11, targets("m1", 1), true, targets("m1", 1, "m2", 10)},
		{"scaling down", even, false, 2, targets("m1", 3, "m2", 3), false, targets("m1", 1, "m2", 1)},
		{"a binding that tolerates it", dynamic, true, 6, targets("m1", 2, "m2", 2), false, targets("m1", 3, "m2", 3)},
	} {
		t.Run(tc.name, func(t *testing.T) {
			placement := &policyv1alpha1.Placement{ReplicaScheduling: tc.strategy}
			if tc.tolerant {
				placement.ClusterTolerations = []corev1.Toleration{{Key: clusterv1alpha1.TaintClusterFlapping, Operator: corev1.TolerationOpExists}}
			}
			r := requestFor(t, placement, tc.replicas)
			r.Spec.ReplicaRequirements = &workv1alpha2.ReplicaRequirements{}
			r.Spec.Clusters = tc.held
			if tc.fresh {
				r.Spec.RescheduleTriggeredAt = &metav1.Time{Time: time.Unix(2, 0)}
				r.Status.LastScheduledTime = &metav1.Time{Time: time.Unix(1, 0)}
			}
			got, err := core.Schedule(framework.SnapshotOf([]*clusterv1alpha1.Cluster{flapping("m1"), roomy("m2", 10)}, true), r)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got.Clusters); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestSchedule_Divides(t *testing.T) {
	for _, tc := range []struct {
		name     string
		clusters []*clusterv1alpha1.Cluster
		strategy *policyv1alpha1.ReplicaSchedulingStrategy
		replicas int32
		held     []workv1alpha2.TargetCluster
		fresh    bool
		want     []workv1alpha2.TargetCluster
		err      string
	}{
		{"scaling up by room keeps what is there", []*clusterv1alpha1.Cluster{roomy("m1", 4), roomy("m2", 2)}, dynamic, 5, targets("m1", 2), false, targets("m1", 4, "m2", 1), ""},
		{"scaling up aggregated stays where it is", []*clusterv1alpha1.Cluster{roomy("m1", 4), roomy("m2", 2)}, aggregated, 5, targets("m1", 2), false, targets("m1", 5), ""},
		{"aggregated prefers targets to roomier clusters", []*clusterv1alpha1.Cluster{roomy("m1", 4), roomy("m2", 9)}, aggregated, 4, targets("m1", 2), false, targets("m1", 4), ""},
		{"scaling down is proportional", []*clusterv1alpha1.Cluster{roomy("m1", 0), roomy("m2", 0)}, dynamic, 3, targets("m1", 4, "m2", 2), false, targets("m1", 2, "m2", 1), ""},
		{"as many as before stay as they are", []*clusterv1alpha1.Cluster{roomy("m1", 9), roomy("m2", 9)}, dynamic, 3, targets("m2", 2, "m1", 1), false, targets("m2", 2, "m1", 1), ""},
		{"a fresh one starts over", []*clusterv1alpha1.Cluster{roomy("m1", 7), roomy("m2", 9)}, dynamic, 4, targets("m1", 4), true, targets("m1", 2, "m2", 2), ""},
		{"scaled to nothing, nothing is left", []*clusterv1alpha1.Cluster{roomy("m1", 7)}, dynamic, 0, targets("m1", 4), false, nil, ""},
		{"not enough room", []*clusterv1alpha1.Cluster{roomy("m1", 1), roomy("m2", 1)}, dynamic, 5, nil, false, nil, "failed to assign replicas: failed to scale up: Clusters available replicas 2 are not enough to schedule."},
		{"duplicated gives all to each", []*clusterv1alpha1.Cluster{roomy("m1", 1), roomy("m2", 2)}, nil, 5, nil, false, targets("m2", 5, "m1", 5), ""},
		{"divided without weights is even", []*clusterv1alpha1.Cluster{roomy("m1", 0), roomy("m2", 2)}, divided("", nil), 4, nil, false, targets("m1", 2, "m2", 2), ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r := requestFor(t, &policyv1alpha1.Placement{ReplicaScheduling: tc.strategy}, tc.replicas)
			r.Spec.ReplicaRequirements = &workv1alpha2.ReplicaRequirements{}
			r.Spec.Clusters = tc.held
			if tc.fresh {
				r.Spec.RescheduleTriggeredAt = &metav1.Time{Time: time.Unix(2, 0)}
				r.Status.LastScheduledTime = &metav1.Time{Time: time.Unix(1, 0)}
			}
			d, err := core.Schedule(framework.SnapshotOf(tc.clusters, true), r)
			if got := fmt.Sprint(err); (tc.err != "" || err != nil) && got != tc.err {
				t.Fatalf("got error %q, want %q", got, tc.err)
			}
			if err != nil && core.ClassOf(err) != core.Unschedulable {
				t.Errorf("class %s", core.ClassOf(err))
			}
			if diff := cmp.Diff(len(tc.want), len(d.Clusters)); diff != "" || len(tc.want) > 0 && !cmp.Equal(tc.want, d.Clusters) {
				t.Errorf("got %v, want %v", d.Clusters, tc.want)
			}
		})
	}
}

func TestSchedule_FitMessageNamesThreeClusters(t *testing.T) {
	var clusters []*clusterv1alpha1.Cluster
	for i := range 5 {
		c := roomy(fmt.Sprintf("m%d", 5-i), 10)
		c.Spec.Taints = []corev1.Taint{{Key: "dedicated", Value: "x", Effect: corev1.TaintEffectNoSchedule}}
		clusters = append(clusters, c)
	}
	clusters[0].Status.APIEnablements = nil
	clusters[1].DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)}
	d, err := core.Schedule(framework.SnapshotOf(clusters, true), requestFor(t, &policyv1alpha1.Placement{}, 1))
	want := "0/5 clusters are available: 1 cluster(s) did not have the API resource (m5), " +
		"3 cluster(s) had untolerated taint {dedicated=x:NoSchedule} (m1, m2, m3)."
	if err == nil || err.Error() != want || core.ClassOf(err) != core.NoClusterFit {
		t.Errorf("got  %v\nwant %s", err, want)
	}
	if len(d.Clusters) > 0 {
		t.Errorf("got clusters %v", d.Clusters)
	}
	_, err = core.Schedule(framework.SnapshotOf(nil, true), requestFor(t, &policyv1alpha1.Placement{}, 1))
	if err == nil || err.Error() != "0/0 clusters are available: no cluster exists." {
		t.Errorf("got %v", err)
	}
}

func TestSchedule_SpreadErrors(t *testing.T) {
	by := func(field policyv1alpha1.SpreadFieldValue, low, high int) policyv1alpha1.SpreadConstraint {
		return policyv1alpha1.SpreadConstraint{SpreadByField: field, MinGroups: low, MaxGroups: high}
	}
	two := []*clusterv1alpha1.Cluster{roomy("m1", 1), roomy("m2", 1)}
	for i := range two {
		two[i].Spec.Region, two[i].Spec.Zones = "eu", []string{"a"}
	}
	for _, tc := range []struct {
		want     string
		strategy *policyv1alpha1.ReplicaSchedulingStrategy
		spread   []policyv1alpha1.SpreadConstraint
	}{
		{"failed to select clusters: the number of feasible clusters is less than spreadConstraint.MinGroups", nil, []policyv1alpha1.SpreadConstraint{by("cluster", 3, 4)}},
		{"failed to select clusters: no enough resource when selecting 2 clusters", aggregated, []policyv1alpha1.SpreadConstraint{by("cluster", 1, 2)}},
		{"failed to select clusters: no enough resource when selecting 0 clusters", aggregated, []policyv1alpha1.SpreadConstraint{by("cluster", 1, 0)}},
		{"failed to assign replicas: no clusters available to schedule", nil, []policyv1alpha1.SpreadConstraint{by("cluster", 1, 0)}},
		{"failed to select clusters: the number of feasible region is less than spreadConstraint.MinGroups", nil, []policyv1alpha1.SpreadConstraint{by("region", 2, 2)}},
		{"failed to select clusters: the number of clusters is less than the cluster spreadConstraint.MinGroups", nil, []policyv1alpha1.SpreadConstraint{by("region", 1, 0)}},
		{"failed to select clusters: just support cluster and region spread constraint", nil, []policyv1alpha1.SpreadConstraint{by("zone", 1, 1)}},
	} {
		t.Run(tc.want, func(t *testing.T) {
			_, err := core.Schedule(framework.SnapshotOf(two, true), requestFor(t, &policyv1alpha1.Placement{SpreadConstraints: tc.spread, ReplicaScheduling: tc.strategy}, 5))
			if err == nil || err.Error() != tc.want || core.ClassOf(err) != core.SchedulerError {
				t.Errorf("got %v (%s)", err, core.ClassOf(err))
			}
		})
	}
}

func TestSchedule_TermsAreTriedInOrder(t *testing.T) {
	p := &policyv1alpha1.Placement{ReplicaScheduling: dynamic}
	for _, n := range []string{"m1", "m2", "m3"} {
		p.ClusterAffinities = append(p.ClusterAffinities, policyv1alpha1.ClusterAffinityTerm{
			AffinityName: "only-" + n, ClusterAffinity: policyv1alpha1.ClusterAffinity{ClusterNames: []string{n}},
		})
	}
	snapshot := framework.SnapshotOf([]*clusterv1alpha1.Cluster{roomy("m1", 9), roomy("m2", 5), roomy("m3", 1)}, true)
	for _, tc := range []struct {
		name     string
		replicas int32
		observed string
		want     string
		failed   []string
	}{
		{"a new binding begins with the first", 4, "", "only-m1", nil},
		{"the observed term is not left while it does", 4, "only-m2", "only-m2", nil},
		{"the earlier terms come after the last, in order", 4, "only-m3", "only-m1", []string{"only-m3"}},
		{"all later terms come before the earlier ones", 6, "only-m2", "only-m1", []string{"only-m2", "only-m3"}},
		{"each term is tried once", 99, "only-m2", "", []string{"only-m2", "only-m3", "only-m1"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r := requestFor(t, p, tc.replicas)
			r.Spec.ReplicaRequirements, r.Status.SchedulerObservedAffinityName = nil, tc.observed
			d, err := core.Schedule(snapshot, r)
			var failed []string
			for _, f := range d.Failed {
				failed = append(failed, f.Name)
				if p.ClusterAffinities[f.Index].AffinityName != f.Name {
					t.Errorf("%s has the index %d", f.Name, f.Index)
				}
			}
			if diff := cmp.Diff(tc.failed, failed); d.AffinityName != tc.want || diff != "" {
				t.Errorf("got %q, %v: %s", d.AffinityName, err, diff)
			}
			if (err == nil) != (tc.want != "") || err != nil && !errors.Is(err, d.Failed[0].Err) {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestSchedule_AllTermsFail(t *testing.T) {
	p := &policyv1alpha1.Placement{ReplicaScheduling: dynamic, ClusterAffinities: []policyv1alpha1.ClusterAffinityTerm{
		{AffinityName: "primary", ClusterAffinity: policyv1alpha1.ClusterAffinity{ClusterNames: []string{"m1"}}},
		{AffinityName: "backup", ClusterAffinity: policyv1alpha1.ClusterAffinity{ClusterNames: []string{"m2"}}},
	}}
	r := requestFor(t, p, 4)
	r.Spec.ReplicaRequirements, r.Status.SchedulerObservedAffinityName = nil, "backup"
	_, err := core.Schedule(framework.SnapshotOf([]*clusterv1alpha1.Cluster{roomy("m1", 3)}, true), r)
	want := `In affinity group "backup": 0/1 clusters are available: 1 cluster(s) did not match the placement cluster affinity constraint (m1). ` +
		`In affinity group "primary": failed to assign replicas: failed to scale up: Clusters available replicas 3 are not enough to schedule.`
	if err == nil || err.Error() != want || core.ClassOf(err) != core.NoClusterFit {
		t.Errorf("got %v, want %s", err, want)
	}
}

func TestSchedule_OverflowFillsTiersInOrder(t *testing.T) {
	names := func(n ...string) policyv1alpha1.ClusterAffinity {
		return policyv1alpha1.ClusterAffinity{ClusterNames: n}
	}
	p := &policyv1alpha1.Placement{ReplicaScheduling: dynamic, ClusterAffinities: []policyv1alpha1.ClusterAffinityTerm{{
		AffinityName: "main", ClusterAffinity: names("m1"),
		OverflowAffinities: []policyv1alpha1.OverflowAffinityTerm{{AffinityName: "more", ClusterAffinity: names("m2")}, {AffinityName: "rest", ClusterAffinity: names("m3")}},
	}}}
	r := requestFor(t, p, 6)
	r.Spec.ReplicaRequirements = nil
	clusters := []*clusterv1alpha1.Cluster{roomy("m1", 2), roomy("m2", 3), roomy("m3", 9)}
	d, err := core.Schedule(framework.SnapshotOf(clusters, true), r)
	if diff := cmp.Diff(targets("m1", 2, "m2", 3, "m3", 1), d.Clusters); diff != "" || err != nil {
		t.Error(err, diff)
	}
	r.Spec.Clusters, r.Spec.Replicas = d.Clusters, 4
	d, err = core.Schedule(framework.SnapshotOf([]*clusterv1alpha1.Cluster{roomy("m1", 0), roomy("m2", 0), roomy("m3", 0)}, true), r)
	if diff := cmp.Diff(targets("m1", 2, "m2", 2), d.Clusters); diff != "" || err != nil {
		t.Error("scaling down drains the last tier first", err, diff)
	}
	r.Spec.Clusters, r.Spec.Replicas = nil, 15
	if _, err = core.Schedule(framework.SnapshotOf(clusters, true), r); core.ClassOf(err) != core.Unschedulable ||
		err.Error() != "failed to assign replicas: Clusters available replicas are not enough to schedule." {
		t.Error(err)
	}
}

func TestSchedule_EstimatesOnlyLower(t *testing.T) {
	clusters := []*clusterv1alpha1.Cluster{roomy("m1", 10), roomy("m2", 10), roomy("m3", 10), roomy("m4", 10)}
	r := requestFor(t, &policyv1alpha1.Placement{ReplicaScheduling: dynamic}, 23)
	r.Spec.ReplicaRequirements = nil
	r.Estimates = map[string]core.Estimate{"m1": {Replicas: 3}, "m2": {Replicas: core.Unauthentic}, "m3": {Err: "deadline exceeded"}, "m4": {Replicas: 0}}
	d, err := core.Schedule(framework.SnapshotOf(clusters, true), r)
	if diff := cmp.Diff(targets("m1", 3, "m2", 10, "m3", 10), d.Clusters); diff != "" || err != nil {
		t.Error(err, diff)
	}
	e := d.Explain().Passes[0].Clusters
	if e[0].BoundBy != "scheduler-estimator" || e[2].EstimatorError != "deadline exceeded" || e[3].Reason != "got no replicas" {
		t.Errorf("%+v", e)
	}
}

func TestExplain_Detail(t *testing.T) {
	names := func(name string) policyv1alpha1.ClusterAffinity {
		return policyv1alpha1.ClusterAffinity{ClusterNames: []string{name}}
	}
	r := requestFor(t, &policyv1alpha1.Placement{ClusterAffinities: []policyv1alpha1.ClusterAffinityTerm{
		{AffinityName: "first", ClusterAffinity: names("m0")}, {AffinityName: strings.Repeat("x", 300), ClusterAffinity: names("m2")},
	}}, 1)
	r.Spec.ReplicaRequirements, r.Status = nil, nil
	d, err := core.Schedule(framework.SnapshotOf([]*clusterv1alpha1.Cluster{roomy("m1", 9), roomy("m2", 9)}, true), r)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, pass := range d.Explain().Passes {
		for _, c := range pass.Clusters {
			got = append(got, c.Detail)
		}
	}
	first := "term first: not in affinity clusterNames [m0]"
	if diff := cmp.Diff([]string{first, first, "term " + strings.Repeat("x", 251) + "…", ""}, got); diff != "" {
		t.Error(diff)
	}
}

func TestSchedule_AssumedWorkloadsTakeRoom(t *testing.T) {
	r := requestFor(t, &policyv1alpha1.Placement{ReplicaScheduling: aggregated}, 6)
	r.Spec.ReplicaRequirements = nil
	r.Assumed = map[string][]replicas.Workload{"m1": {{Components: []workv1alpha2.Component{{Replicas: 7}}}}}
	d, err := core.Schedule(framework.SnapshotOf([]*clusterv1alpha1.Cluster{roomy("m1", 10), roomy("m2", 9)}, true), r)
	if diff := cmp.Diff(targets("m2", 6), d.Clusters); diff != "" || err != nil {
		t.Error(err, diff)
	}
}

func TestSchedule_WholeSetsOfComponents(t *testing.T) {
	const noRoom = "failed to select clusters: no enough resource when selecting 1 clusters"
	for _, strategy := range []*policyv1alpha1.ReplicaSchedulingStrategy{nil, {ReplicaSchedulingType: policyv1alpha1.ReplicaSchedulingTypeDuplicated}, aggregated} {
		for _, tc := range []struct {
			name   string
			m1, m2 int64
			held   []workv1alpha2.TargetCluster
			want   string
			err    string
		}{
			{"the cluster with room for a set", 4, 5, nil, "m2", ""},
			{"no cluster with room", 4, 4, nil, "", noRoom},
			{"the set that runs takes the room", 4, 0, targets("m2", 0), "m2", ""},
			{"a set does not move to more room", 9, 0, targets("m2", 0), "m2", ""},
			{"a target that is gone has no room", 4, 4, targets("m3", 0), "", noRoom},
		} {
			t.Run(tc.name, func(t *testing.T) {
				r := requestFor(t, &policyv1alpha1.Placement{
					ReplicaScheduling: strategy,
					SpreadConstraints: []policyv1alpha1.SpreadConstraint{{SpreadByField: policyv1alpha1.SpreadByFieldCluster, MinGroups: 1, MaxGroups: 1}},
				}, 0)
				r.Spec.ReplicaRequirements, r.Spec.Clusters, r.MultiplePodTemplates = nil, tc.held, true
				r.Spec.Components = []workv1alpha2.Component{{Name: "jobmanager", Replicas: 1}, {Name: "taskmanager", Replicas: 4}}
				d, err := core.Schedule(framework.SnapshotOf([]*clusterv1alpha1.Cluster{roomy("m1", tc.m1), roomy("m2", tc.m2)}, true), r)
				if tc.err != "" {
					if err == nil || err.Error() != tc.err {
						t.Errorf("got %v, %v", d.Clusters, err)
					}
					return
				}
				want := []workv1alpha2.TargetCluster{{Name: tc.want, Components: []workv1alpha2.TargetComponent{{Name: "jobmanager", Replicas: 1}, {Name: "taskmanager", Replicas: 4}}}}
				if diff := cmp.Diff(want, d.Clusters); diff != "" || err != nil {
					t.Error(err, diff)
				}
			})
		}
	}
}

func TestSchedule_EmptyWorkloadPropagation(t *testing.T) {
	r := requestFor(t, &policyv1alpha1.Placement{ReplicaScheduling: aggregated}, 3)
	r.Spec.ReplicaRequirements, r.EmptyWorkloadPropagation = nil, true
	d, err := core.Schedule(framework.SnapshotOf([]*clusterv1alpha1.Cluster{roomy("m1", 9), roomy("m2", 5)}, true), r)
	if diff := cmp.Diff(targets("m1", 3, "m2", 0), d.Clusters); diff != "" || err != nil {
		t.Error(err, diff)
	}
}

func TestSchedule_Allocations(t *testing.T) {
	snapshot := framework.SnapshotOf(fleet(10), true)
	for _, s := range strategies() {
		r := requestFor(t, s.placement(), 37)
		if n := testing.AllocsPerRun(200, func() { _, _ = core.Schedule(snapshot, r) }); n > 20 {
			t.Errorf("%s: %v allocations per decision", s.name, n)
		}
	}
}

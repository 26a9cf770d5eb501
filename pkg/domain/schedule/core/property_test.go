package core_test

import (
	"encoding/json"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/karmada-toolkit/karmada/internal/build"
	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
	policyv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/policy/v1alpha1"
	workv1alpha2 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha2"
	"github.com/karmada-toolkit/karmada/pkg/domain/schedule/core"
	"github.com/karmada-toolkit/karmada/pkg/domain/schedule/framework"
)

// dice throws random clusters, placements and bindings.
type dice struct{ *rand.Rand }

func newDice(seed uint64) dice { return dice{rand.New(rand.NewPCG(seed, 99))} }

func (d dice) one(in int) bool { return d.IntN(in) == 0 }

func (d dice) clusters() []*clusterv1alpha1.Cluster {
	out := fleet(1 + d.IntN(14))
	for _, c := range out {
		c.Spec.Region = []string{"", "eu", "us", "ap"}[d.IntN(4)]
		if d.one(8) {
			c.Spec.Taints = []corev1.Taint{{Key: "dedicated", Effect: corev1.TaintEffectNoSchedule}}
		}
		if d.one(12) {
			c.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)}
		}
		if d.one(6) {
			c.Status.ResourceSummary = nil
		}
		if d.one(4) && c.Status.ResourceSummary != nil {
			c.Status.ResourceSummary.Allocatable[corev1.ResourcePods] = *resource.NewQuantity(d.Int64N(30), resource.DecimalSI)
		}
	}
	return out
}

func (d dice) affinity() policyv1alpha1.ClusterAffinity {
	a := policyv1alpha1.ClusterAffinity{}
	if d.one(2) {
		a.LabelSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"env": []string{"prod", "stage"}[d.IntN(2)]}}
	}
	if d.one(4) {
		a.ExcludeClusters = []string{"member0001"}
	}
	return a
}

func (d dice) strategy() *policyv1alpha1.ReplicaSchedulingStrategy {
	switch d.IntN(5) {
	case 0:
		return nil
	case 1:
		return &policyv1alpha1.ReplicaSchedulingStrategy{ReplicaSchedulingType: policyv1alpha1.ReplicaSchedulingTypeDuplicated}
	case 2:
		return divided(policyv1alpha1.ReplicaDivisionPreferenceAggregated, nil)
	case 3:
		return divided(policyv1alpha1.ReplicaDivisionPreferenceWeighted, available)
	default:
		p := &policyv1alpha1.ClusterPreferences{}
		for range d.IntN(3) {
			p.StaticWeightList = append(p.StaticWeightList, policyv1alpha1.StaticClusterWeight{TargetCluster: d.affinity(), Weight: 1 + d.Int64N(4)})
		}
		return divided(policyv1alpha1.ReplicaDivisionPreferenceWeighted, p)
	}
}

// tiers is the number of overflow affinities; admission allows them only where
// replicas are divided by room.
func (d dice) tiers(s *policyv1alpha1.ReplicaSchedulingStrategy) int {
	if s == nil || s.ReplicaDivisionPreference != policyv1alpha1.ReplicaDivisionPreferenceAggregated &&
		(s.WeightPreference == nil || s.WeightPreference.DynamicWeight == "") {
		return 0
	}
	return d.IntN(3)
}

func (d dice) placement() *policyv1alpha1.Placement {
	p := &policyv1alpha1.Placement{ReplicaScheduling: d.strategy()}
	switch d.IntN(3) {
	case 0:
		a := d.affinity()
		p.ClusterAffinity = &a
	case 1:
		for i := range 1 + d.IntN(3) {
			t := policyv1alpha1.ClusterAffinityTerm{AffinityName: string(rune('a' + i)), ClusterAffinity: d.affinity()}
			for j := range d.tiers(p.ReplicaScheduling) {
				t.OverflowAffinities = append(t.OverflowAffinities, policyv1alpha1.OverflowAffinityTerm{AffinityName: "o" + string(rune('a'+j)), ClusterAffinity: d.affinity()})
			}
			p.ClusterAffinities = append(p.ClusterAffinities, t)
		}
	}
	if d.one(3) {
		p.SpreadConstraints = append(p.SpreadConstraints, policyv1alpha1.SpreadConstraint{SpreadByField: policyv1alpha1.SpreadByFieldCluster, MinGroups: 1 + d.IntN(3), MaxGroups: 3 + d.IntN(4)})
		if d.one(2) {
			p.SpreadConstraints = append(p.SpreadConstraints, policyv1alpha1.SpreadConstraint{SpreadByField: policyv1alpha1.SpreadByFieldRegion, MinGroups: 1 + d.IntN(2), MaxGroups: 2 + d.IntN(2)})
		}
	}
	if d.one(3) {
		p.ClusterTolerations = []corev1.Toleration{{Operator: corev1.TolerationOpExists}}
	}
	return p
}

func (d dice) request(t *testing.T, placement *policyv1alpha1.Placement) *core.Request {
	t.Helper()
	r := requestFor(t, placement, int32(d.IntN(80)))
	r.Spec.Resource.UID = types.UID("u" + "xy"[:d.IntN(3)])
	if d.one(6) {
		r.Spec.ReplicaRequirements = nil
	}
	if d.one(3) {
		r.Spec.GracefulEvictionTasks = []workv1alpha2.GracefulEvictionTask{{FromCluster: "member0002"}}
	}
	return &core.Request{Binding: r.Binding, Profile: r.Profile}
}

func sum(clusters []workv1alpha2.TargetCluster) (n int64) {
	for _, c := range clusters {
		n += int64(c.Replicas)
	}
	return n
}

// dividedOver reports whether replicas are shared between the targets.
func dividedOver(spec *workv1alpha2.ResourceBindingSpec) bool {
	s := spec.Placement.ReplicaScheduling
	return s != nil && s.ReplicaSchedulingType == policyv1alpha1.ReplicaSchedulingTypeDivided
}

func check(t *testing.T, snapshot *framework.Snapshot, r *core.Request, d *core.Decision) {
	t.Helper()
	explained := d.Explain()
	last := explained.Passes[len(explained.Passes)-1]
	for _, c := range d.Clusters {
		at := snapshot.Find(c.Name)
		if at < 0 || last.Clusters[at].RejectedBy != "" || !last.Clusters[at].Target || snapshot.At(at).Terminating {
			t.Fatalf("%s is not feasible", c.Name)
		}
		if c.Replicas < 0 {
			t.Fatalf("%s has %d replicas", c.Name, c.Replicas)
		}
		if last.Clusters[at].Replicas != c.Replicas {
			t.Fatalf("%s has %d replicas, explained as %d", c.Name, c.Replicas, last.Clusters[at].Replicas)
		}
	}
	if got := sum(d.Clusters); r.Spec.IsWorkload() && dividedOver(r.Spec) && got != int64(r.Spec.Replicas) {
		t.Fatalf("%d of %d replicas assigned", got, r.Spec.Replicas)
	}
}

func TestSchedule_Properties(t *testing.T) {
	decided := 0
	for seed := range uint64(4000) {
		d := newDice(seed)
		clusters := d.clusters()
		snapshot := framework.SnapshotOf(clusters, true)
		r := d.request(t, d.placement())
		first, err := core.Schedule(snapshot, r)
		if _, e := json.Marshal(first.Explain()); e != nil {
			t.Fatal(e)
		}
		d.Shuffle(len(clusters), func(i, j int) { clusters[i], clusters[j] = clusters[j], clusters[i] })
		shuffled, again := core.Schedule(framework.SnapshotOf(clusters, true), r)
		if diff := cmp.Diff(first.Clusters, shuffled.Clusters); diff != "" || (err == nil) != (again == nil) {
			t.Fatalf("seed %d: the order of clusters matters: %s %v %v", seed, diff, err, again)
		}
		if err != nil {
			continue
		}
		decided++
		check(t, snapshot, r, &first)
		rescheduled(t, seed, snapshot, r, &first)
		scaledUp(t, seed, snapshot, r, &first)
	}
	if decided < 1500 {
		t.Errorf("only %d decisions succeeded", decided)
	}
}

// rescheduled checks that nothing changes when nothing has changed. Where room
// decides which clusters are used, a result that does not show in the capacity
// changes it: spread constraints and overflow tiers are left out.
func rescheduled(t *testing.T, seed uint64, snapshot *framework.Snapshot, r *core.Request, first *core.Decision) {
	t.Helper()
	overflows := slices.ContainsFunc(r.Spec.Placement.ClusterAffinities, func(a policyv1alpha1.ClusterAffinityTerm) bool {
		return a.OverflowAffinities != nil
	})
	if len(r.Spec.Placement.SpreadConstraints) > 0 || overflows {
		return
	}
	spec := *r.Spec
	spec.Clusters = first.Clusters
	second, err := core.Schedule(snapshot, &core.Request{Profile: r.Profile, Binding: framework.Binding{
		Spec: &spec, Status: &workv1alpha2.ResourceBindingStatus{SchedulerObservedAffinityName: first.AffinityName},
	}})
	if err != nil {
		t.Fatalf("seed %d: scheduling again: %v", seed, err)
	}
	byName := cmpopts.SortSlices(func(a, b workv1alpha2.TargetCluster) bool { return a.Name < b.Name })
	if diff := cmp.Diff(first.Clusters, second.Clusters, byName); diff != "" {
		t.Fatalf("seed %d: scheduling again changed the result: %s", seed, diff)
	}
}

// scaledUp checks that more replicas take none away.
func scaledUp(t *testing.T, seed uint64, snapshot *framework.Snapshot, r *core.Request, first *core.Decision) {
	t.Helper()
	s := r.Spec.Placement.ReplicaScheduling
	if !dividedOver(r.Spec) || len(r.Spec.Placement.SpreadConstraints) > 0 || (s.WeightPreference != nil && s.WeightPreference.DynamicWeight == "") ||
		len(r.Spec.Placement.ClusterAffinities) > 0 {
		return
	}
	spec := *r.Spec
	spec.Clusters, spec.Replicas = first.Clusters, spec.Replicas+7
	second, err := core.Schedule(snapshot, &core.Request{Profile: r.Profile, Binding: framework.Binding{Spec: &spec, Status: r.Status}})
	if err != nil {
		return
	}
	for _, before := range first.Clusters {
		at := slices.IndexFunc(second.Clusters, func(c workv1alpha2.TargetCluster) bool { return c.Name == before.Name })
		if before.Replicas > 0 && (at < 0 || second.Clusters[at].Replicas < before.Replicas) {
			t.Fatalf("seed %d: scaling up took replicas from %s: %v to %v", seed, before.Name, first.Clusters, second.Clusters)
		}
	}
}

// FuzzSchedule looks for placements that break a decision.
func FuzzSchedule(f *testing.F) {
	for seed := range uint64(40) {
		raw, err := json.Marshal(newDice(seed).placement())
		if err != nil {
			f.Fatal(err)
		}
		f.Add(raw, seed)
	}
	f.Add([]byte(`{"spreadConstraints":[{"spreadByField":"region","minGroups":-1,"maxGroups":-2},{"spreadByField":"cluster"}]}`), uint64(1))
	f.Add([]byte(`{"spreadConstraints":[{"spreadByLabel":"x"}],"replicaScheduling":{"replicaSchedulingType":"Divided"}}`), uint64(2))
	f.Fuzz(func(t *testing.T, raw []byte, seed uint64) {
		var placement policyv1alpha1.Placement
		if json.Unmarshal(raw, &placement) != nil || tooWide(&placement) {
			t.Skip()
		}
		d := newDice(seed)
		snapshot := framework.SnapshotOf(d.clusters(), true)
		r := d.request(t, &placement)
		build.Bounded(t, time.Minute, 256<<20+uint64(65536*len(raw)), func() {
			decision, err := core.Schedule(snapshot, r)
			decision.Explain()
			if err == nil {
				check(t, snapshot, r, &decision)
			}
		})
	})
}

// tooWide reports whether a placement asks for what admission refuses.
func tooWide(p *policyv1alpha1.Placement) bool {
	if s := p.ReplicaScheduling; s != nil && s.WeightPreference != nil {
		for _, w := range s.WeightPreference.StaticWeightList {
			if w.Weight < 1 || w.Weight > 1<<40 {
				return true
			}
		}
	}
	return false
}

func TestSchedule_ManyAtTheSameTime(t *testing.T) {
	snapshot := framework.SnapshotOf(fleet(30), true)
	shared := profile(t)
	var wg sync.WaitGroup
	for _, s := range strategies() {
		r := requestFor(t, s.placement(), 95)
		r.Profile = shared
		want, err := core.Schedule(snapshot, r)
		if err != nil {
			t.Fatal(err)
		}
		for range 4 {
			wg.Go(func() {
				for range 50 {
					got, err := core.Schedule(snapshot, r)
					if diff := cmp.Diff(want.Clusters, got.Clusters); diff != "" || err != nil {
						t.Error(err, diff)
						return
					}
				}
			})
		}
	}
	wg.Wait()
}

package eviction

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
	policyv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/policy/v1alpha1"
	workv1alpha2 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha2"
)

var noon = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

func member(name string, ready metav1.ConditionStatus, taints ...corev1.Taint) *clusterv1alpha1.Cluster {
	c := &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: name}}
	c.Spec.Taints = taints
	c.Status.Conditions = []metav1.Condition{{Type: clusterv1alpha1.ClusterConditionReady, Status: ready}}
	return c
}

// leaving returns a workload with 3 divided replicas that leaves m1, where it had 2.
func leaving(targets ...workv1alpha2.TargetCluster) *workv1alpha2.ResourceBinding {
	b := &workv1alpha2.ResourceBinding{ObjectMeta: metav1.ObjectMeta{Generation: 2, Annotations: map[string]string{
		policyv1alpha1.AppliedPlacementAnnotation: `{"clusterTolerations":[{"key":"ok","operator":"Exists"}]}`,
	}}}
	b.Spec.Replicas = 3
	b.Spec.Placement = &policyv1alpha1.Placement{
		ClusterAffinity:   &policyv1alpha1.ClusterAffinity{ClusterNames: []string{"m1", "m2", "m3"}},
		ReplicaScheduling: &policyv1alpha1.ReplicaSchedulingStrategy{ReplicaSchedulingType: policyv1alpha1.ReplicaSchedulingTypeDivided},
	}
	b.Spec.Clusters = targets
	b.Spec.GracefulEvictionTasks = []workv1alpha2.GracefulEvictionTask{{
		FromCluster: "m1", Producer: ProducerTaintManager, Reason: ReasonTaintUntolerated, Replicas: new(int32(2)),
		PurgeMode: policyv1alpha1.PurgeModeGracefully, CreationTimestamp: &metav1.Time{Time: noon.Add(-time.Hour)},
	}}
	return b
}

func target(name string, replicas int32) workv1alpha2.TargetCluster {
	return workv1alpha2.TargetCluster{Name: name, Replicas: replicas}
}

// A workload whose eviction lasted too long is not deleted from a cluster that is back while it runs nowhere else.
func TestGraceful_CancelsEvictionsFromClustersThatAreBack(t *testing.T) {
	type targets = []workv1alpha2.TargetCluster
	down := corev1.Taint{Key: "down", Effect: corev1.TaintEffectNoExecute}
	cordoned := corev1.Taint{Key: "cordoned", Effect: corev1.TaintEffectNoSchedule}
	healthy := func(b *workv1alpha2.ResourceBinding) {
		b.Status.SchedulerObservedGeneration = 2
		b.Status.AggregatedStatus = []workv1alpha2.AggregatedStatusItem{{ClusterName: "m2", Health: workv1alpha2.ResourceHealthy, Status: &runtime.RawExtension{Raw: []byte(`{"readyReplicas":3}`)}}}
	}
	healthyInM3 := func(b *workv1alpha2.ResourceBinding) {
		b.Status.AggregatedStatus = []workv1alpha2.AggregatedStatusItem{{ClusterName: "m2", Health: workv1alpha2.ResourceUnhealthy}, {ClusterName: "m3", Health: workv1alpha2.ResourceHealthy}}
	}
	for name, tc := range map[string]struct {
		cluster *clusterv1alpha1.Cluster
		targets targets
		set     func(*workv1alpha2.ResourceBinding)
		want    targets // nil if the eviction is not cancelled
	}{
		"runs nowhere":                      {cluster: member("m1", "True"), want: targets{target("m1", 2)}},
		"runs nowhere, cluster is cordoned": {cluster: member("m1", "True", cordoned), want: targets{target("m1", 2)}},
		"runs nowhere, purged directly": {cluster: member("m1", "True"), want: targets{target("m1", 2)}, set: func(b *workv1alpha2.ResourceBinding) {
			b.Spec.GracefulEvictionTasks[0].PurgeMode = policyv1alpha1.PurgeModeDirectly
		}},
		"runs nowhere, scheduled by then":   {cluster: member("m1", "True"), want: targets{target("m1", 2)}, set: func(b *workv1alpha2.ResourceBinding) { b.Status.SchedulerObservedGeneration = 2 }},
		"taint is tolerated":                {cluster: member("m1", "True", corev1.Taint{Key: "ok", Effect: corev1.TaintEffectNoExecute}), want: targets{target("m1", 2)}},
		"its replacement is not healthy":    {cluster: member("m1", "True"), targets: targets{target("m2", 1), target("m3", 2)}, want: targets{target("m2", 1), target("m1", 2)}},
		"where it ran before is healthy":    {cluster: member("m1", "True"), targets: targets{target("m2", 2), target("m3", 1)}, want: targets{target("m3", 1), target("m1", 2)}, set: healthyInM3},
		"its replacement got more replicas": {cluster: member("m1", "True"), targets: targets{target("m2", 3)}, want: targets{target("m2", 1), target("m1", 2)}},
		"it was scaled up meanwhile":        {cluster: member("m1", "True"), targets: targets{target("m2", 1)}, want: targets{target("m2", 1), target("m1", 2)}, set: func(b *workv1alpha2.ResourceBinding) { b.Spec.Replicas = 9 }},
		"duplicated":                        {cluster: member("m1", "True"), targets: targets{target("m2", 3)}, want: targets{target("m2", 3), target("m1", 2)}, set: func(b *workv1alpha2.ResourceBinding) { b.Spec.Placement.ReplicaScheduling = nil }},
		"its replacement is healthy":        {cluster: member("m1", "True"), targets: targets{target("m2", 3)}, set: healthy},
		"replacement, purged directly": {cluster: member("m1", "True"), targets: targets{target("m2", 3)}, set: func(b *workv1alpha2.ResourceBinding) {
			b.Spec.GracefulEvictionTasks[0].PurgeMode = policyv1alpha1.PurgeModeDirectly
		}},
		"replacement, cluster is cordoned":   {cluster: member("m1", "True", cordoned), targets: targets{target("m2", 3)}},
		"replacement, policy left the place": {cluster: member("m1", "True"), targets: targets{target("m2", 3)}, set: func(b *workv1alpha2.ResourceBinding) { b.Spec.Placement.ClusterAffinity.ClusterNames = []string{"m2"} }},
		"still tainted":                      {cluster: member("m1", "True", down)},
		"not Ready":                          {cluster: member("m1", "Unknown")},
		"gone":                               {},
		"the application failed": {cluster: member("m1", "True"), set: func(b *workv1alpha2.ResourceBinding) {
			b.Spec.GracefulEvictionTasks[0].Producer = ProducerResourceBindingFailover
		}},
		"a user decides when it ends": {cluster: member("m1", "True"), set: func(b *workv1alpha2.ResourceBinding) { b.Spec.GracefulEvictionTasks[0].SuppressDeletion = new(true) }},
		"being deleted":               {cluster: member("m1", "True"), set: func(b *workv1alpha2.ResourceBinding) { b.DeletionTimestamp = &metav1.Time{Time: noon} }},
	} {
		t.Run(name, func(t *testing.T) {
			b := leaving(tc.targets...)
			if tc.set != nil {
				tc.set(b)
			}
			before := b.DeepCopy()
			returnable := Returnable(b, map[string]*clusterv1alpha1.Cluster{"m1": tc.cluster}, noon)
			v := Graceful(GracefulFacts{Now: noon, Timeout: time.Minute, Generation: 2, Spec: &b.Spec, Status: &b.Status, Returnable: returnable, Terminating: b.DeletionTimestamp != nil})
			if cancelled := slices.Equal(v.Cancelled, []string{"m1"}); cancelled != (tc.want != nil) || cancelled && (!v.Changed || len(v.Keep)+len(v.Ended) > 0) {
				t.Errorf("the verdict is %+v", v)
			}
			if !reflect.DeepEqual(v.Clusters, tc.want) {
				t.Errorf("the targets are %+v, want %+v", v.Clusters, tc.want)
			}
			if !reflect.DeepEqual(b, before) {
				t.Error("the binding was changed")
			}
		})
	}
}

// Whatever the targets and tasks are, a cancelled cluster is a target once and has no task, and the replicas of a divided
// workload are at most those that it wants, or that returned.
func TestCancel_Invariants(t *testing.T) {
	for seed := range uint64(2000) {
		random := rand.New(rand.NewPCG(seed, 1))
		b := leaving()
		b.Spec.ReplicaRequirements = &workv1alpha2.ReplicaRequirements{}
		b.Spec.Replicas = random.Int32N(6) + 1
		for i := range random.IntN(4) {
			b.Spec.Clusters = append(b.Spec.Clusters, target(fmt.Sprintf("m%d", i+1), random.Int32N(5)))
		}
		for i := range random.IntN(3) {
			task := b.Spec.GracefulEvictionTasks[0]
			task.FromCluster = fmt.Sprintf("m%d", i+1)
			b.Spec.GracefulEvictionTasks = append(b.Spec.GracefulEvictionTasks, task)
		}
		targets, tasks := Cancel(&b.Spec, &b.Status, "m1")
		var sum int32
		names := map[string]int{}
		for _, c := range targets {
			names[c.Name]++
			sum += c.Replicas
		}
		after := workv1alpha2.ResourceBindingSpec{Clusters: targets, GracefulEvictionTasks: tasks}
		was := isTarget(&b.Spec, "m1")
		if hasTask(&after, "m1") || names["m1"] != 1 || !was && sum > max(b.Spec.Replicas, 2) {
			t.Fatalf("seed %d: %+v became %+v", seed, b.Spec, after)
		}
		for name, n := range names {
			if n > 1 {
				t.Fatalf("seed %d: %s is a target %d times", seed, name, n)
			}
		}
	}
}

func TestGraceful_LeavesABindingThatIsBeingDeletedAlone(t *testing.T) {
	b := leaving()
	b.Spec.GracefulEvictionTasks = append(b.Spec.GracefulEvictionTasks, workv1alpha2.GracefulEvictionTask{FromCluster: "new"})
	v := Graceful(GracefulFacts{Now: noon, Timeout: time.Minute, Terminating: true, Spec: &b.Spec, Status: &b.Status, Returnable: []string{"m1"}})
	if want := (GracefulVerdict{Keep: b.Spec.GracefulEvictionTasks}); !reflect.DeepEqual(v, want) {
		t.Errorf("the verdict is %+v", v)
	}
}

func TestTaint_KeepsWhatNoPolicyClaims(t *testing.T) {
	b := leaving(target("m2", 1))
	facts := TaintFacts{
		Now: noon, ClusterName: "m2", Cluster: member("m2", "Unknown", corev1.Taint{Key: "down", Effect: corev1.TaintEffectNoExecute}),
		Binding: b, Enabled: true, KeepUnclaimed: true,
	}
	if v, err := Taint(facts); err != nil || v.Evict || !v.Unclaimed {
		t.Errorf("%+v %v", v, err)
	}
	b.Labels = map[string]string{policyv1alpha1.PropagationPolicyPermanentIDLabel: "id"}
	if v, err := Taint(facts); err != nil || !v.Evict || v.Unclaimed {
		t.Errorf("%+v %v", v, err)
	}
}

// Without an applied placement the decision fails, whatever the cluster and the switch are, unless the binding is not
// concerned.
func TestTaint_ReadsThePlacementFirst(t *testing.T) {
	b := leaving(target("m2", 1))
	b.Annotations = nil
	for _, facts := range []TaintFacts{
		{ClusterName: "m2", Enabled: true},
		{ClusterName: "m2", Cluster: member("m2", "True")},
		{ClusterName: "m2", Cluster: member("m2", "True"), Enabled: true},
	} {
		facts.Binding = b
		if _, err := Taint(facts); !errors.Is(err, ErrNoPlacement) {
			t.Errorf("%+v: %v", facts, err)
		}
	}
	if v, err := Taint(TaintFacts{ClusterName: "m3", Binding: b, Enabled: true}); err != nil || v.Evict {
		t.Errorf("%+v %v", v, err)
	}
}

func TestPreserve_NullIsThere(t *testing.T) {
	status := &workv1alpha2.ResourceBindingStatus{AggregatedStatus: []workv1alpha2.AggregatedStatusItem{{
		ClusterName: "m1", Status: &runtime.RawExtension{Raw: []byte(`{"a":null,"b":{"c":null}}`)},
	}}}
	for path, want := range map[string]string{"{.a}": "null", "{.b.c}": "null"} {
		got, err := preserve(&policyv1alpha1.StatePreservation{Rules: []policyv1alpha1.StatePreservationRule{{AliasLabelName: "x", JSONPath: path}}}, status, "m1")
		if err != nil || got["x"] != want {
			t.Errorf("%s: %v %v", path, got, err)
		}
	}
}

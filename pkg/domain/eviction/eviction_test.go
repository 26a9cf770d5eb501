package eviction

import (
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
	policyv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/policy/v1alpha1"
	workv1alpha2 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha2"
)

// A seeded history of taints, health and time: a cluster is never a target and evicted at the same time, has at most
// one task, facts are not changed, and every task ends.
func TestHistory_Invariants(t *testing.T) {
	names := []string{"m1", "m2", "m3"}
	for seed := range uint64(200) {
		random := rand.New(rand.NewPCG(seed, 1))
		now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
		b := &workv1alpha2.ResourceBinding{ObjectMeta: metav1.ObjectMeta{Generation: 1, Annotations: map[string]string{
			policyv1alpha1.AppliedPlacementAnnotation: `{"clusterTolerations":[{"key":"k","operator":"Exists","tolerationSeconds":20}]}`,
		}}}
		b.Spec.PropagateDeps = true
		b.Spec.Failover = &policyv1alpha1.FailoverBehavior{Application: &policyv1alpha1.ApplicationFailoverBehavior{
			DecisionConditions: policyv1alpha1.DecisionConditions{TolerationSeconds: new(int32(15))}, PurgeMode: policyv1alpha1.PurgeModeDirectly,
		}}
		since := map[string]time.Time{}
		for range 50 {
			now = now.Add(time.Duration(random.IntN(30)) * time.Second)
			b.Status.AggregatedStatus = nil
			for _, name := range names {
				health := []workv1alpha2.ResourceHealth{workv1alpha2.ResourceHealthy, workv1alpha2.ResourceUnhealthy, workv1alpha2.ResourceUnknown}[random.IntN(3)]
				b.Status.AggregatedStatus = append(b.Status.AggregatedStatus, workv1alpha2.AggregatedStatusItem{ClusterName: name, Health: health})
			}
			if random.IntN(2) == 0 { // scheduled again
				if name := names[random.IntN(3)]; !hasTask(&b.Spec, name) && !isTarget(&b.Spec, name) {
					b.Spec.Clusters = append(b.Spec.Clusters, workv1alpha2.TargetCluster{Name: name, Replicas: 1})
				}
				b.Status.SchedulerObservedGeneration = b.Generation
			}
			before := b.DeepCopy()
			step(t, random, now, b, since, names)
			for _, name := range names {
				tasks := slices.DeleteFunc(slices.Clone(b.Spec.GracefulEvictionTasks), func(task workv1alpha2.GracefulEvictionTask) bool { return task.FromCluster != name })
				if len(tasks) > 1 || len(tasks) == 1 && isTarget(&b.Spec, name) {
					t.Fatalf("seed %d: %s has %d tasks, target %t; before: %+v", seed, name, len(tasks), isTarget(&b.Spec, name), before.Spec)
				}
			}
		}
		now = now.Add(11 * time.Minute)
		if v := Graceful(GracefulFacts{Now: now, Timeout: 10 * time.Minute, Spec: &b.Spec, Status: &b.Status, Generation: -1}); len(v.Keep) > 0 {
			t.Fatalf("seed %d: %+v did not end", seed, v.Keep)
		}
	}
}

// step runs one of the decisions and applies its verdict.
func step(t *testing.T, random *rand.Rand, now time.Time, b *workv1alpha2.ResourceBinding, since map[string]time.Time, names []string) {
	t.Helper()
	spec := b.Spec.DeepCopy()
	switch random.IntN(3) {
	case 0:
		v := Graceful(GracefulFacts{Now: now, Timeout: 10 * time.Minute, Generation: b.Generation, Spec: &b.Spec, Status: &b.Status})
		spec.GracefulEvictionTasks = v.Keep
	case 1:
		name := names[random.IntN(3)]
		cluster := &clusterv1alpha1.Cluster{}
		cluster.Spec.Taints = []corev1.Taint{{Key: []string{"k", "other"}[random.IntN(2)], Effect: corev1.TaintEffectNoExecute, TimeAdded: &metav1.Time{Time: now.Add(-10 * time.Second)}}}
		v, err := Taint(TaintFacts{Now: now, ClusterName: name, Cluster: cluster, Binding: b, Enabled: true, PurgeMode: policyv1alpha1.PurgeModeGracefully})
		if err != nil {
			t.Fatal(err)
		}
		if v.Evict {
			spec = v.Spec
		}
	case 2:
		v, err := Application(ApplicationFacts{Now: now, Binding: b, Producer: "p", HasHealth: true, GracefulEviction: true, UnhealthySince: since})
		if err != nil {
			t.Fatal(err)
		}
		clear(since)
		maps.Copy(since, v.UnhealthySince)
		if v.Spec != nil {
			spec = v.Spec
		}
	}
	// Tasks that were made in this step get their time with the next graceful decision; the test does it at once.
	for i := range spec.GracefulEvictionTasks {
		if spec.GracefulEvictionTasks[i].CreationTimestamp == nil {
			spec.GracefulEvictionTasks[i].CreationTimestamp = &metav1.Time{Time: now}
		}
	}
	b.Spec = *spec
	b.Generation++
}

func TestStateWarnings(t *testing.T) {
	rules := func(paths ...string) *policyv1alpha1.StatePreservation {
		out := &policyv1alpha1.StatePreservation{}
		for _, path := range paths {
			out.Rules = append(out.Rules, policyv1alpha1.StatePreservationRule{AliasLabelName: "a", JSONPath: path})
		}
		return out
	}
	got := StateWarnings(&policyv1alpha1.FailoverBehavior{
		Application: &policyv1alpha1.ApplicationFailoverBehavior{StatePreservation: rules("{.replicas}", "{.a[")},
		Cluster:     &policyv1alpha1.ClusterFailoverBehavior{StatePreservation: rules("{.b")},
	})
	for i, want := range []string{"spec.failover.application.statePreservation.rules[1].jsonPath: ", "spec.failover.cluster.statePreservation.rules[0].jsonPath: "} {
		if len(got) != 2 || !strings.HasPrefix(got[i], want) {
			t.Fatalf("the warnings are %q", got)
		}
	}
	if got := StateWarnings(nil); got != nil {
		t.Errorf("the warnings are %q", got)
	}
}

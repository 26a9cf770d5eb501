//go:build integration

package history

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/karmada-toolkit/karmada/internal/testenv"
	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
	policyv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/policy/v1alpha1"
	workv1alpha2 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha2"
)

// many is the number of workloads that are evicted while the control plane restarts.
const many = 50

// limit is how long a scenario waits.
const limit = 30 * time.Second

// TestPlane_Scenarios tests single stories, one after the other, on one API server.
func TestPlane_Scenarios(t *testing.T) {
	p := newPlane(t)
	for _, name := range []string{"m1", "m2", "m3"} {
		p.join(name)
	}
	p.Run("a restart in the middle of evictions", func(t *testing.T) { p.in(t).restartDuringEvictions() })
	p.Run("taint policies add and remove", func(t *testing.T) { p.in(t).taintPolicies() })
	p.Run("old replicas stay without room elsewhere", func(t *testing.T) { p.in(t).noRoom() })
	p.Run("purge modes of an unhealthy application", func(t *testing.T) { p.in(t).purgeModes() })
	p.Run("changes during an eviction", func(t *testing.T) { p.in(t).changesDuringEviction() })
}

// within places all replicas in one of the clusters.
func within(clusters ...string) *policyv1alpha1.Placement {
	return &policyv1alpha1.Placement{
		ClusterAffinity: &policyv1alpha1.ClusterAffinity{ClusterNames: clusters},
		ReplicaScheduling: &policyv1alpha1.ReplicaSchedulingStrategy{
			ReplicaSchedulingType: policyv1alpha1.ReplicaSchedulingTypeDivided, ReplicaDivisionPreference: policyv1alpha1.ReplicaDivisionPreferenceAggregated,
		},
	}
}

// eventually waits until a binding is as wanted.
func (p *plane) eventually(app string, check func(*workv1alpha2.ResourceBinding) error) {
	p.Helper()
	testenv.Eventually(p.T, limit, func(ctx context.Context) error {
		b, err := p.binding(ctx, app)
		if err != nil {
			return err
		}
		return check(b)
	})
}

// runs waits until an application has its replicas in clusters and no task but those in other clusters.
func (p *plane) runs(app, targets string, tasks ...string) {
	p.Helper()
	p.eventually(app, func(b *workv1alpha2.ResourceBinding) error {
		var open []string
		for _, t := range b.Spec.GracefulEvictionTasks {
			open = append(open, t.FromCluster)
		}
		if got := sorted(b.Spec.Clusters); got != targets || !slices.Equal(open, tasks) {
			return fmt.Errorf("%s runs in %s with tasks %v, want %s and %v", app, got, open, targets, tasks)
		}
		return nil
	})
}

func (p *plane) setTaints(cluster string, taints ...corev1.Taint) {
	p.Helper()
	c := &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: cluster}}
	p.change(c, func() { c.Spec.Taints = taints })
}

func noExecute(key string) corev1.Taint {
	return corev1.Taint{Key: key, Effect: corev1.TaintEffectNoExecute, TimeAdded: new(metav1.Now())}
}

// remove deletes an application.
func (p *plane) remove(apps ...string) {
	p.Helper()
	for _, app := range apps {
		meta := metav1.ObjectMeta{Namespace: namespace, Name: app}
		p.must(errors.Join(p.client.Delete(p.Context(), &appsv1.Deployment{ObjectMeta: meta}), p.client.Delete(p.Context(), &policyv1alpha1.PropagationPolicy{ObjectMeta: meta})))
	}
}

// restartDuringEvictions ends the control plane when some workloads are evicted: none is evicted twice, none is lost.
func (p *plane) restartDuringEvictions() {
	p.restartWith(0.5, planeTimeout)
	var apps []string
	for i := range many {
		apps = append(apps, fmt.Sprintf("many%d", i))
		p.deploy(apps[i], 1, within("m1"), nil)
	}
	for _, app := range apps {
		p.runs(app, "[m1:1]")
		policy := &policyv1alpha1.PropagationPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: app}}
		p.change(policy, func() { policy.Spec.Placement = *within("m1", "m2") })
	}
	p.setTaints("m1", noExecute("restart"))
	evicted := func() (n int) {
		for _, app := range apps {
			n += p.watched.evicted(app, "m1")
		}
		return n
	}
	testenv.Eventually(p.T, limit, func(context.Context) error {
		if n := evicted(); n < 5 {
			return fmt.Errorf("%d are evicted", n)
		}
		return nil
	})
	p.stop()
	if n := evicted(); n >= many {
		p.Fatalf("all %d were evicted before the restart", n)
	}
	p.rate = 10_000
	p.start()
	for _, app := range apps {
		p.runs(app, "[m2:1]")
	}
	for _, app := range apps {
		p.wantEvicted(app)
	}
	p.setTaints("m1")
	p.remove(apps...)
}

// taintPolicies checks that a policy adds taints while its conditions hold, removes them when others do, and removes
// nothing when it selects other clusters.
func (p *plane) taintPolicies() {
	policy := newDice(0).taintPolicy("scenario")
	ready := func(status metav1.ConditionStatus) []policyv1alpha1.MatchCondition {
		return []policyv1alpha1.MatchCondition{{ConditionType: "Ready", Operator: policyv1alpha1.MatchConditionOpIn, StatusValues: []metav1.ConditionStatus{status}}}
	}
	policy.Spec = policyv1alpha1.ClusterTaintPolicySpec{
		TargetClusters: &policyv1alpha1.ClusterAffinity{ClusterNames: []string{"m1", "m2"}}, AddOnConditions: ready("False"), RemoveOnConditions: ready("True"),
		Taints: []policyv1alpha1.Taint{{Key: "scenario", Effect: corev1.TaintEffectNoExecute}},
	}
	p.must(p.client.Create(p.Context(), policy))
	tainted := func(want string) {
		p.Helper()
		testenv.Eventually(p.T, limit, func(ctx context.Context) error {
			got := ""
			for _, name := range []string{"m1", "m2", "m3"} {
				c := &clusterv1alpha1.Cluster{}
				if err := p.client.Get(ctx, keyOf(name), c); err != nil {
					return err
				}
				if slices.ContainsFunc(c.Spec.Taints, func(t corev1.Taint) bool { return t.Key == "scenario" }) {
					got += name + " "
				}
			}
			if got != want {
				return fmt.Errorf("tainted are %q, want %q", got, want)
			}
			return nil
		})
	}
	for _, name := range []string{"m1", "m3"} {
		p.ready(name, metav1.ConditionFalse)
	}
	tainted("m1 ")
	p.change(policy, func() { policy.Spec.TargetClusters.ClusterNames = []string{"m2"} })
	p.ready("m2", metav1.ConditionFalse)
	tainted("m1 m2 ")
	for _, name := range []string{"m1", "m2", "m3"} {
		p.ready(name, metav1.ConditionTrue)
	}
	tainted("m1 ")
	p.must(p.client.Delete(p.Context(), policy))
	p.setTaints("m1")
}

// noRoom checks that replicas stay in a cluster that they are evicted from until their time is over, if no other cluster
// has room for them.
func (p *plane) noRoom() {
	p.restartWith(p.rate, time.Hour)
	p.deploy("stays", 2, within("m1"), nil)
	p.runs("stays", "[m1:2]")
	p.setTaints("m1", noExecute("full"))
	p.runs("stays", "[]", "m1")
	p.restartWith(p.rate, planeTimeout)
	p.runs("stays", "[]")
	p.setTaints("m1")
	p.runs("stays", "[m1:2]")
	p.remove("stays")
}

// purgeModes checks what happens to the old replicas of an application that is unhealthy in m1.
func (p *plane) purgeModes() {
	p.restartWith(p.rate, time.Hour)
	for mode, check := range map[policyv1alpha1.PurgeMode]func(app string){
		policyv1alpha1.PurgeModeDirectly:   func(app string) { p.runs(app, "[m2:1]") },
		policyv1alpha1.PurgeModeGracefully: func(app string) { p.runs(app, "[m2:1]") },
		policyv1alpha1.PurgeModeNever: func(app string) {
			p.runs(app, "[m2:1]", "m1")
			b := &workv1alpha2.ResourceBinding{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: app + "-deployment"}}
			p.change(b, func() { b.Spec.GracefulEvictionTasks[0].SuppressDeletion = new(false) })
			p.runs(app, "[m2:1]")
		},
	} {
		app := "purge-" + map[policyv1alpha1.PurgeMode]string{policyv1alpha1.PurgeModeDirectly: "directly", policyv1alpha1.PurgeModeGracefully: "gracefully", policyv1alpha1.PurgeModeNever: "never"}[mode]
		p.members.flipHealth("m1", app)
		failover := &policyv1alpha1.ApplicationFailoverBehavior{
			PurgeMode: mode, DecisionConditions: policyv1alpha1.DecisionConditions{TolerationSeconds: new(int32(1))},
			StatePreservation: &policyv1alpha1.StatePreservation{Rules: []policyv1alpha1.StatePreservationRule{{AliasLabelName: "wanted", JSONPath: "{.replicas}"}}},
		}
		if mode == policyv1alpha1.PurgeModeGracefully {
			failover.GracePeriodSeconds = new(int32(600))
		}
		placement := within("m1")
		placement.ClusterAffinity = nil
		placement.ClusterAffinities = []policyv1alpha1.ClusterAffinityTerm{
			{AffinityName: "first", ClusterAffinity: policyv1alpha1.ClusterAffinity{ClusterNames: []string{"m1"}}},
			{AffinityName: "second", ClusterAffinity: policyv1alpha1.ClusterAffinity{ClusterNames: []string{"m2"}}},
		}
		p.deploy(app, 1, placement, &policyv1alpha1.FailoverBehavior{Application: failover})
		check(app)
		want := ""
		if mode == policyv1alpha1.PurgeModeDirectly {
			want = "1"
		}
		if got := p.members.state("m2", app); got != want {
			p.Errorf("%s got the state %q, want %q", app, got, want)
		}
		p.wantEvicted(app)
		p.remove(app)
	}
}

// changesDuringEviction scales a template, edits its policy and removes the cluster while its replicas are evicted.
func (p *plane) changesDuringEviction() {
	p.restartWith(p.rate, time.Hour)
	p.members.flipHealth("m2", "edited") // the task stays open
	p.deploy("edited", 2, within("m1", "m2"), nil)
	p.eventually("edited", func(b *workv1alpha2.ResourceBinding) error {
		if len(b.Spec.Clusters) != 1 {
			return errors.New("not scheduled")
		}
		return nil
	})
	policy := &policyv1alpha1.PropagationPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "edited"}}
	p.change(policy, func() { policy.Spec.Placement = *within("m1") })
	p.runs("edited", "[m1:2]")
	p.setTaints("m1", noExecute("edited"))
	p.runs("edited", "[]", "m1")
	p.change(policy, func() { policy.Spec.Placement = *within("m1", "m2") })
	p.runs("edited", "[m2:2]", "m1")
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "edited"}}
	p.change(d, func() { d.Spec.Replicas = new(int32(3)) })
	p.runs("edited", "[m2:3]", "m1")
	p.must(p.client.Delete(p.Context(), &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "m1"}}))
	p.members.flipHealth("m2", "edited")
	p.runs("edited", "[m2:3]")
	testenv.Eventually(p.T, limit, func(ctx context.Context) error {
		if err := p.client.Get(ctx, keyOf("m1"), &clusterv1alpha1.Cluster{}); err == nil {
			return errors.New("m1 does not leave")
		}
		return nil
	})
	p.observeAll()
	for _, text := range p.watched.take().wrong {
		p.Error(text)
	}
}

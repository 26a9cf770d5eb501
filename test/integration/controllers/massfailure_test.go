//go:build integration

// Covers pkg/controlplane/controllers/massfailure.

package controllers_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/karmada-toolkit/karmada/internal/kube"
	"github.com/karmada-toolkit/karmada/internal/testenv"
	"github.com/karmada-toolkit/karmada/internal/wait"
	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
	policyv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/policy/v1alpha1"
	workv1alpha2 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha2"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/controllers/clustertaint"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/controllers/massfailure"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/controllers/taintmanager"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/env"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/evictions"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/planetest"
	"github.com/karmada-toolkit/karmada/pkg/operate/failover"
)

// massFailurePlane is a control plane with the controllers of evictions. Their members are fake: the test reports their probes.
type massFailurePlane struct {
	*testing.T
	cluster *testenv.Cluster
	client  client.Client // uncached
	guard   *massfailure.Guard
	stop    func()
}

const massFailureBindings = 10 // in each cluster

func (p *massFailurePlane) must(err error) {
	p.Helper()
	if err != nil {
		p.Fatal(err)
	}
}

func newMassFailurePlane(t *testing.T) *massFailurePlane {
	t.Helper()
	p := &massFailurePlane{T: t, cluster: testenv.Start(t, testenv.ControlPlane())}
	c, err := client.New(p.cluster.Config, client.Options{Scheme: kube.NewScheme()})
	p.must(err)
	p.client = c
	planetest.Install(t, c)
	p.must(c.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "karmada-system"}}))
	for _, name := range []string{"m1", "m2", "m3", "m4"} {
		p.join(name)
	}
	p.must(c.Create(t.Context(), notReadyPolicy()))
	p.start()
	t.Cleanup(func() { p.stop() })
	return p
}

// notReadyPolicy taints clusters that are not Ready.
func notReadyPolicy() *policyv1alpha1.ClusterTaintPolicy {
	match := func(statuses ...metav1.ConditionStatus) []policyv1alpha1.MatchCondition {
		return []policyv1alpha1.MatchCondition{{ConditionType: "Ready", Operator: policyv1alpha1.MatchConditionOpIn, StatusValues: statuses}}
	}
	return &policyv1alpha1.ClusterTaintPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: "not-ready"},
		Spec: policyv1alpha1.ClusterTaintPolicySpec{
			AddOnConditions: match(metav1.ConditionFalse, metav1.ConditionUnknown), RemoveOnConditions: match(metav1.ConditionTrue),
			Taints: []policyv1alpha1.Taint{{Key: "not-ready", Effect: corev1.TaintEffectNoExecute}},
		},
	}
}

// join creates a cluster that is Ready, with bindings that target it.
func (p *massFailurePlane) join(name string) {
	p.Helper()
	c := &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: name}}
	c.Spec.SyncMode, c.Spec.SecretRef = clusterv1alpha1.Push, &clusterv1alpha1.LocalSecretReference{Name: name}
	p.must(p.client.Create(p.Context(), c))
	c.Status.KubernetesVersion = "v1"
	c.Status.Conditions = []metav1.Condition{{Type: "Ready", Status: metav1.ConditionTrue, Reason: "R", LastTransitionTime: metav1.NewTime(time.Now().Add(-time.Hour))}}
	p.must(p.client.Status().Update(p.Context(), c))
	for i := range massFailureBindings {
		p.bind(name, fmt.Sprintf("%s-%d", name, i))
	}
}

func (p *massFailurePlane) bind(cluster, name string) {
	p.Helper()
	b := &workv1alpha2.ResourceBinding{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, Labels: map[string]string{policyv1alpha1.PropagationPolicyPermanentIDLabel: "id"}, Annotations: map[string]string{policyv1alpha1.AppliedPlacementAnnotation: "{}"}}}
	b.Spec.Resource = workv1alpha2.ObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "default", Name: name}
	b.Spec.Clusters = []workv1alpha2.TargetCluster{{Name: cluster, Replicas: 1}}
	p.must(p.client.Create(p.Context(), b))
}

// start runs the controllers, as a new process does.
func (p *massFailurePlane) start() {
	p.Helper()
	stop := planetest.Start(p.T, p.cluster.Config, func(ctx context.Context, mgr manager.Manager) (err error) {
		e := env.New(mgr)
		e.Metrics = prometheus.NewRegistry()
		if p.guard, err = massfailure.Setup(e, massfailure.Options{Threshold: 0.5}); err != nil {
			return err
		}
		return errors.Join(
			taintmanager.Setup(ctx, e, taintmanager.Options{Evict: true, Rate: 10000, Limits: evictions.Limits{Hold: p.guard.Hold}}),
			clustertaint.Setup(ctx, e),
		)
	})
	p.stop = func() {
		if err := stop(); err != nil {
			p.Errorf("stopping the controllers: %v", err)
		}
	}
}

// named returns a stored cluster.
func (p *massFailurePlane) named(name string) *clusterv1alpha1.Cluster {
	p.Helper()
	out := &clusterv1alpha1.Cluster{}
	p.must(p.client.Get(p.Context(), client.ObjectKey{Name: name}, out))
	return out
}

func (p *massFailurePlane) ready(status metav1.ConditionStatus, names ...string) {
	p.Helper()
	for _, name := range names {
		c := &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: name}}
		p.must(planetest.ChangeStatus(p.Context(), p.client, c, func() {
			meta.SetStatusCondition(&c.Status.Conditions, metav1.Condition{Type: "Ready", Status: status, Reason: "R"})
		}))
	}
}

func (p *massFailurePlane) taint(name, key string) {
	p.Helper()
	c := &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: name}}
	p.must(planetest.Change(p.Context(), p.client, c, func() {
		c.Spec.Taints = append(c.Spec.Taints, corev1.Taint{Key: key, Effect: corev1.TaintEffectNoExecute, TimeAdded: new(metav1.Now())})
	}))
}

// evicted returns the number of bindings with a task, by cluster.
func (p *massFailurePlane) evicted(ctx context.Context) (map[string]int, error) {
	var list workv1alpha2.ResourceBindingList
	err := p.client.List(ctx, &list)
	out := map[string]int{}
	for i := range list.Items {
		for _, task := range list.Items[i].Spec.GracefulEvictionTasks {
			out[task.FromCluster]++
		}
	}
	return out, err
}

// evicts waits until exactly so many bindings are evicted from each cluster.
func (p *massFailurePlane) evicts(want map[string]int) {
	p.Helper()
	testenv.Eventually(p.T, 30*time.Second, func(ctx context.Context) error {
		got, err := p.evicted(ctx)
		if err == nil && fmt.Sprint(got) != fmt.Sprint(want) {
			err = fmt.Errorf("evicted: %v, want %v", got, want)
		}
		return err
	})
}

// isStopped waits until the clusters have the NoExecute taint and the condition.
func (p *massFailurePlane) isStopped(names ...string) {
	p.Helper()
	testenv.Eventually(p.T, 30*time.Second, func(ctx context.Context) error {
		for _, name := range names {
			c := &clusterv1alpha1.Cluster{}
			if err := p.client.Get(ctx, client.ObjectKey{Name: name}, c); err != nil {
				return err
			}
			if len(c.Spec.Taints) == 0 || !meta.IsStatusConditionTrue(c.Status.Conditions, clusterv1alpha1.ClusterConditionEvictionsStopped) {
				return fmt.Errorf("%s: taints %v, conditions %v", name, c.Spec.Taints, c.Status.Conditions)
			}
		}
		return nil
	})
}

// Three of four members fail at once. Nothing leaves them, also after a restart of the controllers, while a cluster that
// is Ready is evicted as usual; after a user resumes evictions, the workloads leave.
func TestMassFailure(t *testing.T) {
	t.Parallel()
	p := newMassFailurePlane(t)
	down := []string{"m1", "m2", "m3"}
	began := time.Now()
	for _, name := range []string{"m1", "m2", "m3", "m4"} {
		p.guard.Observe(p.named(name), name == "m4", began)
	}
	p.ready(metav1.ConditionFalse, "m1") // the first; the others are still Ready
	p.isStopped("m1")
	p.ready(metav1.ConditionFalse, "m2", "m3")
	p.isStopped(down...)
	p.taint("m4", "by-hand")
	p.evicts(map[string]int{"m4": massFailureBindings})

	p.stop()
	p.bind("m4", "after-the-restart")
	p.start()
	p.evicts(map[string]int{"m4": massFailureBindings + 1})
	p.isStopped(down...)

	clusters, err := failover.Resume(t.Context(), p.client, false, time.Now(), wait.Options{Timeout: 2 * time.Minute})
	if err != nil || fmt.Sprint(clusters) != fmt.Sprint(down) {
		t.Fatal(clusters, err)
	}
	p.evicts(map[string]int{"m1": massFailureBindings, "m2": massFailureBindings, "m3": massFailureBindings, "m4": massFailureBindings + 1})
}

// One member failed before the controllers start. It is evicted only when the others are known to be healthy.
func TestStart_WithoutTheHealthOfOthers(t *testing.T) {
	t.Parallel()
	p := newMassFailurePlane(t)
	p.stop()
	p.ready(metav1.ConditionFalse, "m1")
	p.start()
	p.taint("m4", "by-hand")
	p.evicts(map[string]int{"m4": massFailureBindings})
	p.guard.Observe(p.named("m1"), false, time.Now())
	for _, name := range []string{"m2", "m3", "m4"} {
		p.guard.Observe(p.named(name), true, time.Now().Add(time.Second))
	}
	p.evicts(map[string]int{"m1": massFailureBindings, "m4": massFailureBindings})
}

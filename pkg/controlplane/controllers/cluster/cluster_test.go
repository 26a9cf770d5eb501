package cluster

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/karmada-toolkit/karmada/internal/testenv/memory"
	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
	workv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha1"
	workv1alpha2 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha2"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/env"
)

const (
	notReady    = "cluster.karmada.io/not-ready"
	unreachable = "cluster.karmada.io/unreachable"
)

func taint(key string, effect corev1.TaintEffect) corev1.Taint {
	return corev1.Taint{Key: key, Effect: effect}
}

// bench is one cluster.
type bench struct {
	*memory.Env
	r *reconciler
}

func newBench(t *testing.T, objects ...client.Object) *bench {
	t.Helper()
	b := &bench{Env: memory.New(t, objects...)}
	b.Clock.SetTime(time.Unix(1000, 0))
	b.r = newReconciler(&env.Env{Client: b.Client, Live: b.Client, Clock: b.Clock}, b.Recorder, Options{})
	return b
}

func (b *bench) mustReconcile() time.Duration {
	b.Helper()
	return b.MustReconcile(b.r, memory.Key("", "m1"))
}

func (b *bench) get() *clusterv1alpha1.Cluster {
	b.Helper()
	return memory.Get[*clusterv1alpha1.Cluster](b.Env, memory.Key("", "m1"))
}

func member(change ...func(*clusterv1alpha1.Cluster)) *clusterv1alpha1.Cluster {
	c := &clusterv1alpha1.Cluster{
		ObjectMeta: metav1.ObjectMeta{Name: "m1", UID: "u", CreationTimestamp: metav1.Unix(1000, 0)},
		Spec:       clusterv1alpha1.ClusterSpec{SyncMode: clusterv1alpha1.Push},
	}
	for _, f := range change {
		f(c)
	}
	return c
}

func ready(status metav1.ConditionStatus) func(*clusterv1alpha1.Cluster) {
	return func(c *clusterv1alpha1.Cluster) {
		c.Status.Conditions = []metav1.Condition{{Type: "Ready", Status: status}}
	}
}

func pulls(c *clusterv1alpha1.Cluster) { c.Spec.SyncMode = clusterv1alpha1.Pull }

func TestReconcile_NewCluster(t *testing.T) {
	b := newBench(t, member())
	b.mustReconcile()
	if ns := memory.Get[*corev1.Namespace](b.Env, memory.Key("", "karmada-es-m1")); ns.Labels["karmada.io/system"] != "true" {
		t.Errorf("labels: %v", ns.Labels)
	}
	c := b.get()
	if !slices.Equal(c.Finalizers, []string{"karmada.io/cluster-controller"}) || len(c.Spec.Taints) != 1 || c.Spec.Taints[0].Key != notReady {
		t.Errorf("got %v, %v", c.Finalizers, c.Spec.Taints)
	}
	want := []string{
		"Normal CreateExecutionSpaceSucceed Create execution space(karmada-es-m1) succeed.",
		"Normal TaintClusterSucceed Taint cluster succeed: cluster now has taints([{Key:cluster.karmada.io/not-ready,Effect:NoSchedule}]).",
	}
	if diff := cmp.Diff(want, b.Events()); diff != "" {
		t.Error(diff)
	}
	b.Stable(func() { b.mustReconcile() })
}

func TestReconcile_ReadyClusterLosesItsTaints(t *testing.T) {
	b := newBench(t, member(ready("True"), func(c *clusterv1alpha1.Cluster) {
		c.Finalizers = []string{"karmada.io/cluster-controller"}
		c.Spec.Taints = []corev1.Taint{taint(notReady, "NoSchedule")}
	}))
	b.mustReconcile()
	if c := b.get(); len(c.Spec.Taints) != 0 {
		t.Errorf("taints: %v", c.Spec.Taints)
	}
	if got := b.Events(); got[len(got)-1] != "Normal TaintClusterSucceed Taint cluster succeed: cluster now does not have taints." {
		t.Errorf("events: %v", got)
	}
}

func TestReconcile_TaintsThatTheAPIServerRemoved(t *testing.T) {
	b := newBench(t, member())
	b.mustReconcile()
	b.Events()
	memory.Change(b.Env, memory.Key("", "m1"), func(c *clusterv1alpha1.Cluster) {
		c.Spec.Taints = nil
		ready("True")(c)
	})
	b.mustReconcile()
	want := []string{"Normal TaintClusterSucceed Taint cluster succeed: cluster now does not have taints."}
	if diff := cmp.Diff(want, b.Events()); diff != "" {
		t.Error(diff)
	}
	b.Stable(func() { b.mustReconcile() })
}

func TestReconcile_Failures(t *testing.T) {
	for _, tc := range []struct{ verb, want string }{
		{"create", "Warning CreateExecutionSpaceFailed Failed to create execution space(karmada-es-m1): boom"},
		{"patch", "Warning TaintClusterFailed Taint cluster failed: patching cluster m1: boom."},
	} {
		b := newBench(t, member())
		b.FailOn(tc.verb+" ", errors.New("boom"))
		_, err := b.r.Reconcile(t.Context(), reconcile.Request{NamespacedName: memory.Key("", "m1")})
		if got := b.Events(); err == nil || !slices.Contains(got, tc.want) {
			t.Errorf("%v, events: %v", err, got)
		}
	}
}

func leaving(c *clusterv1alpha1.Cluster) {
	now := metav1.Unix(1000, 0)
	c.DeletionTimestamp = &now
	c.Finalizers = []string{"karmada.io/cluster-controller"}
}

func TestReconcile_DeletedCluster(t *testing.T) {
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "karmada-es-m1", Finalizers: []string{"f"}}}
	work := &workv1alpha1.Work{ObjectMeta: metav1.ObjectMeta{Namespace: "karmada-es-m1", Name: "w", Finalizers: []string{workv1alpha2.ExecutionControllerFinalizer}}}
	binding := &workv1alpha2.ResourceBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "rb"},
		Spec:       workv1alpha2.ResourceBindingSpec{Clusters: []workv1alpha2.TargetCluster{{Name: "m1"}}},
	}
	b := newBench(t, member(leaving), ns, work, binding)
	if wait := b.mustReconcile(); wait != time.Second {
		t.Errorf("waits %s", wait)
	}
	b.Refresh(work)
	if work.DeletionTimestamp == nil || len(work.Finalizers) != 1 {
		t.Errorf("work: %v", work.ObjectMeta)
	}
	if got := b.Events(); !slices.Equal(got, []string{"Normal RemoveExecutionSpaceSucceed Remove execution space(karmada-es-m1) succeed."}) {
		t.Errorf("events: %v", got)
	}
	b.mustReconcile()
	if got := b.Events(); len(got) != 0 {
		t.Errorf("published again: %v", got)
	}
	b.Refresh(ns)
	ns.Finalizers = nil
	b.Must(b.Stored.Update(t.Context(), ns))
	if wait := b.mustReconcile(); wait != time.Second || len(b.get().Finalizers) != 1 {
		t.Error("does not wait for the binding")
	}
	binding.Spec.Clusters = nil
	b.Must(b.Stored.Update(t.Context(), binding))
	b.mustReconcile()
	if err := b.Stored.Get(t.Context(), client.ObjectKey{Name: "m1"}, &clusterv1alpha1.Cluster{}); !apierrors.IsNotFound(err) {
		t.Errorf("the cluster is there: %v", err)
	}
	b.mustReconcile()
}

func TestReconcile_DeletedClusterWithoutItsAgent(t *testing.T) {
	for _, tc := range []struct {
		name     string
		change   []func(*clusterv1alpha1.Cluster)
		released bool
	}{
		{"the agent is away", []func(*clusterv1alpha1.Cluster){leaving, pulls, ready("Unknown")}, true},
		{"the agent is there", []func(*clusterv1alpha1.Cluster){leaving, pulls, ready("True")}, false},
		{"there is none", []func(*clusterv1alpha1.Cluster){leaving, ready("False")}, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			work := &workv1alpha1.Work{ObjectMeta: metav1.ObjectMeta{Namespace: "karmada-es-m1", Name: "w", Finalizers: []string{workv1alpha2.ExecutionControllerFinalizer, "other"}}}
			b := newBench(t, member(tc.change...), work)
			b.mustReconcile()
			b.Refresh(work)
			if released := len(work.Finalizers) == 1; released != tc.released {
				t.Errorf("finalizers: %v", work.Finalizers)
			}
		})
	}
}

func TestReconcile_DeletesTheNamespaceAfterTheAgentHasFinished(t *testing.T) {
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "karmada-es-m1"}}
	work := &workv1alpha1.Work{ObjectMeta: metav1.ObjectMeta{Namespace: "karmada-es-m1", Name: "w", Finalizers: []string{workv1alpha2.ExecutionControllerFinalizer}}}
	b := newBench(t, member(leaving, pulls, ready("True")), ns, work)
	if wait := b.mustReconcile(); wait != time.Second {
		t.Errorf("waits %s", wait)
	}
	b.Refresh(ns)
	b.Refresh(work)
	if ns.DeletionTimestamp != nil || work.DeletionTimestamp == nil {
		t.Errorf("namespace %v, work %v", ns.DeletionTimestamp, work.DeletionTimestamp)
	}
	work.Finalizers = nil
	b.Must(b.Stored.Update(t.Context(), work))
	b.mustReconcile()
	if err := b.Stored.Get(t.Context(), client.ObjectKeyFromObject(ns), ns); !apierrors.IsNotFound(err) {
		t.Errorf("the namespace stays: %v", err)
	}
}

func TestMonitor(t *testing.T) {
	lease := func(at int64) *coordinationv1.Lease {
		renewed := metav1.NewMicroTime(time.Unix(at, 0))
		return &coordinationv1.Lease{
			ObjectMeta: metav1.ObjectMeta{Namespace: "karmada-cluster", Name: "m1"},
			Spec:       coordinationv1.LeaseSpec{RenewTime: &renewed},
		}
	}
	pass := func(t *testing.T, m *monitor, b *bench, d time.Duration) {
		t.Helper()
		for ; d > b.r.options.MonitorPeriod; d -= b.r.options.MonitorPeriod {
			b.Clock.Step(b.r.options.MonitorPeriod)
			b.Must(m.check(t.Context()))
		}
		b.Clock.Step(d)
	}
	check := func(t *testing.T, m *monitor, b *bench, want string) {
		t.Helper()
		b.Must(m.check(t.Context()))
		got := "absent"
		if c := meta.FindStatusCondition(b.get().Status.Conditions, "Ready"); c != nil {
			got = strings.TrimSpace(string(c.Status) + " " + c.Reason + " " + c.Message)
		}
		if got != want {
			t.Errorf("at %s: %s, want %s", b.Clock.Now().UTC().Format("15:04:05"), got, want)
		}
	}
	t.Run("a cluster that is silent from the start", func(t *testing.T) {
		b := newBench(t, member(pulls))
		m := newMonitor(b.r)
		check(t, m, b, "absent")
		pass(t, m, b, time.Minute)
		check(t, m, b, "absent")
		pass(t, m, b, time.Second)
		check(t, m, b, "Unknown ClusterStatusNeverUpdated Cluster status controller never posted cluster status.")
		check(t, m, b, "Unknown ClusterStatusNeverUpdated Cluster status controller never posted cluster status.")
	})
	t.Run("a cluster whose agent renews its lease, then stops", func(t *testing.T) {
		b := newBench(t, member(pulls, ready("True")), lease(1))
		m := newMonitor(b.r)
		check(t, m, b, "True")
		pass(t, m, b, 30*time.Second)
		renewed := lease(2)
		b.Refresh(renewed)
		renewed.Spec.RenewTime = lease(2).Spec.RenewTime
		b.Must(b.Stored.Update(t.Context(), renewed))
		check(t, m, b, "True")
		pass(t, m, b, 40*time.Second)
		check(t, m, b, "True")
		pass(t, m, b, time.Second)
		check(t, m, b, "Unknown ClusterStatusUnknown Cluster status controller stopped posting cluster status.")
	})
	t.Run("a cluster whose agent has a clock that is an hour fast, and is set", func(t *testing.T) {
		b := newBench(t, member(pulls, ready("True")), lease(3600))
		m := newMonitor(b.r)
		check(t, m, b, "True")
		for at := range int64(5) {
			pass(t, m, b, 30*time.Second)
			renewed := lease(0)
			b.Refresh(renewed)
			renewed.Spec.RenewTime = lease(at + 1).Spec.RenewTime
			b.Must(b.Stored.Update(t.Context(), renewed))
			check(t, m, b, "True")
		}
		pass(t, m, b, 41*time.Second)
		check(t, m, b, "Unknown ClusterStatusUnknown Cluster status controller stopped posting cluster status.")
	})
	t.Run("this process is stopped for longer than the grace period, and the agent too", func(t *testing.T) {
		b := newBench(t, member(pulls, ready("True")), lease(1))
		m := newMonitor(b.r)
		check(t, m, b, "True")
		pass(t, m, b, 20*time.Second)
		check(t, m, b, "True")
		b.Clock.Step(10 * time.Minute)
		check(t, m, b, "True")
		pass(t, m, b, 10*time.Second)
		check(t, m, b, "True")
		pass(t, m, b, time.Second)
		check(t, m, b, "Unknown ClusterStatusUnknown Cluster status controller stopped posting cluster status.")
	})
	t.Run("a cluster that is pushed to has no lease", func(t *testing.T) {
		b := newBench(t, member(ready("True")))
		m := newMonitor(b.r)
		check(t, m, b, "True")
		pass(t, m, b, time.Hour)
		check(t, m, b, "True")
	})
	t.Run("the report of a deleted cluster is removed", func(t *testing.T) {
		b := newBench(t, member(pulls))
		m := newMonitor(b.r)
		check(t, m, b, "absent")
		b.Must(b.Stored.Delete(t.Context(), b.get()))
		b.Must(m.check(t.Context()))
		if len(m.reports) != 0 {
			t.Errorf("signs: %v", m.reports)
		}
	})
}

func TestMonitor_Reported(t *testing.T) {
	renewed := metav1.NewMicroTime(time.Unix(1, 0))
	lease := &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Namespace: "karmada-cluster", Name: "m1"}, Spec: coordinationv1.LeaseSpec{RenewTime: &renewed},
	}
	b := newBench(t, member(pulls, ready("True")), lease)
	start := b.Clock.Now()
	var got []string
	b.r.options.Reported = func(cluster *clusterv1alpha1.Cluster, healthy bool, at time.Time) {
		got = append(got, fmt.Sprintf("%s %t %s", cluster.Name, healthy, at.Sub(start)))
	}
	m := newMonitor(b.r)
	step := func(d time.Duration, want ...string) {
		t.Helper()
		for ; d > b.r.options.MonitorPeriod; d -= b.r.options.MonitorPeriod {
			b.Clock.Step(b.r.options.MonitorPeriod)
			b.Must(m.check(t.Context()))
		}
		b.Clock.Step(d)
		got = nil
		b.Must(m.check(t.Context()))
		if !slices.Equal(got, want) {
			t.Errorf("after %s: %q, want %q", b.Clock.Since(start), got, want)
		}
	}
	step(0) // the renewal may be older than this process
	step(20 * time.Second)
	step(time.Second, "m1 false 0s")
	lease.Spec.RenewTime = &metav1.MicroTime{Time: time.Unix(2, 0)}
	b.Must(b.Stored.Update(t.Context(), lease))
	step(time.Second, "m1 true 21s")                                                 // it came after the check before
	lease.Annotations = map[string]string{clusterv1alpha1.FailingAnnotation: "true"} // its agent lives, and does not reach it
	b.Must(b.Stored.Update(t.Context(), lease))
	step(0, "m1 false 22s")
	lease.Annotations = nil
	b.Must(b.Stored.Update(t.Context(), lease))
	step(5*time.Second, "m1 true 21s")
	step(36*time.Second, "m1 false 22s") // its condition becomes Unknown
	step(time.Second)                    // that was no report
}

func TestChanges(t *testing.T) {
	update := changed().Update
	for _, tc := range []struct {
		name   string
		change func(*clusterv1alpha1.Cluster)
		want   bool
	}{
		{"nothing", func(*clusterv1alpha1.Cluster) {}, false},
		{"the bulk of the status", func(c *clusterv1alpha1.Cluster) { c.Status.KubernetesVersion = "v" }, false},
		{"readiness", ready("True"), true},
		{"the spec", func(c *clusterv1alpha1.Cluster) { c.Generation++ }, true},
		{"taints", func(c *clusterv1alpha1.Cluster) { c.Spec.Taints = []corev1.Taint{{Key: "a"}} }, true},
		{"finalizers", func(c *clusterv1alpha1.Cluster) { c.Finalizers = []string{"a"} }, true},
		{"deletion", leaving, true},
	} {
		if got := update(event.UpdateEvent{ObjectOld: member(), ObjectNew: member(tc.change)}); got != tc.want {
			t.Errorf("%s: %v", tc.name, got)
		}
	}
	if got := clusterOf(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "karmada-es-m1"}}); got.Name != "m1" {
		t.Errorf("got %v", got)
	}
	if got := clusterOf(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "default"}}); got.Name != "" {
		t.Errorf("got %v", got)
	}
}

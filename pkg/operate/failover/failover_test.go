package failover

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/karmada-toolkit/karmada/internal/wait"
	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
	"github.com/karmada-toolkit/karmada/pkg/apis/names"
	policyv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/policy/v1alpha1"
	workv1alpha2 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha2"
	"github.com/karmada-toolkit/karmada/pkg/domain/eviction"
	"github.com/karmada-toolkit/karmada/pkg/domain/scope"
	"github.com/karmada-toolkit/karmada/pkg/member"
)

var now = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

func cluster(name string, ready metav1.ConditionStatus, stopped bool, taints ...string) *clusterv1alpha1.Cluster {
	c := &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: name}}
	at := metav1.NewTime(now.Add(-time.Minute))
	c.Status.Conditions = []metav1.Condition{{Type: "Ready", Status: ready, LastTransitionTime: at}}
	if stopped {
		c.Status.Conditions = append(c.Status.Conditions, metav1.Condition{Type: clusterv1alpha1.ClusterConditionEvictionsStopped, Status: metav1.ConditionTrue})
	}
	for _, key := range taints {
		c.Spec.Taints = append(c.Spec.Taints, corev1.Taint{Key: key, Effect: corev1.TaintEffectNoExecute, TimeAdded: &at})
	}
	return c
}

func binding(s *scope.Binding, name, tolerations string, priority int32, clusters ...string) workv1alpha2.Binding {
	b := s.New()
	b.SetName(name)
	if s.Namespaced {
		b.SetNamespace("shop")
	}
	b.SetLabels(map[string]string{policyv1alpha1.ClusterPropagationPolicyPermanentIDLabel: "id"})
	b.SetAnnotations(map[string]string{policyv1alpha1.AppliedPlacementAnnotation: `{"clusterTolerations":[` + tolerations + `]}`})
	spec := b.GetSpec()
	spec.Resource = workv1alpha2.ObjectReference{Kind: "Deployment", Namespace: b.GetNamespace(), Name: name}
	spec.SchedulePriority = &workv1alpha2.SchedulePriority{Priority: priority}
	for _, c := range clusters {
		spec.Clusters = append(spec.Clusters, workv1alpha2.TargetCluster{Name: c, Replicas: 2})
	}
	return b
}

func text(evictions []Eviction) (out []string) {
	for _, e := range evictions {
		line := fmt.Sprintf("%s %s/%s from %s %d p%d", e.Phase, e.Namespace, e.Workload, e.Cluster, e.Replicas, e.Priority)
		if e.Reason != "" {
			line += " " + e.Reason
		}
		if !e.At.IsZero() && !e.At.Equal(now) {
			line += " " + e.At.Sub(now).String()
		}
		out = append(out, line)
	}
	return out
}

// scheme returns the kinds that commands know.
func scheme(t *testing.T) *runtime.Scheme {
	t.Helper()
	out, err := member.NewScheme()
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestRead(t *testing.T) {
	namespaced := scope.NamespacedBinding()
	leaving := binding(namespaced, "leaving", "", 0, "m3")
	leaving.GetSpec().GracefulEvictionTasks = []workv1alpha2.GracefulEvictionTask{
		{FromCluster: "m1", Replicas: new(int32(3)), Reason: "TaintUntolerated", CreationTimestamp: &metav1.Time{Time: now.Add(-10 * time.Second)}},
		{FromCluster: "m2", Reason: "ApplicationFailure"},
	}
	c := fake.NewClientBuilder().WithScheme(scheme(t)).WithObjects(
		cluster("m1", metav1.ConditionFalse, true, "down"), cluster("m2", metav1.ConditionTrue, false, "by-hand"), cluster("m3", metav1.ConditionTrue, false),
		cluster("m4", metav1.ConditionUnknown, false),
		binding(namespaced, "low", "", 1, "m1"), binding(namespaced, "high", "", 9, "m1", "m3"), leaving,
		binding(namespaced, "tolerant", `{"operator":"Exists"}`, 0, "m1", "m2"),
		binding(namespaced, "later", `{"operator":"Exists","tolerationSeconds":90}`, 0, "m1"),
		binding(scope.ClusterBinding(), "global", "", 0, "m2", "m4"),
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "karmada-system", Name: names.FailoverState}, Data: map[string]string{
			"state": `{"since":"2025-12-31T23:58:00Z","failed":2,"total":3,"clusters":["m1"]}`,
		}},
	).Build()
	r, err := Read(t.Context(), c, now)
	if err != nil {
		t.Fatal(err)
	}
	if !r.MassFailure.Stopped() || r.MassFailure.Failed != 2 {
		t.Errorf("%+v", r.MassFailure)
	}
	var clusters []string
	for _, c := range r.Clusters {
		clusters = append(clusters, c.Name)
	}
	if diff := cmp.Diff([]string{"m1", "m2", "m4"}, clusters); diff != "" {
		t.Error(diff)
	}
	want := []string{
		"under way shop/deployment/leaving from m1 3 p0 TaintUntolerated -10s",
		"under way shop/deployment/leaving from m2 0 p0 ApplicationFailure",
		"pending shop/deployment/later from m1 2 p0 30s",
		"pending /deployment/global from m2 2 p0",
		"stopped shop/deployment/high from m1 2 p9",
		"stopped shop/deployment/low from m1 2 p1",
	}
	if diff := cmp.Diff(want, text(r.Evictions)); diff != "" {
		t.Error(diff)
	}
}

func TestResume(t *testing.T) {
	stored := func(state string) *corev1.ConfigMap {
		return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "karmada-system", Name: names.FailoverState}, Data: map[string]string{eviction.StateKey: state}}
	}
	const stopped = `{"since":"2026-01-01T00:00:00.5Z","failed":2,"total":3,"clusters":["m1"]}`
	t.Run("not stopped", func(t *testing.T) {
		for _, objs := range [][]client.Object{nil, {stored("")}, {stored(`{"released":["m1"]}`)}} {
			c := fake.NewClientBuilder().WithScheme(scheme(t)).WithObjects(objs...).Build()
			if _, err := Resume(t.Context(), c, false, now, wait.Options{}); !errors.Is(err, ErrNotStopped) {
				t.Error(err)
			}
		}
	})
	t.Run("no cluster is Ready", func(t *testing.T) {
		c := fake.NewClientBuilder().WithScheme(scheme(t)).WithObjects(stored(stopped), cluster("m1", metav1.ConditionFalse, true)).Build()
		if _, err := Resume(t.Context(), c, false, now, wait.Options{}); !errors.Is(err, ErrNoneReady) {
			t.Error(err)
		}
		if _, err := Resume(t.Context(), c, true, now, wait.Options{Timeout: 10 * time.Millisecond}); err == nil || errors.Is(err, ErrNoneReady) {
			t.Error(err)
		}
	})
	t.Run("workloads would run nowhere", func(t *testing.T) { testStranded(t, stored(stopped)) })
	t.Run("not readable", func(t *testing.T) {
		c := fake.NewClientBuilder().WithScheme(scheme(t)).WithObjects(stored("{")).Build()
		if _, err := Resume(t.Context(), c, false, now, wait.Options{}); err == nil || !strings.Contains(err.Error(), "ConfigMap karmada-system/karmada-failover") {
			t.Error(err)
		}
	})
	t.Run("followed", func(t *testing.T) {
		c := fake.NewClientBuilder().WithScheme(scheme(t)).WithObjects(stored(stopped), cluster("m3", metav1.ConditionTrue, false)).WithInterceptorFuncs(interceptor.Funcs{
			Patch: func(ctx context.Context, c client.WithWatch, obj client.Object, patch client.Patch, opts ...client.PatchOption) error {
				if err := c.Patch(ctx, obj, patch, opts...); err != nil {
					return err
				}
				cm := obj.DeepCopyObject().(*corev1.ConfigMap)
				if cm.Data[eviction.ResumeKey] != "2026-01-01T00:00:00.5Z" {
					t.Errorf("requested: %v", cm.Data)
				}
				cm.Data = map[string]string{eviction.StateKey: `{"released":["m1","m2"]}`} // as the controller does
				return c.Update(ctx, cm)
			},
		}).Build()
		got, err := Resume(t.Context(), c, false, now, wait.Options{Timeout: time.Minute})
		if diff := cmp.Diff([]string{"m1", "m2"}, got); err != nil || diff != "" {
			t.Error(err, diff)
		}
	})
	t.Run("not followed", func(t *testing.T) {
		c := fake.NewClientBuilder().WithScheme(scheme(t)).WithObjects(stored(stopped), cluster("m3", metav1.ConditionTrue, false)).Build()
		_, err := Resume(t.Context(), c, false, now, wait.Options{Timeout: 10 * time.Millisecond})
		if err == nil || !strings.Contains(err.Error(), "karmada-controller-manager has not followed the request yet") {
			t.Error(err)
		}
	})
}

func TestCancel(t *testing.T) {
	leaving := func(name string) workv1alpha2.Binding {
		b := binding(scope.NamespacedBinding(), name, `{"key":"ok","operator":"Exists"}`, 0)
		b.GetSpec().GracefulEvictionTasks = []workv1alpha2.GracefulEvictionTask{
			{FromCluster: "m1", Replicas: new(int32(3)), Reason: "TaintUntolerated"}, {FromCluster: "m2", Reason: "TaintUntolerated"},
		}
		return b
	}
	for name, tc := range map[string]struct {
		cluster                  []client.Object
		cancelled, left, targets int
	}{
		"Ready":     {[]client.Object{cluster("m1", metav1.ConditionTrue, false)}, 1, 0, 1},
		"not Ready": {[]client.Object{cluster("m1", metav1.ConditionFalse, false)}, 1, 0, 1},
		"tolerated": {[]client.Object{cluster("m1", metav1.ConditionFalse, false, "ok")}, 1, 0, 1},
		"tainted":   {[]client.Object{cluster("m1", metav1.ConditionFalse, false, "down")}, 0, 1, 0},
		"stopped":   {[]client.Object{cluster("m1", metav1.ConditionFalse, true, "down")}, 1, 0, 1},
		"gone":      {nil, 1, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			b := leaving("web")
			c := fake.NewClientBuilder().WithScheme(scheme(t)).WithObjects(append(tc.cluster, b, binding(scope.ClusterBinding(), "other", "", 0, "m1"))...).Build()
			cancelled, left, err := Cancel(t.Context(), c, "m1", now)
			if err != nil || len(cancelled) != tc.cancelled || len(left) != tc.left {
				t.Fatal(cancelled, left, err)
			}
			got := scope.NamespacedBinding().New()
			if err := c.Get(t.Context(), client.ObjectKeyFromObject(b), got); err != nil {
				t.Fatal(err)
			}
			if spec := got.GetSpec(); len(spec.Clusters) != tc.targets || len(spec.GracefulEvictionTasks) != 2-tc.cancelled {
				t.Errorf("%+v", spec)
			}
		})
	}
}

// What is deleted, where and when.
func TestRead_Deletions(t *testing.T) {
	b := binding(scope.NamespacedBinding(), "web", "", 0)
	at := &metav1.Time{Time: now.Add(-time.Minute)}
	b.GetSpec().GracefulEvictionTasks = []workv1alpha2.GracefulEvictionTask{
		{FromCluster: "m1", CreationTimestamp: at}, {FromCluster: "m2", CreationTimestamp: at, GracePeriodSeconds: new(int32(90))},
		{FromCluster: "m3", CreationTimestamp: at, SuppressDeletion: new(true)}, {FromCluster: "m4", PurgeMode: policyv1alpha1.PurgeModeDirectly}, {FromCluster: "m5"},
	}
	unclaimed := binding(scope.NamespacedBinding(), "old", "", 0, "m6")
	unclaimed.SetLabels(nil)
	c := fake.NewClientBuilder().WithScheme(scheme(t)).WithObjects(b, unclaimed, cluster("m6", metav1.ConditionFalse, false, "down"),
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "karmada-system", Name: names.FailoverState}, Data: map[string]string{eviction.TimeoutKey: "5m0s"}}).Build()
	r, err := Read(t.Context(), c, now)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, e := range r.Evictions {
		got = append(got, e.Cluster+": "+e.Progress(now)+": "+e.Deleted(now))
	}
	want := []string{
		"m1: under way for 60s (): within 4m, runs nowhere else", "m2: under way for 60s (): within 30s, runs nowhere else",
		"m3: under way for 60s (): when released", "m4: under way (): at once, runs nowhere else", "m5: under way (): when it runs elsewhere, runs nowhere else",
		"m6: skipped (no policy applies): ",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// A karmada-controller-manager whose renewals are not stored, because etcd is full, reports it nowhere else.
func TestRead_SilentControllerManager(t *testing.T) {
	lease := func(name string, age time.Duration) *coordinationv1.Lease {
		return &coordinationv1.Lease{
			ObjectMeta: metav1.ObjectMeta{Namespace: "karmada-system", Name: name},
			Spec:       coordinationv1.LeaseSpec{RenewTime: &metav1.MicroTime{Time: now.Add(-age)}, LeaseDurationSeconds: new(int32(15))},
		}
	}
	for name, c := range map[string]struct {
		leases []client.Object
		want   time.Duration
	}{
		"no election":        {nil, 0},
		"renewed":            {[]client.Object{lease("karmada-controller-manager", 20*time.Second)}, 0},
		"silent":             {[]client.Object{lease("karmada-controller-manager", 5*time.Minute)}, 5 * time.Minute},
		"another one leads":  {[]client.Object{lease("karmada-controller-manager", 5*time.Minute), lease("karmada-all-in-one", time.Second)}, 0},
		"of other processes": {[]client.Object{lease("karmada-scheduler", 5*time.Minute)}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			r, err := Read(t.Context(), fake.NewClientBuilder().WithScheme(scheme(t)).WithObjects(c.leases...).Build(), now)
			if err != nil {
				t.Fatal(err)
			}
			got := time.Duration(0)
			if !r.Silent.IsZero() {
				got = now.Sub(r.Silent)
			}
			if got != c.want {
				t.Errorf("silent for %s, want %s", got, c.want)
			}
		})
	}
}

// testStranded tests Resume while m1 has failed; m2 is Ready, as is flapping, which has a taint.
func testStranded(t *testing.T, state client.Object) {
	t.Helper()
	byName := func(names ...string) policyv1alpha1.ClusterAffinity {
		return policyv1alpha1.ClusterAffinity{ClusterNames: names}
	}
	placed := func(name string, p policyv1alpha1.Placement, clusters ...string) workv1alpha2.Binding {
		b := binding(scope.NamespacedBinding(), name, "", 0, clusters...)
		b.GetSpec().Placement = &p
		return b
	}
	only := func(names ...string) policyv1alpha1.Placement {
		affinity := byName(names...)
		return policyv1alpha1.Placement{ClusterAffinity: &affinity}
	}
	terms := func(terms ...policyv1alpha1.ClusterAffinityTerm) policyv1alpha1.Placement {
		return policyv1alpha1.Placement{ClusterAffinities: terms}
	}
	evicted := placed("web", only("m1", "m2"), "m1")
	evicted.GetSpec().GracefulEvictionTasks = []workv1alpha2.GracefulEvictionTask{{FromCluster: "m2"}}
	unclaimed := placed("web", only("m1"), "m1")
	unclaimed.SetLabels(nil)
	later := placed("web", only("m1"), "m1")
	later.SetAnnotations(map[string]string{policyv1alpha1.AppliedPlacementAnnotation: `{"clusterTolerations":[{"operator":"Exists","tolerationSeconds":90}]}`})
	tolerant := only("flapping")
	tolerant.ClusterTolerations = []corev1.Toleration{{Operator: corev1.TolerationOpExists}}
	many := make([]client.Object, 0, 7)
	for i := range 7 {
		many = append(many, placed(fmt.Sprint("w", i), only("m1"), "m1"))
	}
	for name, tc := range map[string]struct {
		bindings []client.Object
		want     string // the workloads; "" if evictions may resume
	}{
		"every cluster is admitted":           {bindings: []client.Object{placed("web", policyv1alpha1.Placement{}, "m1")}},
		"another cluster is Ready":            {bindings: []client.Object{placed("web", only("m1", "m2"), "m1")}},
		"only the failed one is admitted":     {bindings: []client.Object{placed("web", only("m1"), "m1")}, want: "deployment/web in namespace shop"},
		"it runs in a cluster that stays":     {bindings: []client.Object{placed("web", only("m1"), "m1", "m2")}},
		"a later term admits a Ready cluster": {bindings: []client.Object{placed("web", terms(policyv1alpha1.ClusterAffinityTerm{ClusterAffinity: byName("m1")}, policyv1alpha1.ClusterAffinityTerm{ClusterAffinity: byName("m2")}), "m1")}},
		"an overflow affinity does":           {bindings: []client.Object{placed("web", terms(policyv1alpha1.ClusterAffinityTerm{ClusterAffinity: byName("m1"), OverflowAffinities: []policyv1alpha1.OverflowAffinityTerm{{ClusterAffinity: byName("m2")}}}), "m1")}},
		"no term does":                        {bindings: []client.Object{placed("web", terms(policyv1alpha1.ClusterAffinityTerm{ClusterAffinity: byName("m1")}), "m1")}, want: "deployment/web in namespace shop"},
		"it is being evicted from the other":  {bindings: []client.Object{evicted}, want: "deployment/web in namespace shop"},
		"the other is tainted":                {bindings: []client.Object{placed("web", only("m1", "flapping"), "m1")}, want: "deployment/web in namespace shop"},
		"the other has a tolerated taint":     {bindings: []client.Object{placed("web", tolerant, "m1")}},
		"it stays, as no policy applies":      {bindings: []client.Object{unclaimed}},
		"its toleration ends later":           {bindings: []client.Object{later}, want: "deployment/web in namespace shop"},
		"it is in no failed cluster":          {bindings: []client.Object{placed("web", only("m2"), "m2")}},
		"many":                                {bindings: many, want: "deployment/w0 in namespace shop, deployment/w1 in namespace shop, deployment/w2 in namespace shop, deployment/w3 in namespace shop, deployment/w4 in namespace shop, and 2 more"},
	} {
		t.Run(name, func(t *testing.T) {
			flapping := cluster("flapping", metav1.ConditionTrue, false)
			flapping.Spec.Taints = []corev1.Taint{{Key: clusterv1alpha1.TaintClusterFlapping, Effect: corev1.TaintEffectNoSchedule}}
			c := fake.NewClientBuilder().WithScheme(scheme(t)).WithObjects(tc.bindings...).WithObjects(
				state.DeepCopyObject().(client.Object), cluster("m1", metav1.ConditionFalse, true, "down"), cluster("m2", metav1.ConditionTrue, false), flapping).Build()
			_, err := Resume(t.Context(), c, false, now, wait.Options{Timeout: 10 * time.Millisecond})
			want := ""
			if tc.want != "" {
				want = "no other cluster of their placement is Ready for " + tc.want + ": workloads would leave their clusters and run nowhere"
			}
			if got := fmt.Sprint(err); errors.Is(err, ErrNoneReady) != (want != "") || want != "" && got != want {
				t.Errorf("got %q, want %q", got, want)
			}
			if _, err := Resume(t.Context(), c, true, now, wait.Options{Timeout: 10 * time.Millisecond}); errors.Is(err, ErrNoneReady) {
				t.Error("with force:", err)
			}
		})
	}
}

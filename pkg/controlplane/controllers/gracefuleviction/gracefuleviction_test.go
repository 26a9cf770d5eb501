package gracefuleviction

import (
	"reflect"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/karmada-toolkit/karmada/internal/build"
	"github.com/karmada-toolkit/karmada/internal/events"
	"github.com/karmada-toolkit/karmada/internal/testenv/memory"
	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
	policyv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/policy/v1alpha1"
	workv1alpha2 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha2"
	"github.com/karmada-toolkit/karmada/pkg/domain/scope"
)

var now = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// binding returns an empty binding of a scope, and its request.
func binding(s *scope.Binding) (workv1alpha2.Binding, reconcile.Request) {
	key := types.NamespacedName{Name: "web-deployment"}
	ref := workv1alpha2.ObjectReference{APIVersion: "rbac.authorization.k8s.io/v1", Kind: "ClusterRole", Name: "web"}
	if s.Namespaced {
		key.Namespace = "default"
		ref = workv1alpha2.ObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "default", Name: "web"}
	}
	b := s.New()
	b.SetNamespace(key.Namespace)
	b.SetName(key.Name)
	b.SetGeneration(3)
	b.GetSpec().Resource = ref
	return b, reconcile.Request{NamespacedName: key}
}

func task(cluster string, age time.Duration) workv1alpha2.GracefulEvictionTask {
	t := workv1alpha2.GracefulEvictionTask{FromCluster: cluster, Reason: "TaintUntolerated", Producer: "TaintManager"}
	if age >= 0 {
		t.CreationTimestamp = &metav1.Time{Time: now.Add(-age)}
	}
	return t
}

func TestReconcile(t *testing.T) {
	healthy := func(b workv1alpha2.Binding) {
		b.GetSpec().Clusters = []workv1alpha2.TargetCluster{{Name: "m2"}}
		b.GetStatus().SchedulerObservedGeneration = 3
		b.GetStatus().AggregatedStatus = []workv1alpha2.AggregatedStatusItem{{ClusterName: "m2", Health: workv1alpha2.ResourceHealthy}}
	}
	for name, tc := range map[string]struct {
		task    workv1alpha2.GracefulEvictionTask
		set     func(workv1alpha2.Binding)
		ended   bool
		requeue time.Duration
	}{
		"the target lacks replicas yet": {task: task("m1", time.Minute), requeue: 9 * time.Minute, set: func(b workv1alpha2.Binding) {
			healthy(b)
			b.GetSpec().Clusters[0].Replicas = 2
			b.GetStatus().AggregatedStatus[0].Status = &runtime.RawExtension{Raw: []byte(`{"replicas":1,"readyReplicas":1}`)}
		}},
		"new":                          {task: task("m1", -1), requeue: 10 * time.Minute},
		"within its time":              {task: task("m1", time.Minute), requeue: 9 * time.Minute},
		"its time is over":             {task: task("m1", 11*time.Minute), ended: true},
		"healthy elsewhere":            {task: task("m1", time.Minute), set: healthy, ended: true},
		"its time is over to a second": {task: task("m1", 10*time.Minute), requeue: minRequeue},
	} {
		for _, s := range scope.Bindings() {
			t.Run(s.Kind+"/"+name, func(t *testing.T) {
				b, request := binding(s)
				b.GetSpec().Clusters = []workv1alpha2.TargetCluster{{Name: "m2"}}
				b.GetSpec().GracefulEvictionTasks = []workv1alpha2.GracefulEvictionTask{tc.task}
				if tc.set != nil {
					tc.set(b)
				}
				m := memory.New(t, b)
				r := &reconciler{scope: s, client: m.Client, events: events.New(m.Recorder), clock: m.Clock, timeout: defaultTimeout}
				result, err := r.Reconcile(t.Context(), request)
				if err != nil || result.RequeueAfter != tc.requeue {
					t.Fatalf("%s, %v", result.RequeueAfter, err)
				}
				m.Refresh(b)
				tasks := b.GetSpec().GracefulEvictionTasks
				if tc.ended != (len(tasks) == 0) || !tc.ended && tasks[0].CreationTimestamp.IsZero() {
					t.Errorf("the tasks are %+v", tasks)
				}
				published := m.Events()
				want := "Normal EvictWorkloadFromClusterSucceed Evict from cluster m1 succeed."
				if tc.ended && !slices.Equal(published, []string{want}) || !tc.ended && published != nil {
					t.Errorf("the events are %q", published)
				}
			})
		}
	}
}

// A cluster that is back gets its workload back, although the time of the eviction is over.
func TestReconcile_CancelsWhenTheClusterIsBack(t *testing.T) {
	for _, s := range scope.Bindings() {
		b, request := binding(s)
		b.SetAnnotations(map[string]string{policyv1alpha1.AppliedPlacementAnnotation: "{}"})
		over := task("m1", time.Hour)
		over.Replicas = new(int32(2))
		b.GetSpec().GracefulEvictionTasks = []workv1alpha2.GracefulEvictionTask{over, task("gone", time.Minute)}
		cluster := build.Cluster("m1", build.Ready(metav1.ConditionTrue))
		m := memory.New(t, b, cluster)
		r := &reconciler{scope: s, client: m.Client, events: events.New(m.Recorder), clock: m.Clock, timeout: defaultTimeout}
		if got := r.leaving(t.Context(), cluster); !slices.Equal(got, []reconcile.Request{request}) {
			t.Errorf("enqueued: %v", got)
		}
		m.MustReconcile(r, request.NamespacedName)
		m.Refresh(b)
		if spec := b.GetSpec(); len(spec.GracefulEvictionTasks) != 1 || !reflect.DeepEqual(spec.Clusters, []workv1alpha2.TargetCluster{{Name: "m1", Replicas: 2}}) {
			t.Errorf("%s: %+v", s.Kind, spec)
		}
		if got := m.Events(); len(got) != 1 { // of the template
			t.Errorf("%s: events %q", s.Kind, got)
		}
	}
}

func TestMaybeBack(t *testing.T) {
	cluster := func(ready metav1.ConditionStatus, taints ...corev1.Taint) *clusterv1alpha1.Cluster {
		return build.Cluster("m1", build.Ready(ready), build.Taints(taints...))
	}
	down := corev1.Taint{Key: "down", Effect: corev1.TaintEffectNoExecute}
	for name, tc := range map[string]struct {
		before, after *clusterv1alpha1.Cluster
		want          bool
	}{
		"becomes Ready":      {cluster("False"), cluster("True"), true},
		"loses its taint":    {cluster("True", down), cluster("True"), true},
		"nothing changed":    {cluster("True"), cluster("True"), false},
		"not Ready any more": {cluster("True"), cluster("False"), false},
		"a taint, not Ready": {cluster("False", down), cluster("False"), false},
	} {
		if got := maybeBack().Update(event.UpdateEvent{ObjectOld: tc.before, ObjectNew: tc.after}); got != tc.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

func TestWithTasks(t *testing.T) {
	for _, s := range scope.Bindings() {
		b, _ := binding(s)
		p := withTasks()
		if p.Create(event.CreateEvent{Object: b}) || p.Update(event.UpdateEvent{ObjectOld: b, ObjectNew: b}) {
			t.Errorf("a %s without tasks passes", s.Kind)
		}
		with := b.DeepCopyObject().(workv1alpha2.Binding)
		with.GetSpec().GracefulEvictionTasks = []workv1alpha2.GracefulEvictionTask{task("m1", 0)}
		if !p.Create(event.CreateEvent{Object: with}) || !p.Update(event.UpdateEvent{ObjectOld: b, ObjectNew: with}) || p.Delete(event.DeleteEvent{Object: with}) {
			t.Errorf("a %s with tasks does not pass, or one that is gone does", s.Kind)
		}
	}
}

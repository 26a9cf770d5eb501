package rebalance

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/karmada-toolkit/karmada/internal/kube"
	"github.com/karmada-toolkit/karmada/internal/wait"
	appsv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/apps/v1alpha1"
	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
	policyv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/policy/v1alpha1"
	workv1alpha2 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha2"
	"github.com/karmada-toolkit/karmada/pkg/domain/schedule/framework"
)

func workload(name string) appsv1alpha1.ObjectReference {
	return appsv1alpha1.ObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "default", Name: name}
}

func binding(name string, clusters ...workv1alpha2.TargetCluster) *workv1alpha2.ResourceBinding {
	return &workv1alpha2.ResourceBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name + "-deployment"},
		Spec:       workv1alpha2.ResourceBindingSpec{Clusters: clusters},
	}
}

func TestMove_String(t *testing.T) {
	on := func(name string, replicas int32) workv1alpha2.TargetCluster {
		return workv1alpha2.TargetCluster{Name: name, Replicas: replicas}
	}
	type clusters = []workv1alpha2.TargetCluster
	for want, m := range map[string]Move{
		"deployment/web: not moved":                         {Before: clusters{on("m1", 2), on("m2", 1)}, After: clusters{on("m2", 1), on("m1", 2)}},
		"deployment/web: m1 2 -> 1, m2 0 -> 1":              {Before: clusters{on("m1", 2)}, After: clusters{on("m2", 1), on("m1", 1)}},
		"deployment/web: m1 2 -> 0":                         {Before: clusters{on("m1", 2), on("m2", 1)}, After: clusters{on("m2", 1)}},
		"deployment/web: m1 removed, m2 added":              {Before: clusters{on("m1", 0)}, After: clusters{on("m2", 0)}},
		"deployment/web: m1 1 -> 2, m2 1 -> 0, m3 0 -> 100": {Before: clusters{on("m1", 1), on("m2", 1)}, After: clusters{on("m1", 2), on("m3", 100)}},
	} {
		m.Workload = workload("web")
		if got := m.String(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestMove_Flapping(t *testing.T) {
	const note = "m2 gets no more replicas: its condition Ready changes often, it is flapping until 2026-05-01T12:05:00Z"
	m1, m2 := &clusterv1alpha1.Cluster{}, &clusterv1alpha1.Cluster{}
	m1.Name, m2.Name = "m1", "m2"
	m2.Spec.Taints = []corev1.Taint{{Key: clusterv1alpha1.TaintClusterFlapping, Effect: corev1.TaintEffectNoSchedule}}
	m2.Annotations = map[string]string{clusterv1alpha1.FlappingUntilAnnotation: "2026-05-01T12:05:00Z"}
	on := func(name string, replicas int32) workv1alpha2.TargetCluster {
		return workv1alpha2.TargetCluster{Name: name, Replicas: replicas}
	}
	type clusters = []workv1alpha2.TargetCluster
	only := func(name string) policyv1alpha1.ClusterAffinity {
		return policyv1alpha1.ClusterAffinity{ClusterNames: []string{name}}
	}
	first, terms := only("m1"), &policyv1alpha1.Placement{ClusterAffinities: []policyv1alpha1.ClusterAffinityTerm{
		{AffinityName: "a", ClusterAffinity: only("m1")}, {AffinityName: "b", ClusterAffinity: only("m2")},
	}}
	for name, tc := range map[string]struct {
		placement     *policyv1alpha1.Placement
		term          string
		before, after clusters
		want          string
	}{
		"it is left out":           {&policyv1alpha1.Placement{}, "", clusters{on("m1", 4)}, clusters{on("m1", 4)}, "deployment/web: not moved; " + note},
		"it gives replicas away":   {&policyv1alpha1.Placement{}, "", clusters{on("m2", 4)}, clusters{on("m1", 3), on("m2", 1)}, "deployment/web: m1 0 -> 3, m2 4 -> 1; " + note},
		"it keeps what it has":     {&policyv1alpha1.Placement{}, "", clusters{on("m1", 3), on("m2", 1)}, clusters{on("m1", 3), on("m2", 1)}, "deployment/web: not moved; " + note},
		"it has all replicas":      {&policyv1alpha1.Placement{}, "", clusters{on("m2", 4)}, clusters{on("m2", 4)}, "deployment/web: not moved"},
		"it gets more":             {&policyv1alpha1.Placement{}, "", clusters{on("m1", 4)}, clusters{on("m1", 2), on("m2", 2)}, "deployment/web: m1 4 -> 2, m2 0 -> 2"},
		"another is selected":      {&policyv1alpha1.Placement{ClusterAffinity: &first}, "", nil, clusters{on("m1", 4)}, "deployment/web: m1 0 -> 4"},
		"another term is in use":   {terms, "a", nil, clusters{on("m1", 4)}, "deployment/web: m1 0 -> 4"},
		"its term is in use":       {terms, "b", nil, nil, "deployment/web: not moved; " + note},
		"the taint is tolerated":   {&policyv1alpha1.Placement{ClusterTolerations: []corev1.Toleration{{Operator: corev1.TolerationOpExists}}}, "", nil, clusters{on("m1", 4)}, "deployment/web: m1 0 -> 4"},
		"a binding without policy": {nil, "", nil, clusters{on("m1", 4)}, "deployment/web: m1 0 -> 4"},
	} {
		t.Run(name, func(t *testing.T) {
			b := binding("web", tc.after...)
			b.Spec.Replicas, b.Spec.Placement, b.Status.SchedulerObservedAffinityName = 4, tc.placement, tc.term
			m := Move{Workload: workload("web"), Before: tc.before, After: tc.after}
			m.Notes = m.flapping(b, framework.SnapshotOf([]*clusterv1alpha1.Cluster{m1, m2}, false))
			if got := m.String(); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

func TestNew_NamesWhatIsNotPropagated(t *testing.T) {
	c := fake.NewClientBuilder().WithScheme(kube.NewScheme()).WithObjects(binding("web")).Build()
	_, err := New(t.Context(), c, Request{Workloads: []appsv1alpha1.ObjectReference{workload("a"), workload("web"), workload("b")}})
	if err == nil || strings.Count(err.Error(), "is not propagated") != 2 || !strings.Contains(err.Error(), `deployment/b in namespace "default"`) {
		t.Error(err)
	}
}

// controlPlane returns a client whose WorkloadRebalancers get a status at once, and the bindings of those that succeed
// are scheduled to m2.
func controlPlane(status func(*appsv1alpha1.WorkloadRebalancer), objs ...client.Object) client.Client {
	return fake.NewClientBuilder().WithScheme(kube.NewScheme()).WithObjects(objs...).WithInterceptorFuncs(interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.CreateOption) error {
			status(obj.(*appsv1alpha1.WorkloadRebalancer))
			return c.Create(ctx, obj, opts...)
		},
	}).Build()
}

func observed(result appsv1alpha1.RebalanceResult, reason appsv1alpha1.RebalanceFailedReason) func(*appsv1alpha1.WorkloadRebalancer) {
	return func(r *appsv1alpha1.WorkloadRebalancer) {
		r.Name = "rebalance-1"
		r.Status.FinishTime = &metav1.Time{Time: time.Unix(1, 0)}
		r.Status.ObservedWorkloads = []appsv1alpha1.ObservedWorkload{{Workload: workload("web"), Result: result, Reason: reason}}
	}
}

func TestPlan_WaitReturnsWhatMoved(t *testing.T) {
	b := binding("web", workv1alpha2.TargetCluster{Name: "m1", Replicas: 2})
	c := controlPlane(observed(appsv1alpha1.RebalanceSuccessful, ""), b)
	p, err := New(t.Context(), c, Request{Workloads: []appsv1alpha1.ObjectReference{workload("web")}, Timeout: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	if name, err := p.Start(t.Context()); err != nil || name != "rebalance-1" {
		t.Fatal(name, err)
	}
	if ttl := p.rebalancer.Spec.TTLSecondsAfterFinished; ttl == nil || *ttl != ttlSeconds {
		t.Errorf("the time to live is %v", ttl)
	}
	at := metav1.NewTime(time.Unix(5, 0))
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(b), b); err != nil {
		t.Fatal(err)
	}
	b.Spec.Clusters = []workv1alpha2.TargetCluster{{Name: "m2", Replicas: 2}}
	b.Spec.RescheduleTriggeredAt, b.Status.LastScheduledTime = &at, &at
	if err := c.Update(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	moves, err := p.Wait(t.Context())
	if err != nil || len(moves) != 1 {
		t.Fatal(moves, err)
	}
	if diff := cmp.Diff("deployment/web: m1 2 -> 0, m2 0 -> 2", moves[0].String()); diff != "" {
		t.Error(diff)
	}
}

func TestPlan_WaitFails(t *testing.T) {
	for name, tc := range map[string]struct {
		status  func(*appsv1alpha1.WorkloadRebalancer)
		want    string
		timeout bool
	}{
		"a workload without a binding": {observed(appsv1alpha1.RebalanceFailed, appsv1alpha1.RebalanceObjectNotFound), `deployment/web in namespace "default": ReferencedBindingNotFound`, false},
		"no controller":                {func(r *appsv1alpha1.WorkloadRebalancer) { r.Name = "rebalance-1" }, "karmada-controller-manager has not finished it yet", true},
	} {
		t.Run(name, func(t *testing.T) {
			p, err := New(t.Context(), controlPlane(tc.status, binding("web")), Request{Workloads: []appsv1alpha1.ObjectReference{workload("web")}, Timeout: 50 * time.Millisecond})
			if err != nil {
				t.Fatal(err)
			}
			if _, err := p.Start(t.Context()); err != nil {
				t.Fatal(err)
			}
			_, err = p.Wait(t.Context())
			if err == nil || !strings.Contains(err.Error(), tc.want) || errors.Is(err, wait.ErrTimeout) != tc.timeout {
				t.Error(err)
			}
		})
	}
}

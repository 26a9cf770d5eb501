package rebalancer

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/karmada-toolkit/karmada/internal/testenv/memory"
	appsv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/apps/v1alpha1"
	workv1alpha2 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha2"
)

var created = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

func workload(kind, namespace, name string) appsv1alpha1.ObjectReference {
	return appsv1alpha1.ObjectReference{APIVersion: "apps/v1", Kind: kind, Namespace: namespace, Name: name}
}

func rebalancerOf(ttl *int32, workloads ...appsv1alpha1.ObjectReference) *appsv1alpha1.WorkloadRebalancer {
	return &appsv1alpha1.WorkloadRebalancer{
		ObjectMeta: metav1.ObjectMeta{Name: "r", UID: "u", Generation: 1, CreationTimestamp: metav1.NewTime(created)},
		Spec:       appsv1alpha1.WorkloadRebalancerSpec{Workloads: workloads, TTLSecondsAfterFinished: ttl},
	}
}

func binding(name string, triggered *metav1.Time) *workv1alpha2.ResourceBinding {
	return &workv1alpha2.ResourceBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name},
		Spec:       workv1alpha2.ResourceBindingSpec{RescheduleTriggeredAt: triggered},
	}
}

func newReconciler(t *testing.T, now time.Time, objs ...client.Object) (*memory.Env, *reconciler) {
	t.Helper()
	m := memory.New(t, objs...)
	m.Clock.SetTime(now)
	return m, &reconciler{client: m.Client, live: m.Client, clock: m.Clock}
}

var request = reconcile.Request{NamespacedName: types.NamespacedName{Name: "r"}}

func TestReconcile_TriggersAndFinishes(t *testing.T) {
	now := created.Add(time.Minute)
	later := metav1.NewTime(created.Add(time.Hour))
	m, r := newReconciler(t, now,
		rebalancerOf(nil, workload("Deployment", "default", "web"), workload("Deployment", "default", "later"),
			workload("Deployment", "default", "missing"), workload("ClusterRole", "", "admin")),
		binding("web-deployment", nil), binding("later-deployment", &later),
		&workv1alpha2.ClusterResourceBinding{ObjectMeta: metav1.ObjectMeta{Name: "admin-clusterrole"}},
	)
	result, err := r.Reconcile(t.Context(), request)
	if err != nil || result.RequeueAfter != 0 {
		t.Fatal(result, err)
	}
	got := memory.Get[*appsv1alpha1.WorkloadRebalancer](m, request.NamespacedName)
	want := []appsv1alpha1.ObservedWorkload{
		{Workload: workload("ClusterRole", "", "admin"), Result: appsv1alpha1.RebalanceSuccessful},
		{Workload: workload("Deployment", "default", "later"), Result: appsv1alpha1.RebalanceSuccessful},
		{Workload: workload("Deployment", "default", "missing"), Result: appsv1alpha1.RebalanceFailed, Reason: appsv1alpha1.RebalanceObjectNotFound},
		{Workload: workload("Deployment", "default", "web"), Result: appsv1alpha1.RebalanceSuccessful},
	}
	if diff := cmp.Diff(want, got.Status.ObservedWorkloads); diff != "" {
		t.Error(diff)
	}
	if got.Status.FinishTime == nil || !got.Status.FinishTime.Time.Equal(now) || got.Status.ObservedGeneration != 1 {
		t.Errorf("the status is %+v", got.Status)
	}
	for name, want := range map[string]time.Time{"web-deployment": created, "later-deployment": later.Time} {
		b := memory.Get[*workv1alpha2.ResourceBinding](m, memory.Key("default", name))
		if b.Spec.RescheduleTriggeredAt == nil || !b.Spec.RescheduleTriggeredAt.Time.Equal(want) {
			t.Errorf("%s is triggered at %v, want %v", name, b.Spec.RescheduleTriggeredAt, want)
		}
	}
	m.Stable(func() { m.MustReconcile(r, request.NamespacedName) })
}

func TestReconcile_DeletesAfterItsTime(t *testing.T) {
	for name, tc := range map[string]struct {
		ttl     int32
		elapsed time.Duration
		deleted bool
	}{
		"zero seconds":       {0, 0, true},
		"before it is over":  {60, 59 * time.Second, false},
		"when it is over":    {60, 60 * time.Second, true},
		"long after the end": {60, time.Hour, true},
	} {
		t.Run(name, func(t *testing.T) {
			now := created.Add(time.Minute)
			m, r := newReconciler(t, now, rebalancerOf(&tc.ttl, workload("Deployment", "default", "web")), binding("web-deployment", nil))
			result, err := r.Reconcile(t.Context(), request)
			if err != nil || result.RequeueAfter <= 0 {
				t.Fatalf("%+v %v", result, err)
			}
			m.Clock.Step(tc.elapsed)
			m.MustReconcile(r, request.NamespacedName)
			err = r.client.Get(t.Context(), request.NamespacedName, &appsv1alpha1.WorkloadRebalancer{})
			if apierrors.IsNotFound(err) != tc.deleted {
				t.Errorf("deleted is %t: %v", !tc.deleted, err)
			}
		})
	}
}

func TestReconcile_RetriesAWorkloadWithoutResult(t *testing.T) {
	m, r := newReconciler(t, created, rebalancerOf(nil, workload("Deployment", "default", "web"), workload("Deployment", "default", "missing")), binding("web-deployment", nil))
	m.FailOn("patch ", apierrors.NewConflict(workv1alpha2.Resource("resourcebindings"), "web-deployment", errors.New("changed")))
	_, err := r.Reconcile(t.Context(), request)
	if err == nil || !strings.Contains(err.Error(), "1 resource reschedule triggered failed and need retry") || !apierrors.IsConflict(errors.Unwrap(err)) && !strings.Contains(err.Error(), "web-deployment") {
		t.Fatal(err)
	}
	got := memory.Get[*appsv1alpha1.WorkloadRebalancer](m, request.NamespacedName)
	if got.Status.FinishTime != nil || len(got.Status.ObservedWorkloads) != 2 || got.Status.ObservedWorkloads[1].Result != "" {
		t.Errorf("the status is %+v", got.Status)
	}
}

package replicassync

import (
	"errors"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/karmada-toolkit/karmada/internal/testenv/memory"
	policyv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/policy/v1alpha1"
	workv1alpha2 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha2"
)

// scaled returns a Deployment of 2 replicas that an autoscaler of a member has scaled to 5.
func scaled() *appsv1.Deployment {
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web", Labels: map[string]string{workv1alpha2.RetainReplicasLabel: "true"}}}
	d.Spec.Replicas, d.Status.Replicas = new(int32(2)), 5
	return d
}

func binding() *workv1alpha2.ResourceBinding {
	b := &workv1alpha2.ResourceBinding{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web-deployment"}}
	b.Spec.Resource = workv1alpha2.ObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "default", Name: "web"}
	b.Spec.Replicas, b.Spec.Clusters = 2, []workv1alpha2.TargetCluster{{Name: "m1", Replicas: 2}}
	b.Spec.Placement = &policyv1alpha1.Placement{ReplicaScheduling: &policyv1alpha1.ReplicaSchedulingStrategy{ReplicaSchedulingType: policyv1alpha1.ReplicaSchedulingTypeDivided}}
	b.Status.AggregatedStatus = []workv1alpha2.AggregatedStatusItem{{ClusterName: "m1", Status: &runtime.RawExtension{Raw: []byte(`{"replicas":5}`)}}}
	return b
}

func newReconciler(t *testing.T, objs ...client.Object) (*memory.Env, *reconciler) {
	t.Helper()
	m := memory.New(t, objs...)
	return m, &reconciler{client: m.Client, marked: m.Client}
}

func request() reconcile.Request {
	return reconcile.Request{NamespacedName: types.NamespacedName{Namespace: "default", Name: "web"}}
}

func TestReconcile(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*appsv1.Deployment, *workv1alpha2.ResourceBinding)
		want   int32
	}{
		"the replicas of members are written":    {func(*appsv1.Deployment, *workv1alpha2.ResourceBinding) {}, 5},
		"without the label they are not":         {func(d *appsv1.Deployment, _ *workv1alpha2.ResourceBinding) { d.Labels = nil }, 2},
		"nor before the schedule is current":     {func(_ *appsv1.Deployment, b *workv1alpha2.ResourceBinding) { b.Spec.Replicas = 3 }, 2},
		"nor before all statuses are current":    {func(d *appsv1.Deployment, _ *workv1alpha2.ResourceBinding) { d.Status.Replicas = 4 }, 2},
		"nor for a binding of another template":  {func(_ *appsv1.Deployment, b *workv1alpha2.ResourceBinding) { b.Name = "other" }, 2},
		"nor for a Deployment of equal replicas": {func(d *appsv1.Deployment, _ *workv1alpha2.ResourceBinding) { d.Status.Replicas = 2 }, 2},
	} {
		t.Run(name, func(t *testing.T) {
			d, b := scaled(), binding()
			tc.change(d, b)
			m, r := newReconciler(t, d, b)
			m.MustReconcile(r, request().NamespacedName)
			patches := len(m.Writes())
			m.Stable(func() { m.MustReconcile(r, request().NamespacedName) })
			m.Refresh(d)
			if *d.Spec.Replicas != tc.want || patches > 1 || (patches == 1) != (tc.want == 5) {
				t.Errorf("%d replicas after %d patches, want %d", *d.Spec.Replicas, patches, tc.want)
			}
		})
	}
}

func TestReconcile_Errors(t *testing.T) {
	resource := schema.GroupResource{Group: "apps", Resource: "deployments"}
	m, r := newReconciler(t, scaled(), binding())
	m.FailOn("patch ", apierrors.NewConflict(resource, "web", errors.New("changed")))
	if _, err := r.Reconcile(t.Context(), request()); !apierrors.IsConflict(err) {
		t.Errorf("a conflict is retried: got %v", err)
	}
	m.FailOn("patch ", apierrors.NewNotFound(resource, "web"))
	if _, err := r.Reconcile(t.Context(), request()); err != nil {
		t.Errorf("a Deployment that is gone is not retried: got %v", err)
	}
	m, r = newReconciler(t) // a Deployment that does not exist
	m.MustReconcile(r, request().NamespacedName)
}

func TestDeploymentOf(t *testing.T) {
	b := binding()
	if got := deploymentOf(b); got != request().NamespacedName {
		t.Errorf("got %s", got)
	}
	b.Spec.Resource.Kind = "StatefulSet"
	if got := deploymentOf(b); got != (types.NamespacedName{}) {
		t.Errorf("a StatefulSet: got %s", got)
	}
}

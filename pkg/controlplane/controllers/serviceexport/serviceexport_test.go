package serviceexport

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/karmada-toolkit/karmada/internal/controllers"
	"github.com/karmada-toolkit/karmada/internal/testenv/memory"
	multiclusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/multicluster/v1alpha1"
	workv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha1"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/templates"
	"github.com/karmada-toolkit/karmada/pkg/domain/services"
)

func web() types.NamespacedName { return types.NamespacedName{Namespace: "default", Name: "web"} }

// store has the Service of the control plane, or none.
type store struct {
	templates.Reader
	service *corev1.Service
}

func (s store) Get(_ context.Context, _ schema.GroupVersionKind, _, name string) (*unstructured.Unstructured, error) {
	if s.service == nil {
		return nil, apierrors.NewNotFound(schema.GroupResource{Resource: "services"}, name)
	}
	obj, err := runtime.DefaultUnstructuredConverter.ToUnstructured(s.service)
	return &unstructured.Unstructured{Object: obj}, err
}

func exportWork(cluster string) *workv1alpha1.Work {
	work := &workv1alpha1.Work{ObjectMeta: metav1.ObjectMeta{Namespace: "karmada-es-" + cluster, Name: services.ExportWorkName(web())}}
	work.Spec.Workload.Manifests = []workv1alpha1.Manifest{{RawExtension: runtime.RawExtension{Raw: []byte(
		`{"apiVersion":"multicluster.x-k8s.io/v1alpha1","kind":"ServiceExport","metadata":{"namespace":"default","name":"web"}}`)}}}
	work.Status.Conditions = []metav1.Condition{{Type: workv1alpha1.WorkApplied, Status: metav1.ConditionTrue}}
	return work
}

type fixture struct {
	*memory.Env
	*reconciler
}

func newFixture(t *testing.T, service *corev1.Service, objects ...client.Object) *fixture {
	t.Helper()
	m := memory.New(t, objects...)
	m.Index(&workv1alpha1.Work{}, serviceIndex, controllers.IndexKey(serviceOf))
	m.Clock.SetTime(time.Unix(1000, 0))
	return &fixture{m, newReconciler(m.Client, m.Client, store{service: service}, m.Clock)}
}

func (f *fixture) mustReconcile() {
	f.Helper()
	f.MustReconcile(f, web())
}

// conditions returns those of the ServiceExport in the control plane.
func (f *fixture) conditions() []metav1.Condition {
	f.Helper()
	return memory.Get[*multiclusterv1alpha1.ServiceExport](f.Env, web()).Status.Conditions
}

func export() *multiclusterv1alpha1.ServiceExport {
	return &multiclusterv1alpha1.ServiceExport{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web", Generation: 3}}
}

func service() *corev1.Service {
	return &corev1.Service{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Service"}, ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web"},
		Spec: corev1.ServiceSpec{Type: corev1.ServiceTypeClusterIP, Ports: []corev1.ServicePort{{Port: 80}}},
	}
}

func TestReconcile_WritesConditions(t *testing.T) {
	f := newFixture(t, service(), export(), exportWork("m1"))
	f.mustReconcile()
	conditions := f.conditions()
	valid := meta.FindStatusCondition(conditions, services.ExportValid)
	if valid == nil || valid.Status != metav1.ConditionTrue || valid.ObservedGeneration != 3 || valid.LastTransitionTime.Unix() != 1000 {
		t.Errorf("conditions %+v", conditions)
	}
	work := memory.Get[*workv1alpha1.Work](f.Env, client.ObjectKeyFromObject(exportWork("m1")))
	var status multiclusterv1alpha1.ServiceExportStatus
	if err := json.Unmarshal([]byte(work.Annotations[services.StatusAnnotation]), &status); err != nil || !meta.IsStatusConditionTrue(status.Conditions, services.ExportValid) {
		t.Errorf("the member gets %q, %v", work.Annotations[services.StatusAnnotation], err)
	}
	f.Stable(f.mustReconcile)
}

func TestReconcile_NoService(t *testing.T) {
	f := newFixture(t, nil, export())
	f.mustReconcile()
	if valid := meta.FindStatusCondition(f.conditions(), services.ExportValid); valid == nil || valid.Status == metav1.ConditionTrue {
		t.Errorf("conditions %+v", f.conditions())
	}
}

// TestReconcile_Conflict writes the conditions although another client wrote the ServiceExport meanwhile.
func TestReconcile_Conflict(t *testing.T) {
	f := newFixture(t, service(), export(), exportWork("m1"))
	f.FailOnce("status ServiceExport ", apierrors.NewConflict(schema.GroupResource{Resource: "serviceexports"}, "web", nil))
	if _, err := f.Reconcile(t.Context(), reconcile.Request{NamespacedName: web()}); err != nil {
		f.mustReconcile()
	}
	if !meta.IsStatusConditionTrue(f.conditions(), services.ExportValid) {
		t.Errorf("conditions %+v", f.conditions())
	}
}

func TestReconcile_Deleted(t *testing.T) {
	f := newFixture(t, service(), exportWork("m1"))
	f.Stable(f.mustReconcile)
}

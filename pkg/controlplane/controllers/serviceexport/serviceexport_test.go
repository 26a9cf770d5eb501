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
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/karmada-toolkit/karmada/internal/controllers"
	"github.com/karmada-toolkit/karmada/internal/kube"
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
	*reconciler
	t      *testing.T
	writes int
	// fail fails the next writes of statuses with a conflict.
	fail int
}

func newFixture(t *testing.T, service *corev1.Service, objects ...client.Object) *fixture {
	t.Helper()
	f := &fixture{t: t}
	c := fake.NewClientBuilder().WithScheme(kube.NewScheme()).WithObjects(objects...).
		WithStatusSubresource(&multiclusterv1alpha1.ServiceExport{}).
		WithIndex(&workv1alpha1.Work{}, serviceIndex, controllers.IndexKey(serviceOf)).
		WithInterceptorFuncs(interceptor.Funcs{
			Patch: func(ctx context.Context, c client.WithWatch, obj client.Object, patch client.Patch, opts ...client.PatchOption) error {
				f.writes++
				return c.Patch(ctx, obj, patch, opts...)
			},
			SubResourcePatch: func(ctx context.Context, c client.Client, sub string, obj client.Object, patch client.Patch, opts ...client.SubResourcePatchOption) error {
				f.writes++
				if f.fail > 0 {
					f.fail--
					return apierrors.NewConflict(schema.GroupResource{Resource: "serviceexports"}, obj.GetName(), nil)
				}
				return c.SubResource(sub).Patch(ctx, obj, patch, opts...)
			},
		}).Build()
	clock := clocktesting.NewFakeClock(time.Unix(1000, 0))
	f.reconciler = newReconciler(c, c, store{service: service}, clock)
	return f
}

func (f *fixture) reconcile() error {
	_, err := f.Reconcile(f.t.Context(), reconcile.Request{NamespacedName: web()})
	return err
}

// conditions returns those of the ServiceExport in the control plane.
func (f *fixture) conditions() []metav1.Condition {
	f.t.Helper()
	export := &multiclusterv1alpha1.ServiceExport{}
	if err := f.client.Get(f.t.Context(), web(), export); err != nil {
		f.t.Fatal(err)
	}
	return export.Status.Conditions
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
	if err := f.reconcile(); err != nil {
		t.Fatal(err)
	}
	conditions := f.conditions()
	valid := meta.FindStatusCondition(conditions, services.ExportValid)
	if valid == nil || valid.Status != metav1.ConditionTrue || valid.ObservedGeneration != 3 || valid.LastTransitionTime.Unix() != 1000 {
		t.Errorf("conditions %+v", conditions)
	}
	work := &workv1alpha1.Work{}
	if err := f.client.Get(t.Context(), client.ObjectKeyFromObject(exportWork("m1")), work); err != nil {
		t.Fatal(err)
	}
	var status multiclusterv1alpha1.ServiceExportStatus
	if err := json.Unmarshal([]byte(work.Annotations[services.StatusAnnotation]), &status); err != nil || !meta.IsStatusConditionTrue(status.Conditions, services.ExportValid) {
		t.Errorf("the member gets %q, %v", work.Annotations[services.StatusAnnotation], err)
	}

	f.writes = 0
	if err := f.reconcile(); err != nil || f.writes != 0 {
		t.Errorf("a second pass writes %d times: %v", f.writes, err)
	}
}

func TestReconcile_NoService(t *testing.T) {
	f := newFixture(t, nil, export())
	if err := f.reconcile(); err != nil {
		t.Fatal(err)
	}
	if valid := meta.FindStatusCondition(f.conditions(), services.ExportValid); valid == nil || valid.Status == metav1.ConditionTrue {
		t.Errorf("conditions %+v", f.conditions())
	}
}

// TestReconcile_Conflict writes the conditions although another client wrote the ServiceExport meanwhile.
func TestReconcile_Conflict(t *testing.T) {
	f := newFixture(t, service(), export(), exportWork("m1"))
	f.fail = 1
	if err := f.reconcile(); err != nil {
		if err := f.reconcile(); err != nil {
			t.Fatal(err)
		}
	}
	if !meta.IsStatusConditionTrue(f.conditions(), services.ExportValid) {
		t.Errorf("conditions %+v", f.conditions())
	}
}

func TestReconcile_Deleted(t *testing.T) {
	f := newFixture(t, service(), exportWork("m1"))
	if err := f.reconcile(); err != nil || f.writes != 0 {
		t.Errorf("%d writes, %v", f.writes, err)
	}
}

package multiclusterservice

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/record"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/karmada-toolkit/karmada/internal/controllers"
	"github.com/karmada-toolkit/karmada/internal/events"
	"github.com/karmada-toolkit/karmada/internal/kube"
	"github.com/karmada-toolkit/karmada/internal/status"
	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
	networkingv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/networking/v1alpha1"
	workv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha1"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/templates"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/works"
	"github.com/karmada-toolkit/karmada/pkg/domain/services"
)

func web() types.NamespacedName { return types.NamespacedName{Namespace: "default", Name: "web"} }

// store reads templates from a client.
type store struct {
	templates.Reader
	client client.Reader
}

func (s store) Get(ctx context.Context, gvk schema.GroupVersionKind, namespace, name string) (*unstructured.Unstructured, error) {
	obj := &unstructured.Unstructured{}
	obj.SetGroupVersionKind(gvk)
	return obj, s.client.Get(ctx, types.NamespacedName{Namespace: namespace, Name: name}, obj)
}

// fixture is a reconciler of a Service that m1 provides and m2 consumes.
type fixture struct {
	*reconciler
	writes []string
	// conflict is the write that fails with a conflict the next time.
	conflict string
}

func (f *fixture) write(verb string, obj client.Object) error {
	_, kind, _ := strings.Cut(fmt.Sprintf("%T", obj), ".")
	write := verb + " " + kind
	f.writes = append(f.writes, write)
	if write == f.conflict {
		f.conflict = ""
		return apierrors.NewConflict(schema.GroupResource{Resource: "objects"}, obj.GetName(), nil)
	}
	return nil
}

func newFixture() *fixture {
	mcs := &networkingv1alpha1.MultiClusterService{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web", Labels: map[string]string{networkingv1alpha1.MultiClusterServicePermanentIDLabel: "id"}},
		Spec: networkingv1alpha1.MultiClusterServiceSpec{
			Types:            []networkingv1alpha1.ExposureType{networkingv1alpha1.ExposureTypeCrossCluster},
			ProviderClusters: []networkingv1alpha1.ClusterSelector{{Name: "m1"}}, ConsumerClusters: []networkingv1alpha1.ClusterSelector{{Name: "m2"}},
		},
	}
	objects := []client.Object{mcs, &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web", UID: "u"}}}
	for _, name := range []string{"m1", "m2"} {
		c := &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: name}}
		c.Status.Conditions = []metav1.Condition{{Type: clusterv1alpha1.ClusterConditionReady, Status: metav1.ConditionTrue}}
		objects = append(objects, c)
	}
	f := &fixture{}
	c := fake.NewClientBuilder().WithScheme(kube.NewScheme()).WithObjects(objects...).WithStatusSubresource(mcs).
		WithIndex(&workv1alpha1.Work{}, serviceIndex, controllers.IndexKey(serviceOf)).
		WithInterceptorFuncs(interceptor.Funcs{
			Create: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.CreateOption) error {
				if err := f.write("create", obj); err != nil {
					return err
				}
				return c.Create(ctx, obj, opts...)
			},
			Patch: func(ctx context.Context, c client.WithWatch, obj client.Object, patch client.Patch, opts ...client.PatchOption) error {
				if err := f.write("patch", obj); err != nil {
					return err
				}
				return c.Patch(ctx, obj, patch, opts...)
			},
			SubResourcePatch: func(ctx context.Context, c client.Client, sub string, obj client.Object, patch client.Patch, opts ...client.SubResourcePatchOption) error {
				if err := f.write(sub, obj); err != nil {
					return err
				}
				return c.SubResource(sub).Patch(ctx, obj, patch, opts...)
			},
		}).Build()
	f.reconciler = &reconciler{
		client: c, live: c, store: store{client: c}, works: works.NewWriter(c, c), events: events.New(record.NewFakeRecorder(100)),
		propagated: status.NewMemory[types.NamespacedName, version](remembered),
		conditions: status.For(c, c, clocktesting.NewFakeClock(time.Unix(1000, 0)),
			func(m *networkingv1alpha1.MultiClusterService) *corev1.ServiceStatus { return &m.Status }, "conditions"),
	}
	return f
}

// reconcile returns the writes of a pass.
func (f *fixture) reconcile(ctx context.Context) (string, error) {
	f.writes = nil
	_, err := f.Reconcile(ctx, reconcile.Request{NamespacedName: web()})
	return strings.Join(f.writes, ", "), err
}

func TestReconcile_WritesOnceAndRetriesConflicts(t *testing.T) {
	const objects, condition = "patch MultiClusterService, create Work, patch Service, create ResourceBinding", "status MultiClusterService"
	for name, tc := range map[string]struct {
		conflict string
		// want are the writes of the first pass, which fails if it is to be repeated, again those of the next one, and later
		// those of the third, to which the Service may have changed.
		want, again, later string
		fails              bool
	}{
		"no conflict":               {want: objects + ", " + condition},
		"conflict of the finalizer": {conflict: "patch MultiClusterService", want: "patch MultiClusterService", fails: true, again: objects + ", " + condition},
		"conflict of the Work":      {conflict: "create Work", want: objects, fails: true, again: "create Work, " + condition},
		"conflict of the Service":   {conflict: "patch Service", want: objects, fails: true, again: "patch Service, " + condition, later: "patch ResourceBinding"},
		"conflict of the binding":   {conflict: "create ResourceBinding", want: objects, fails: true, again: "create ResourceBinding, " + condition},
		"conflict of the status":    {conflict: condition, want: objects + ", " + condition + ", " + condition},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture()
			f.conflict = tc.conflict
			if got, err := f.reconcile(t.Context()); got != tc.want || apierrors.IsConflict(err) != tc.fails || (err != nil) != tc.fails {
				t.Errorf("wrote %s, want %s; error %v, want one: %t", got, tc.want, err, tc.fails)
			}
			for _, want := range []string{tc.again, tc.later} {
				if got, err := f.reconcile(t.Context()); got != want || err != nil {
					t.Errorf("wrote %q in a later pass, want %q: %v", got, want, err)
				}
			}
			if got, err := f.reconcile(t.Context()); got != "" || err != nil {
				t.Errorf("nothing changed, still wrote %s: %v", got, err)
			}
			mcs := &networkingv1alpha1.MultiClusterService{}
			if err := f.client.Get(t.Context(), web(), mcs); err != nil || !meta.IsStatusConditionTrue(mcs.Status.Conditions, services.ServiceApplied) {
				t.Errorf("conditions %+v, %v", mcs.Status.Conditions, err)
			}
		})
	}
}

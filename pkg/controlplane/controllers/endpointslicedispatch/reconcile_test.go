package endpointslicedispatch

import (
	"context"
	"fmt"
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
	"github.com/karmada-toolkit/karmada/pkg/controlplane/works"
	"github.com/karmada-toolkit/karmada/pkg/domain/services"
)

func web() types.NamespacedName { return types.NamespacedName{Namespace: "default", Name: "web"} }

// fixture is a reconciler of a slice that was collected in m1, for the consumers m1 to m3.
type fixture struct {
	*reconciler
	collected types.NamespacedName
	writes    []string
	// conflict is the write that fails with a conflict the next time.
	conflict string
}

func (f *fixture) write(verb string, obj client.Object) error {
	write := verb + " " + obj.GetNamespace()
	f.writes = append(f.writes, write)
	if write == f.conflict {
		f.conflict = ""
		return apierrors.NewConflict(schema.GroupResource{Resource: "objects"}, obj.GetName(), nil)
	}
	return nil
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	mcs := &networkingv1alpha1.MultiClusterService{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web", Labels: map[string]string{networkingv1alpha1.MultiClusterServicePermanentIDLabel: "id"}},
		Spec:       networkingv1alpha1.MultiClusterServiceSpec{Types: []networkingv1alpha1.ExposureType{networkingv1alpha1.ExposureTypeCrossCluster}},
	}
	objects, clusters := []client.Object{mcs}, services.Clusters{}
	for _, name := range []string{"m1", "m2", "m3"} {
		c := &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: name}}
		c.Status.Conditions = []metav1.Condition{{Type: clusterv1alpha1.ClusterConditionReady, Status: metav1.ConditionTrue}}
		clusters[name] = c
		objects = append(objects, c)
	}
	v, err := services.Decide(services.Facts{MCS: mcs, Clusters: clusters})
	if err != nil {
		t.Fatal(err)
	}
	for _, marker := range v.Write {
		objects = append(objects, marker)
	}
	slice := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice", "addressType": "IPv4"}}
	slice.SetNamespace("default")
	slice.SetName("web-a")
	slice.SetLabels(map[string]string{"kubernetes.io/service-name": "web"})
	f := &fixture{collected: types.NamespacedName{Namespace: "karmada-es-m1", Name: services.WorkNames("m1", types.NamespacedName{Namespace: "default", Name: "web-a"})[0]}}
	work, err := services.Collect(f.collected, slice, services.MCS, web(), nil)
	if err != nil {
		t.Fatal(err)
	}
	c := fake.NewClientBuilder().WithScheme(kube.NewScheme()).WithObjects(append(objects, work)...).
		WithStatusSubresource(mcs).
		WithIndex(work, serviceIndex, controllers.IndexKey(serviceOf)).WithIndex(work, sourceIndex, controllers.IndexKey(sourceOf)).
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
		enabled: true, client: c, lookup: lookup{c}, works: works.NewWriter(c, c), events: events.New(record.NewFakeRecorder(100)), results: newResults(),
		conditions: status.For(c, c, clocktesting.NewFakeClock(time.Unix(1000, 0)),
			func(m *networkingv1alpha1.MultiClusterService) *corev1.ServiceStatus { return &m.Status }, "conditions"),
	}
	return f
}

// reconcile returns the writes of a pass.
func (f *fixture) reconcile(ctx context.Context) (string, error) {
	f.writes = nil
	_, err := f.Reconcile(ctx, reconcile.Request{NamespacedName: f.collected})
	return fmt.Sprint(f.writes), err
}

func TestReconcile_WritesOnceAndRetriesConflicts(t *testing.T) {
	const all = "[create karmada-es-m2 create karmada-es-m3 status default]"
	for name, tc := range map[string]struct {
		// change changes a Work after a first pass.
		change   string
		conflict string
		// want are the writes of a pass, which fails if it is to be repeated, and again those of the next one.
		want, again string
		fails       bool
	}{
		"no conflict":                 {want: all, again: "[]"},
		"conflict of the first Work":  {conflict: "create karmada-es-m2", want: all, fails: true, again: "[create karmada-es-m2 status default]"},
		"conflict of the second Work": {conflict: "create karmada-es-m3", want: all, fails: true, again: "[create karmada-es-m3 status default]"},
		"conflict of the status":      {conflict: "status default", want: "[create karmada-es-m2 create karmada-es-m3 status default status default]", again: "[]"},
		"conflict of a Work that changed": {
			change: "karmada-es-m3", conflict: "patch karmada-es-m3", want: "[patch karmada-es-m3 status default]", fails: true, again: "[patch karmada-es-m3 status default]",
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			if tc.change != "" {
				if _, err := f.reconcile(t.Context()); err != nil {
					t.Fatal(err)
				}
				changed := &workv1alpha1.Work{}
				if err := f.client.Get(t.Context(), types.NamespacedName{Namespace: tc.change, Name: f.collected.Name}, changed); err != nil {
					t.Fatal(err)
				}
				changed.Spec.SuspendDispatching = new(true)
				if err := f.client.Update(t.Context(), changed); err != nil {
					t.Fatal(err)
				}
			}
			f.conflict = tc.conflict
			if got, err := f.reconcile(t.Context()); got != tc.want || apierrors.IsConflict(err) != tc.fails || (err != nil) != tc.fails {
				t.Errorf("wrote %s, want %s; error %v, want one: %t", got, tc.want, err, tc.fails)
			}
			if got, err := f.reconcile(t.Context()); got != tc.again || err != nil {
				t.Errorf("wrote %s in the next pass, want %s: %v", got, tc.again, err)
			}
			if got, err := f.reconcile(t.Context()); got != "[]" || err != nil {
				t.Errorf("nothing changed, still wrote %s: %v", got, err)
			}
			mcs := &networkingv1alpha1.MultiClusterService{}
			if err := f.client.Get(t.Context(), web(), mcs); err != nil || !meta.IsStatusConditionTrue(mcs.Status.Conditions, services.SlicesDispatched) {
				t.Errorf("conditions %+v, %v", mcs.Status.Conditions, err)
			}
		})
	}
}

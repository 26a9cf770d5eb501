package endpointslicedispatch

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/karmada-toolkit/karmada/internal/build"
	"github.com/karmada-toolkit/karmada/internal/controllers"
	"github.com/karmada-toolkit/karmada/internal/events"
	"github.com/karmada-toolkit/karmada/internal/status"
	"github.com/karmada-toolkit/karmada/internal/testenv/memory"
	networkingv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/networking/v1alpha1"
	workv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha1"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/works"
	"github.com/karmada-toolkit/karmada/pkg/domain/services"
)

func web() types.NamespacedName { return types.NamespacedName{Namespace: "default", Name: "web"} }

// fixture is a reconciler of a slice that was collected in m1, for the consumers m1 to m3.
type fixture struct {
	*memory.Env
	*reconciler
	collected types.NamespacedName
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	mcs := &networkingv1alpha1.MultiClusterService{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web", Labels: map[string]string{networkingv1alpha1.MultiClusterServicePermanentIDLabel: "id"}},
		Spec:       networkingv1alpha1.MultiClusterServiceSpec{Types: []networkingv1alpha1.ExposureType{networkingv1alpha1.ExposureTypeCrossCluster}},
	}
	objects, clusters := []client.Object{mcs}, services.Clusters{}
	for _, name := range []string{"m1", "m2", "m3"} {
		clusters[name] = build.Cluster(name, build.Ready(metav1.ConditionTrue))
		objects = append(objects, clusters[name])
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
	f.Env = memory.New(t, append(objects, work)...)
	f.Index(work, serviceIndex, controllers.IndexKey(serviceOf))
	f.Index(work, sourceIndex, controllers.IndexKey(sourceOf))
	c := f.Client
	f.reconciler = &reconciler{
		enabled: true, client: c, lookup: lookup{c}, works: works.NewWriter(c, c), events: events.New(f.Recorder), results: newResults(),
		conditions: status.For(c, c, f.Clock, func(m *networkingv1alpha1.MultiClusterService) *corev1.ServiceStatus { return &m.Status }, "conditions"),
	}
	return f
}

// reconcile returns the writes of a pass, without the name of the Work.
func (f *fixture) reconcile() (string, error) {
	_, err := f.Reconcile(f.Context(), reconcile.Request{NamespacedName: f.collected})
	return strings.ReplaceAll(fmt.Sprint(f.Writes()), "/"+f.collected.Name, ""), err
}

func TestReconcile_WritesOnceAndRetriesConflicts(t *testing.T) {
	const all = "[create Work karmada-es-m2 create Work karmada-es-m3 status MultiClusterService default/web]"
	for name, tc := range map[string]struct {
		// change changes a Work after a first pass.
		change   string
		conflict string
		// want are the writes of a pass, which fails if it is to be repeated, and again those of the next one.
		want, again string
		fails       bool
	}{
		"no conflict":                 {want: all, again: "[]"},
		"conflict of the first Work":  {conflict: "create Work karmada-es-m2", want: all, fails: true, again: "[create Work karmada-es-m2 status MultiClusterService default/web]"},
		"conflict of the second Work": {conflict: "create Work karmada-es-m3", want: all, fails: true, again: "[create Work karmada-es-m3 status MultiClusterService default/web]"},
		"conflict of the status":      {conflict: "status MultiClusterService default/web", want: "[create Work karmada-es-m2 create Work karmada-es-m3 status MultiClusterService default/web status MultiClusterService default/web]", again: "[]"},
		"conflict of a Work that changed": {
			change: "karmada-es-m3", conflict: "patch Work karmada-es-m3", want: "[patch Work karmada-es-m3 status MultiClusterService default/web]", fails: true, again: "[patch Work karmada-es-m3 status MultiClusterService default/web]",
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			if tc.change != "" {
				if _, err := f.reconcile(); err != nil {
					t.Fatal(err)
				}
				memory.Change(f.Env, memory.Key(tc.change, f.collected.Name), func(w *workv1alpha1.Work) { w.Spec.SuspendDispatching = new(true) })
			}
			if tc.conflict != "" {
				f.FailOnce(tc.conflict, apierrors.NewConflict(schema.GroupResource{Resource: "objects"}, "web", nil))
			}
			if got, err := f.reconcile(); got != tc.want || apierrors.IsConflict(err) != tc.fails || (err != nil) != tc.fails {
				t.Errorf("wrote %s, want %s; error %v, want one: %t", got, tc.want, err, tc.fails)
			}
			if got, err := f.reconcile(); got != tc.again || err != nil {
				t.Errorf("wrote %s in the next pass, want %s: %v", got, tc.again, err)
			}
			f.Stable(func() { f.MustReconcile(f, f.collected) })
			mcs := memory.Get[*networkingv1alpha1.MultiClusterService](f.Env, web())
			if !meta.IsStatusConditionTrue(mcs.Status.Conditions, services.SlicesDispatched) {
				t.Errorf("conditions %+v", mcs.Status.Conditions)
			}
		})
	}
}

package multiclusterservice

import (
	"context"
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
	*memory.Env
	*reconciler
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	mcs := &networkingv1alpha1.MultiClusterService{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web", Labels: map[string]string{networkingv1alpha1.MultiClusterServicePermanentIDLabel: "id"}},
		Spec: networkingv1alpha1.MultiClusterServiceSpec{
			Types:            []networkingv1alpha1.ExposureType{networkingv1alpha1.ExposureTypeCrossCluster},
			ProviderClusters: []networkingv1alpha1.ClusterSelector{{Name: "m1"}}, ConsumerClusters: []networkingv1alpha1.ClusterSelector{{Name: "m2"}},
		},
	}
	objects := []client.Object{mcs, &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web", UID: "u"}}}
	for _, name := range []string{"m1", "m2"} {
		objects = append(objects, build.Cluster(name, build.Ready(metav1.ConditionTrue)))
	}
	m := memory.New(t, objects...)
	m.Index(&workv1alpha1.Work{}, serviceIndex, controllers.IndexKey(serviceOf))
	c := m.Client
	return &fixture{m, &reconciler{
		client: c, live: c, store: store{client: c}, works: works.NewWriter(c, c), events: events.New(m.Recorder),
		propagated: status.NewMemory[types.NamespacedName, version](remembered),
		conditions: status.For(c, c, m.Clock, func(m *networkingv1alpha1.MultiClusterService) *corev1.ServiceStatus { return &m.Status }, "conditions"),
	}}
}

// reconcile returns the writes of a pass, without the names of the objects.
func (f *fixture) reconcile() (string, error) {
	_, err := f.Reconcile(f.Context(), reconcile.Request{NamespacedName: web()})
	writes := f.Writes()
	for i, write := range writes {
		writes[i] = write[:strings.LastIndex(write, " ")]
	}
	return strings.Join(writes, ", "), err
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
			f := newFixture(t)
			if tc.conflict != "" {
				f.FailOnce(tc.conflict, apierrors.NewConflict(schema.GroupResource{Resource: "objects"}, "web", nil))
			}
			if got, err := f.reconcile(); got != tc.want || apierrors.IsConflict(err) != tc.fails || (err != nil) != tc.fails {
				t.Errorf("wrote %s, want %s; error %v, want one: %t", got, tc.want, err, tc.fails)
			}
			for _, want := range []string{tc.again, tc.later} {
				if got, err := f.reconcile(); got != want || err != nil {
					t.Errorf("wrote %q in a later pass, want %q: %v", got, want, err)
				}
			}
			f.Stable(func() { f.MustReconcile(f, web()) })
			mcs := memory.Get[*networkingv1alpha1.MultiClusterService](f.Env, web())
			if !meta.IsStatusConditionTrue(mcs.Status.Conditions, services.ServiceApplied) {
				t.Errorf("conditions %+v", mcs.Status.Conditions)
			}
		})
	}
}

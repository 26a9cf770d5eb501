package binding

import (
	"context"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/record"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/karmada-toolkit/karmada/internal/build"
	"github.com/karmada-toolkit/karmada/internal/controllers"
	"github.com/karmada-toolkit/karmada/internal/events"
	"github.com/karmada-toolkit/karmada/internal/kube"
	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
	policyv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/policy/v1alpha1"
	workv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha1"
	workv1alpha2 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha2"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/env"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/templates/templatestest"
	"github.com/karmada-toolkit/karmada/pkg/domain/interpreter"
	"github.com/karmada-toolkit/karmada/pkg/domain/scope"
)

// harness runs the reconciler by hand on a control plane in memory.
type harness struct {
	*testing.T
	client   client.WithWatch
	r        *reconciler
	events   chan string
	recorder *events.Recorder
	key      types.NamespacedName

	mu     sync.Mutex
	writes []string
}

func (h *harness) wrote(what string, obj client.Object) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.writes = append(h.writes, what+" "+obj.GetNamespace()+"/"+obj.GetName())
}

// taken returns the writes since the last call, sorted.
func (h *harness) taken() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	out := h.writes
	h.writes = nil
	slices.Sort(out)
	return out
}

func newHarness(t *testing.T, template *unstructured.Unstructured, b workv1alpha2.Binding, stored ...client.Object) *harness {
	t.Helper()
	h := &harness{T: t, key: client.ObjectKeyFromObject(b)}
	stored = append(stored, b)
	for _, name := range []string{"m1", "m2", "m3"} {
		stored = append(stored, &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: name}})
	}
	h.client = fake.NewClientBuilder().WithScheme(kube.NewScheme()).WithObjects(stored...).
		WithStatusSubresource(&workv1alpha2.ResourceBinding{}, &workv1alpha2.ClusterResourceBinding{}).
		WithIndex(&workv1alpha1.Work{}, workIndex, workKeys).WithIndex(&workv1alpha1.Work{}, nameIndex, nameKeys).
		WithIndex(&workv1alpha2.ResourceBinding{}, kindIndex, controllers.Index(kindKeys)).
		WithIndex(&workv1alpha2.ClusterResourceBinding{}, kindIndex, controllers.Index(kindKeys)).
		WithIndex(&workv1alpha2.ResourceBinding{}, clusterIndex, controllers.Index(clusterKeys)).
		WithIndex(&workv1alpha2.ClusterResourceBinding{}, clusterIndex, controllers.Index(clusterKeys)).
		WithInterceptorFuncs(interceptor.Funcs{
			Create: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.CreateOption) error {
				h.wrote("create", obj)
				return c.Create(ctx, obj, opts...)
			},
			Patch: func(ctx context.Context, c client.WithWatch, obj client.Object, p client.Patch, opts ...client.PatchOption) error {
				h.wrote("patch", obj)
				return c.Patch(ctx, obj, p, opts...)
			},
			Delete: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.DeleteOption) error {
				h.wrote("delete", obj)
				return c.Delete(ctx, obj, opts...)
			},
		}).Build()
	recorder := record.NewFakeRecorder(100)
	h.events, h.recorder = recorder.Events, events.New(recorder)
	var objs []*unstructured.Unstructured
	if template != nil {
		objs = append(objs, template)
	}
	h.r = newReconciler(&env.Env{
		Client: h.client, Live: h.client, Clock: clock.RealClock{}, Metrics: prometheus.NewRegistry(), Store: templatestest.New(t, objs).Store, Interpreter: interpreter.New(),
	}, scope.BindingIn(b.GetNamespace()), recorders{bindings: h.recorder, overrides: events.New(recorder)})
	return h
}

// mapper returns the mapper of the scope of the reconciler.
func (h *harness) mapper() *mapper { return &mapper{scope: h.r.scope, client: h.client} }

// setTemplates replaces the templates in the control plane.
func (h *harness) setTemplates(objs ...*unstructured.Unstructured) {
	h.Helper()
	store := templatestest.New(h.T, objs).Store
	h.r.store, h.r.guard.store, h.r.keeper.store = store, store, store
}

func (h *harness) reconcile() (reconcile.Result, error) {
	h.Helper()
	return h.r.Reconcile(h.Context(), reconcile.Request{NamespacedName: h.key})
}

func (h *harness) mustReconcile() {
	h.Helper()
	if _, err := h.reconcile(); err != nil {
		h.Fatal(err)
	}
}

func (h *harness) change(change func(*workv1alpha2.ResourceBindingSpec)) {
	h.Helper()
	b := h.r.scope.New()
	if err := h.client.Get(h.Context(), h.key, b); err != nil {
		h.Fatal(err)
	}
	change(b.GetSpec())
	if err := h.client.Update(h.Context(), b); err != nil {
		h.Fatal(err)
	}
}

func (h *harness) work(cluster string) *workv1alpha1.Work {
	h.Helper()
	list := &workv1alpha1.WorkList{}
	if err := h.client.List(h.Context(), list, client.InNamespace("karmada-es-"+cluster)); err != nil {
		h.Fatal(err)
	}
	if len(list.Items) != 1 {
		h.Fatalf("%d works in %s", len(list.Items), cluster)
	}
	return &list.Items[0]
}

func (h *harness) clustersWithWorks() []string {
	h.Helper()
	list := &workv1alpha1.WorkList{}
	if err := h.client.List(h.Context(), list); err != nil {
		h.Fatal(err)
	}
	var out []string
	for _, w := range list.Items {
		out = append(out, strings.TrimPrefix(w.Namespace, "karmada-es-"))
	}
	return out
}

func (h *harness) published() []string {
	var out []string
	for {
		select {
		case e := <-h.events:
			out = append(out, e)
		default:
			return out
		}
	}
}

func manifestOf(t *testing.T, w *workv1alpha1.Work) *unstructured.Unstructured {
	t.Helper()
	obj := &unstructured.Unstructured{}
	if err := obj.UnmarshalJSON(w.Spec.Workload.Manifests[0].Raw); err != nil {
		t.Fatal(err)
	}
	return obj
}

func deployment() *unstructured.Unstructured {
	obj := build.Deployment("nginx", 3)
	obj.SetGeneration(4)
	obj.Object["status"] = map[string]any{"replicas": int64(3)}
	return obj
}

func targets(replicas map[string]int32) []workv1alpha2.TargetCluster {
	var out []workv1alpha2.TargetCluster
	for _, name := range []string{"m1", "m2", "m3"} {
		if n, ok := replicas[name]; ok {
			out = append(out, workv1alpha2.TargetCluster{Name: name, Replicas: n})
		}
	}
	return out
}

func resourceBinding(replicas map[string]int32) *workv1alpha2.ResourceBinding {
	return &workv1alpha2.ResourceBinding{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "default", Name: "nginx-deployment", UID: "uid-binding", Finalizers: []string{workv1alpha2.BindingControllerFinalizer},
			Labels: map[string]string{workv1alpha2.ResourceBindingPermanentIDLabel: "id-b", policyv1alpha1.PropagationPolicyPermanentIDLabel: "id-p"},
		},
		Spec: workv1alpha2.ResourceBindingSpec{
			Resource: workv1alpha2.ObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "default", Name: "nginx", UID: "uid-nginx"},
			Replicas: 3, Clusters: targets(replicas),
		},
	}
}

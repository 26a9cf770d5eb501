package binding

import (
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/karmada-toolkit/karmada/internal/build"
	"github.com/karmada-toolkit/karmada/internal/controllers"
	"github.com/karmada-toolkit/karmada/internal/events"
	"github.com/karmada-toolkit/karmada/internal/testenv/memory"
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
	*memory.Env
	r        *reconciler
	recorder *events.Recorder
	key      types.NamespacedName
}

func newHarness(t *testing.T, template *unstructured.Unstructured, b workv1alpha2.Binding, stored ...client.Object) *harness {
	t.Helper()
	stored = append(stored, b, build.Cluster("m1"), build.Cluster("m2"), build.Cluster("m3"))
	h := &harness{Env: memory.New(t, stored...), key: client.ObjectKeyFromObject(b)}
	h.Index(&workv1alpha1.Work{}, workIndex, workKeys)
	h.Index(&workv1alpha1.Work{}, nameIndex, nameKeys)
	for _, s := range scope.Bindings() {
		h.Index(s.New(), kindIndex, controllers.Index(kindKeys))
		h.Index(s.New(), clusterIndex, controllers.Index(clusterKeys))
	}
	h.recorder = events.New(h.Recorder)
	var objs []*unstructured.Unstructured
	if template != nil {
		objs = append(objs, template)
	}
	h.r = newReconciler(&env.Env{
		Client: h.Client, Live: h.Client, Clock: clock.RealClock{}, Metrics: prometheus.NewRegistry(), Store: templatestest.New(t, objs).Store, Interpreter: interpreter.New(),
	}, scope.BindingIn(b.GetNamespace()), recorders{bindings: h.recorder, overrides: events.New(h.Recorder)})
	return h
}

// mapper returns the mapper of the scope of the reconciler.
func (h *harness) mapper() *mapper { return &mapper{scope: h.r.scope, client: h.Client} }

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
	h.MustReconcile(h.r, h.key)
}

// current returns the binding.
func (h *harness) current() workv1alpha2.Binding {
	h.Helper()
	b := h.r.scope.New()
	h.Must(h.Stored.Get(h.Context(), h.key, b))
	return b
}

func (h *harness) change(change func(*workv1alpha2.ResourceBindingSpec)) {
	h.Helper()
	b := h.current()
	change(b.GetSpec())
	h.Must(h.Stored.Update(h.Context(), b))
}

func (h *harness) works() []workv1alpha1.Work {
	h.Helper()
	return memory.List[*workv1alpha1.WorkList](h.Env).Items
}

func (h *harness) work(cluster string) *workv1alpha1.Work {
	h.Helper()
	list := memory.List[*workv1alpha1.WorkList](h.Env, client.InNamespace("karmada-es-"+cluster))
	if len(list.Items) != 1 {
		h.Fatalf("%d works in %s", len(list.Items), cluster)
	}
	return &list.Items[0]
}

func (h *harness) clustersWithWorks() []string {
	h.Helper()
	var out []string
	for _, w := range h.works() {
		out = append(out, strings.TrimPrefix(w.Namespace, "karmada-es-"))
	}
	return out
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

package detector

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/karmada-toolkit/karmada/internal/build"
	"github.com/karmada-toolkit/karmada/internal/controllers"
	"github.com/karmada-toolkit/karmada/internal/events"
	"github.com/karmada-toolkit/karmada/internal/gates"
	"github.com/karmada-toolkit/karmada/internal/testenv/memory"
	policyv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/policy/v1alpha1"
	workv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha1"
	workv1alpha2 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha2"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/env"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/templates/templatestest"
	"github.com/karmada-toolkit/karmada/pkg/domain/interpreter"
	"github.com/karmada-toolkit/karmada/pkg/domain/scope"
)

// harness runs the reconcilers by hand on a control plane in memory.
type harness struct {
	*memory.Env
	cluster *templatestest.Cluster
	det     *detector
	// later holds what is enqueued after a duration.
	later map[templateKey]time.Duration
}

// preemption returns a set of the gate PropagationPolicyPreemption.
func preemption(on bool) *gates.Gates {
	set := gates.New(gates.PropagationPolicyPreemption)
	if err := set.Set(fmt.Sprintf("PropagationPolicyPreemption=%v", on)); err != nil {
		panic(err)
	}
	return set
}

func newHarness(t *testing.T, gates *gates.Gates, objs []*unstructured.Unstructured, stored ...client.Object) *harness {
	t.Helper()
	h := &harness{Env: memory.New(t, stored...), cluster: templatestest.New(t, objs)}
	for _, s := range scope.Policies() {
		h.Index(s.New(), selectorIndex, controllers.Index(selectorKeys))
		h.Index(s.New(), dependsIndex, controllers.Index(dependsKeys))
	}
	h.Index(&corev1.Event{}, "involvedObject.uid", func(obj client.Object) []string {
		return []string{string(obj.(*corev1.Event).InvolvedObject.UID)}
	})
	h.Index(&corev1.Event{}, "reason", func(obj client.Object) []string { return []string{obj.(*corev1.Event).Reason} })
	h.Index(&workv1alpha1.Work{}, workIndex, workKeys)
	h.det = newDetector(&env.Env{
		Client: h.Client, Live: h.Client, Store: h.cluster.Store, Interpreter: interpreter.New(), Gates: gates, Metrics: prometheus.NewRegistry(), Clock: h.Clock,
	}, events.New(h.Recorder))
	h.later = map[templateKey]time.Duration{}
	h.det.source.queue.start(delayed{
		workqueue.NewTypedRateLimitingQueue(controllers.RateLimiter[templateKey](controllers.Retry{})), h.later,
	})
	return h
}

// delayed is a queue that records what is enqueued after a duration.
type delayed struct {
	workQueue
	later map[templateKey]time.Duration
}

func (d delayed) AddAfter(key templateKey, after time.Duration) { d.later[key] = after }

func deployments() schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}
}

func deployment(name string, replicas int64) *unstructured.Unstructured {
	return build.Deployment(name, replicas)
}

func selects(kind, name string) policyv1alpha1.PropagationSpec {
	apiVersion := "apps/v1"
	if kind == "Namespace" {
		apiVersion = "v1"
	}
	return policyv1alpha1.PropagationSpec{
		ResourceSelectors: []policyv1alpha1.ResourceSelector{{APIVersion: apiVersion, Kind: kind, Name: name}},
		SchedulerName:     policyv1alpha1.DefaultSchedulerName,
	}
}

func pp(name string, change func(*policyv1alpha1.PropagationSpec)) *policyv1alpha1.PropagationPolicy {
	p := &policyv1alpha1.PropagationPolicy{ObjectMeta: metav1.ObjectMeta{
		Namespace: "default", Name: name, Finalizers: []string{policyv1alpha1.PropagationPolicyFinalizer},
		Labels: map[string]string{policyv1alpha1.PropagationPolicyPermanentIDLabel: "id-" + name},
	}, Spec: selects("Deployment", "")}
	if change != nil {
		change(&p.Spec)
	}
	return p
}

func cpp(name string, change func(*policyv1alpha1.PropagationSpec)) *policyv1alpha1.ClusterPropagationPolicy {
	p := &policyv1alpha1.ClusterPropagationPolicy{ObjectMeta: metav1.ObjectMeta{
		Name: name, Finalizers: []string{policyv1alpha1.ClusterPropagationPolicyFinalizer},
		Labels: map[string]string{policyv1alpha1.ClusterPropagationPolicyPermanentIDLabel: "id-" + name},
	}, Spec: selects("Deployment", "")}
	if change != nil {
		change(&p.Spec)
	}
	return p
}

// observed waits until memory holds the template as the API server does, and
// returns it.
func (h *harness) observed(name string) *unstructured.Unstructured {
	h.Helper()
	live, err := h.cluster.Dynamic.Resource(deployments()).Namespace("default").Get(h.Context(), name, metav1.GetOptions{})
	if err != nil {
		h.Fatal(err)
	}
	gvk := deployment(name, 0).GroupVersionKind()
	h.until(func() bool {
		cached := h.cluster.Store.Cached(gvk, "default", name)
		return cached != nil && equality.Semantic.DeepEqual(cached.Object, live.Object)
	})
	return live
}

func (h *harness) until(ok func() bool) {
	h.Helper()
	for deadline := time.Now().Add(2 * time.Minute); !ok(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			h.Fatal("timed out")
		}
	}
}

// edit changes a template as a user does.
func (h *harness) edit(name string, change func(*unstructured.Unstructured)) {
	h.Helper()
	obj := h.observed(name)
	change(obj)
	var version int
	if _, err := fmt.Sscan(obj.GetResourceVersion(), &version); err != nil {
		h.Fatal(err)
	}
	obj.SetResourceVersion(fmt.Sprint(version + 1))
	if _, err := h.cluster.Dynamic.Resource(deployments()).Namespace("default").Update(h.Context(), obj, metav1.UpdateOptions{}); err != nil {
		h.Fatal(err)
	}
	h.observed(name)
}

func keyFor(name string) templateKey {
	return templateKey{objectKey: keyOf(deployment(name, 0))}
}

func (h *harness) reconcile(key templateKey) error {
	h.Helper()
	_, err := h.det.templates.Reconcile(h.Context(), key)
	if _, getErr := h.cluster.Dynamic.Resource(deployments()).Namespace(key.namespace).Get(h.Context(), key.name, metav1.GetOptions{}); getErr == nil {
		h.observed(key.name)
	}
	return err
}

func (h *harness) mustReconcile(key templateKey) {
	h.Helper()
	h.Must(h.reconcile(key))
}

// policies returns the reconciler of the policies of a scope.
func (h *harness) policies(s *scope.Policy) *policyReconciler {
	return h.det.policies[slices.IndexFunc(h.det.policies, func(r *policyReconciler) bool { return r.scope.Kind == s.Kind })]
}

func (h *harness) reconcilePolicy(p policyv1alpha1.Policy) error {
	h.Helper()
	_, err := h.policies(scope.PolicyOf(p)).Reconcile(h.Context(), reconcile.Request{NamespacedName: client.ObjectKeyFromObject(p)})
	return err
}

func (h *harness) binding(name string) *workv1alpha2.ResourceBinding {
	h.Helper()
	return memory.Get[*workv1alpha2.ResourceBinding](h.Env, memory.Key("default", name))
}

func (h *harness) noBinding(name string) {
	h.Helper()
	b := &workv1alpha2.ResourceBinding{}
	if err := h.Stored.Get(h.Context(), memory.Key("default", name), b); client.IgnoreNotFound(err) != nil || err == nil {
		h.Errorf("binding %s: got error %v", name, err)
	}
}

// queued returns the keys that were enqueued.
func (h *harness) queued() []templateKey {
	var out []templateKey
	for h.det.source.queue.inner.Len() > 0 {
		key, _ := h.det.source.queue.inner.Get()
		h.det.source.queue.inner.Done(key)
		out = append(out, key)
	}
	return out
}

// wrote returns the writes since the last call: claims first.
func (h *harness) wrote() []string {
	var out []string
	for _, action := range h.cluster.Dynamic.Actions() {
		switch action.GetVerb() {
		case "patch", "create":
			out = append(out, "claim")
		}
	}
	h.cluster.Dynamic.ClearActions()
	return append(out, h.Writes()...)
}

// stable fails the test if another reconciliation of the template nginx writes or records an event.
func (h *harness) stable() {
	h.Helper()
	h.wrote()
	h.Stable(func() { h.mustReconcile(keyFor("nginx")) })
	if got := h.wrote(); got != nil {
		h.Errorf("writes %v", got)
	}
}

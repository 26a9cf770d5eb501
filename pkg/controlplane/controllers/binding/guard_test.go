package binding

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	configv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/config/v1alpha1"
	"github.com/karmada-toolkit/karmada/pkg/apis/names"
	policyv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/policy/v1alpha1"
	workv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha1"
	workv1alpha2 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha2"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/delivery"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/env"
	"github.com/karmada-toolkit/karmada/pkg/domain/propagation"
)

// workOf returns a Work of a binding, as the controller writes it.
func workOf(namespace, name, id, bindingNamespace, bindingName string, manifest *unstructured.Unstructured) *workv1alpha1.Work {
	w := &workv1alpha1.Work{ObjectMeta: metav1.ObjectMeta{
		Namespace: namespace, Name: name, Labels: map[string]string{workv1alpha2.ResourceBindingPermanentIDLabel: id},
		Annotations: map[string]string{
			workv1alpha2.ResourceBindingNamespaceAnnotation: bindingNamespace, workv1alpha2.ResourceBindingNameAnnotation: bindingName,
		},
	}}
	data, err := json.Marshal(manifest.Object)
	if err != nil {
		panic(err)
	}
	w.Spec.Workload.Manifests = []workv1alpha1.Manifest{{RawExtension: runtime.RawExtension{Raw: data}}}
	return w
}

// clustersThatKeepWorks returns the clusters with Works that are not being deleted.
func (h *harness) clustersThatKeepWorks() []string {
	h.Helper()
	var out []string
	for _, w := range h.works() {
		if w.DeletionTimestamp == nil {
			out = append(out, strings.TrimPrefix(w.Namespace, "karmada-es-"))
		}
	}
	slices.Sort(out)
	return out
}

func (h *harness) deliverable() *metav1.Condition {
	h.Helper()
	return meta.FindStatusCondition(h.current().GetStatus().Conditions, workv1alpha2.Deliverable)
}

func TestReconcile_RefusesForeignTemplates(t *testing.T) {
	for name, tc := range map[string]struct {
		template *unstructured.Unstructured
		change   func(*workv1alpha2.ObjectReference)
		reason   string
	}{
		"of another namespace": {deployment(), func(ref *workv1alpha2.ObjectReference) { ref.Namespace = "other" }, delivery.ReasonForeignNamespace},
		"a Secret of a member": {nil, func(ref *workv1alpha2.ObjectReference) {
			*ref = workv1alpha2.ObjectReference{APIVersion: "v1", Kind: "Secret", Namespace: "karmada-cluster", Name: "m1"}
		}, delivery.ReasonForeignNamespace},
		"without a namespace": {deployment(), func(ref *workv1alpha2.ObjectReference) { ref.Namespace = "" }, delivery.ReasonWrongScope},
		"cluster-scoped": {nil, func(ref *workv1alpha2.ObjectReference) {
			*ref = workv1alpha2.ObjectReference{APIVersion: "rbac.authorization.k8s.io/v1", Kind: "ClusterRole", Name: "cluster-admin"}
		}, delivery.ReasonWrongScope},
		"of a reserved API": {nil, func(ref *workv1alpha2.ObjectReference) {
			*ref = workv1alpha2.ObjectReference{APIVersion: "policy.karmada.io/v1alpha1", Kind: "PropagationPolicy", Namespace: "default", Name: "p"}
		}, delivery.ReasonReservedAPI},
		"nothing": {nil, func(ref *workv1alpha2.ObjectReference) { *ref = workv1alpha2.ObjectReference{} }, delivery.ReasonWrongScope},
	} {
		t.Run(name, func(t *testing.T) {
			b := resourceBinding(map[string]int32{"m1": 1})
			tc.change(&b.Spec.Resource)
			ref := b.Spec.Resource
			if tc.template != nil {
				tc.template.SetNamespace(ref.Namespace)
			}
			// Works of it are there from before it was refused.
			h := newHarness(t, tc.template, b,
				workOf("karmada-es-m1", names.Work(ref.Kind, ref.Name, ref.Namespace), "id-b", "default", "nginx-deployment", deployment()))
			h.mustReconcile()
			if got := h.clustersWithWorks(); len(got) > 0 {
				t.Errorf("works in %v", got)
			}
			condition := h.deliverable()
			if condition == nil || condition.Status != metav1.ConditionFalse || condition.Reason != tc.reason || condition.Message == "" {
				t.Errorf("condition %+v", condition)
			}
			if got := h.Events(); len(got) != 1 || !strings.Contains(got[0], ReasonNotDeliverable) {
				t.Errorf("events %q", got)
			}
			h.Stable(h.mustReconcile)
			// It delivers when it refers to what it may deliver.
			h.setTemplates(deployment())
			h.change(func(spec *workv1alpha2.ResourceBindingSpec) {
				spec.Resource = resourceBinding(nil).Spec.Resource
			})
			h.mustReconcile()
			if condition := h.deliverable(); condition != nil {
				t.Errorf("condition %+v", condition)
			}
			h.work("m1")
		})
	}
}

// Ids are labels: a binding that takes another one's id gets none of its Works.
// A webhook configuration that a policy claims, but that cannot be deactivated in the control plane, is not delivered; its condition
// has the reason. One that nobody claims acts there as its author wants.
func TestReconcile_RefusesWhatCannotBeDeactivated(t *testing.T) {
	var conditions []any
	for i := range 64 {
		conditions = append(conditions, map[string]any{"name": fmt.Sprint(i), "expression": "true"})
	}
	template := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration", "metadata": map[string]any{"name": "a", "uid": "uid-a"},
		"webhooks": []any{map[string]any{"name": "hook", "matchConditions": conditions}},
	}}
	claimed := template.DeepCopy()
	claimed.SetLabels(map[string]string{policyv1alpha1.ClusterPropagationPolicyPermanentIDLabel: "id"})
	claimed.SetAnnotations(map[string]string{policyv1alpha1.ClusterPropagationPolicyAnnotation: "p"})
	b := &workv1alpha2.ClusterResourceBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "a-validatingwebhookconfiguration", Labels: map[string]string{workv1alpha2.ClusterResourceBindingPermanentIDLabel: "id-b"}},
		Spec: workv1alpha2.ResourceBindingSpec{
			Resource: workv1alpha2.ObjectReference{APIVersion: template.GetAPIVersion(), Kind: template.GetKind(), Name: "a"}, Clusters: targets(map[string]int32{"m1": 0}),
		},
	}
	h := newHarness(t, claimed, b)
	h.mustReconcile()
	if condition := h.deliverable(); condition == nil || condition.Reason != delivery.ReasonActsInControlPlane || !strings.Contains(condition.Message, "64 match conditions") || len(h.clustersWithWorks()) > 0 {
		t.Errorf("condition %+v, works in %v", condition, h.clustersWithWorks())
	}
	h.setTemplates(template)
	h.mustReconcile()
	if condition := h.deliverable(); condition != nil || len(h.clustersWithWorks()) != 1 {
		t.Errorf("condition %+v, works in %v", condition, h.clustersWithWorks())
	}
}

func TestReconcile_WorksOfAnotherBindingStay(t *testing.T) {
	other := deployment()
	other.SetNamespace("other")
	theirs := workOf("karmada-es-m2", "theirs", "id-b", "other", "nginx-deployment", other)
	clusterWide := workOf("karmada-es-m3", "wide", "id-b", "", "", other)
	clusterWide.Annotations = map[string]string{workv1alpha2.ClusterResourceBindingAnnotation: "x-clusterrole"}
	h := newHarness(t, deployment(), resourceBinding(map[string]int32{"m1": 1}), theirs, clusterWide)
	h.mustReconcile()
	h.Must(h.Stored.Delete(t.Context(), h.current()))
	h.mustReconcile()
	if diff := cmp.Diff([]string{"m2", "m3"}, h.clustersThatKeepWorks()); diff != "" {
		t.Error(diff)
	}
}

func TestReconcile_HoldsBindingsMadeByHand(t *testing.T) {
	b := resourceBinding(map[string]int32{"m1": 1})
	b.Finalizers = []string{"example.io/theirs"}
	h := newHarness(t, deployment(), b)
	h.mustReconcile()
	stored := h.current()
	if diff := cmp.Diff([]string{"example.io/theirs", workv1alpha2.BindingControllerFinalizer}, stored.GetFinalizers()); diff != "" {
		t.Error(diff)
	}
	h.Must(h.Stored.Delete(t.Context(), stored))
	h.mustReconcile()
	if got := h.clustersThatKeepWorks(); len(got) > 0 {
		t.Errorf("works in %v", got)
	}
}

func replacing(cluster, path, value string) *policyv1alpha1.OverridePolicy {
	p := &policyv1alpha1.OverridePolicy{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "p"}}
	rule := policyv1alpha1.RuleWithCluster{TargetCluster: &policyv1alpha1.ClusterAffinity{ClusterNames: []string{cluster}}}
	rule.Overriders.Plaintext = []policyv1alpha1.PlaintextOverrider{{Path: path, Operator: policyv1alpha1.OverriderOpReplace}}
	rule.Overriders.Plaintext[0].Value.Raw = []byte(value)
	p.Spec.OverrideRules = []policyv1alpha1.RuleWithCluster{rule}
	return p
}

// Policies of a namespace override what users have in it, and nothing that the federation made or propagates itself.
func TestReconcile_NamespacedOverridesAreForTemplatesOfUsers(t *testing.T) {
	for name, tc := range map[string]struct {
		kind, template string
		annotations    map[string]string
		managedBy      string
		overridden     bool
	}{
		"a template of a user":                       {kind: "Service", template: "web", overridden: true},
		"the Service of a MultiClusterService":       {kind: "Service", template: "web", managedBy: "MultiClusterService"},
		"a Service that is derived":                  {kind: "Service", template: "derived-web", annotations: map[string]string{"multicluster.kubernetes.io/service-name": "web"}},
		"a Service with the mark under another name": {kind: "Service", template: "web", annotations: map[string]string{"multicluster.kubernetes.io/service-name": "web"}, overridden: true},
		"a template that the federation propagates":  {kind: "ConfigMap", template: "web", managedBy: "MultiClusterService"},
		"another kind with the mark":                 {kind: "ConfigMap", template: "derived-web", annotations: map[string]string{"multicluster.kubernetes.io/service-name": "web"}, overridden: true},
	} {
		t.Run(name, func(t *testing.T) {
			template := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": tc.kind, "value": "a"}}
			template.SetNamespace("default")
			template.SetName(tc.template)
			template.SetUID("uid")
			template.SetAnnotations(tc.annotations)
			b := resourceBinding(map[string]int32{"m1": 0})
			b.Spec.Replicas = 0
			b.Spec.Resource = workv1alpha2.ObjectReference{APIVersion: "v1", Kind: tc.kind, Namespace: "default", Name: tc.template, UID: "uid"}
			if tc.managedBy != "" {
				b.Labels["binding.karmada.io/managed-by"] = tc.managedBy
			}
			if got := propagation.OverridingNamespace(b, template); (got == "default") != tc.overridden {
				t.Errorf("policies of namespace %q apply", got)
			}
			if tc.kind != "ConfigMap" {
				return // the harness serves no others
			}
			wide := &policyv1alpha1.ClusterOverridePolicy{ObjectMeta: metav1.ObjectMeta{Name: "p"}, Spec: *replacing("m1", "/value", `"b"`).Spec.DeepCopy()}
			h := newHarness(t, template, b, replacing("m1", "/value", `"c"`), wide)
			h.mustReconcile()
			want := "b"
			if tc.overridden {
				want = "c"
			}
			if got := manifestOf(t, h.work("m1")).Object["value"]; got != want {
				t.Errorf("got %v, want %v", got, want)
			}
		})
	}
}

func TestReconcile_OverridesOfTheIdentityStopAtOnce(t *testing.T) {
	// Works as an earlier version wrote them.
	admin := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding", "metadata": map[string]any{"name": "owned"},
	}}
	sameName := deployment()
	sameName.SetAPIVersion("example.io/v1")
	h := newHarness(t, deployment(), resourceBinding(map[string]int32{"m1": 1, "m2": 1}), replacing("m1", "/apiVersion", `"example.io/v1"`),
		workOf("karmada-es-m1", names.Work("ClusterRoleBinding", "owned", ""), "id-b", "default", "nginx-deployment", admin),
		workOf("karmada-es-m1", names.Work("Deployment", "nginx", "default"), "id-b", "default", "nginx-deployment", sameName))
	if _, err := h.reconcile(); err == nil {
		t.Error("no error")
	}
	if diff := cmp.Diff([]string{"m2"}, h.clustersWithWorks()); diff != "" {
		t.Error(diff)
	}
	condition := h.deliverable()
	if condition == nil || condition.Reason != delivery.ReasonOverrideForbidden || !strings.Contains(condition.Message, "override policy(default/p) for cluster(m1)") {
		t.Errorf("condition %+v", condition)
	}
	h.Must(h.Stored.Delete(t.Context(), replacing("m1", "", "")))
	h.mustReconcile()
	if condition := h.deliverable(); condition != nil {
		t.Errorf("condition %+v", condition)
	}
	h.work("m1")
}

// naming is an interpreter with the dependencies of a Deployment.
type naming struct {
	env.Interpreter
	deps []configv1alpha1.DependentObjectReference
}

func (n naming) HookEnabled(gvk schema.GroupVersionKind, op configv1alpha1.InterpreterOperation) bool {
	return gvk.Kind == "Deployment" && op == configv1alpha1.InterpreterOperationInterpretDependency
}

func (n naming) GetDependencies(*unstructured.Unstructured) ([]configv1alpha1.DependentObjectReference, error) {
	return n.deps, nil
}

func TestReconcile_ClusterScopedDependencies(t *testing.T) {
	role := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
		"metadata": map[string]any{"name": "reader", "uid": "uid-role", "resourceVersion": "1", "labels": map[string]any{"app": "x"}},
	}}
	dependency := configv1alpha1.DependentObjectReference{APIVersion: "rbac.authorization.k8s.io/v1", Kind: "ClusterRole"}
	byName, byLabel, other := dependency, dependency, dependency
	byName.Name, other.Name = "reader", "cluster-admin"
	byLabel.LabelSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "x"}}
	for name, tc := range map[string]struct {
		deps     []configv1alpha1.DependentObjectReference
		referrer func(*workv1alpha2.ResourceBinding)
		want     bool
	}{
		"named by the interpreter":               {deps: []configv1alpha1.DependentObjectReference{other, byName}, want: true},
		"selected by labels":                     {deps: []configv1alpha1.DependentObjectReference{byLabel}, want: true},
		"not named":                              {deps: []configv1alpha1.DependentObjectReference{other}},
		"the referrer propagates no dependency":  {deps: []configv1alpha1.DependentObjectReference{byName}, referrer: func(b *workv1alpha2.ResourceBinding) { b.Spec.PropagateDeps = false }},
		"the referrer is of a foreign template":  {deps: []configv1alpha1.DependentObjectReference{byName}, referrer: func(b *workv1alpha2.ResourceBinding) { b.Spec.Resource.Namespace = "other" }},
		"the template of the referrer is gone":   {deps: []configv1alpha1.DependentObjectReference{byName}, referrer: func(b *workv1alpha2.ResourceBinding) { b.Spec.Resource.Name = "gone" }},
		"there is no such referrer":              {deps: []configv1alpha1.DependentObjectReference{byName}, referrer: func(b *workv1alpha2.ResourceBinding) { b.Name = "another" }},
		"the referrer is of another namespace":   {deps: []configv1alpha1.DependentObjectReference{byName}, referrer: func(b *workv1alpha2.ResourceBinding) { b.Namespace = "other" }},
		"the dependency is a namespaced one too": {deps: []configv1alpha1.DependentObjectReference{{APIVersion: dependency.APIVersion, Kind: dependency.Kind, Namespace: "default", Name: "reader"}}},
	} {
		t.Run(name, func(t *testing.T) {
			referrer := resourceBinding(map[string]int32{"m1": 1})
			referrer.Spec.PropagateDeps = true
			if tc.referrer != nil {
				tc.referrer(referrer)
			}
			attached := resourceBinding(nil)
			attached.Name, attached.UID = "reader-clusterrole", "uid-attached"
			attached.Labels = map[string]string{workv1alpha2.ResourceBindingPermanentIDLabel: "id-attached"}
			attached.Spec.Resource = workv1alpha2.ObjectReference{APIVersion: dependency.APIVersion, Kind: dependency.Kind, Name: "reader"}
			attached.Spec.Replicas = 0
			attached.Spec.RequiredBy = []workv1alpha2.BindingSnapshot{{Namespace: referrer.Namespace, Name: "nginx-deployment", Clusters: []workv1alpha2.TargetCluster{{Name: "m1"}}}}
			h := newHarness(t, nil, attached, referrer)
			h.setTemplates(deployment(), role)
			h.r.guard.interpreter = naming{h.r.guard.interpreter, tc.deps}
			h.mustReconcile()
			if got := len(h.clustersWithWorks()) == 1; got != tc.want {
				t.Errorf("delivered: %v", got)
			}
			if condition := h.deliverable(); (condition == nil) != tc.want {
				t.Errorf("condition %+v", condition)
			}
		})
	}
}

// An override beyond its budget is a condition that stays, not an attempt over and over; other clusters get their Works.
func TestReconcile_OverridesBeyondTheBudgetAreNotRetried(t *testing.T) {
	role := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": map[string]any{"name": "r", "uid": "uid-role"},
	}}
	cluster := &workv1alpha2.ClusterResourceBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "r-clusterrole", Labels: map[string]string{workv1alpha2.ClusterResourceBindingPermanentIDLabel: "id-b"}},
		Spec: workv1alpha2.ResourceBindingSpec{
			Resource: workv1alpha2.ObjectReference{APIVersion: "rbac.authorization.k8s.io/v1", Kind: "ClusterRole", Name: "r"},
			Clusters: targets(map[string]int32{"m1": 0, "m2": 0}),
		},
	}
	large := replacing("m1", "/spec", `"`+strings.Repeat("x", 300_000)+`"`)
	for name, h := range map[string]*harness{
		"namespaced": newHarness(t, deployment(), resourceBinding(map[string]int32{"m1": 1, "m2": 1}), large),
		"cluster":    newHarness(t, role, cluster, &policyv1alpha1.ClusterOverridePolicy{ObjectMeta: metav1.ObjectMeta{Name: "p"}, Spec: large.Spec}),
	} {
		if result, err := h.reconcile(); !errors.Is(err, reconcile.TerminalError(nil)) || result.RequeueAfter != 0 {
			t.Errorf("%s: got %+v, %v", name, result, err)
		}
		if diff := cmp.Diff([]string{"m2"}, h.clustersWithWorks()); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
		if condition := h.deliverable(); condition == nil || condition.Reason != delivery.ReasonOverrideTooLarge || !strings.Contains(condition.Message, "for cluster(m1)") {
			t.Errorf("%s: condition %+v", name, condition)
		}
	}
	// An error of another kind is tried again.
	h := newHarness(t, deployment(), resourceBinding(map[string]int32{"m1": 1, "m2": 1}), large, func() *policyv1alpha1.OverridePolicy {
		p := replacing("m2", "/spec/none/here", "1")
		p.Name = "other"
		return p
	}())
	if _, err := h.reconcile(); err == nil || errors.Is(err, reconcile.TerminalError(nil)) {
		t.Errorf("got %v", err)
	}
	if condition := h.deliverable(); condition == nil || condition.Reason != delivery.ReasonOverrideTooLarge {
		t.Errorf("condition %+v", condition)
	}
	h.Must(h.Stored.Delete(t.Context(), large))
	h.Must(h.Stored.Delete(t.Context(), &policyv1alpha1.OverridePolicy{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "other"}}))
	h.mustReconcile()
	if condition := h.deliverable(); condition != nil {
		t.Errorf("condition %+v", condition)
	}
}

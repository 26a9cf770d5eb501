package binding

import (
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	policyv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/policy/v1alpha1"
	workv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha1"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/delivery"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/templates"
	"github.com/karmada-toolkit/karmada/pkg/domain/policy"
)

// crdOf returns a CRD for the kind of the test's template in both forms, created some time after its binding.
func crdOf(after time.Duration, binding metav1.Time) (*apiextensionsv1.CustomResourceDefinition, *unstructured.Unstructured) {
	crd := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{
		Name: "deployments.apps", CreationTimestamp: metav1.NewTime(binding.Add(after)),
	}}
	return crd, &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": map[string]any{"name": crd.Name},
		"spec": map[string]any{"group": "apps", "names": map[string]any{"kind": "Deployment"}},
	}}
}

func TestKeep_OfABindingThatIsDeleted(t *testing.T) {
	const (
		deleted = "deleted"
		left    = "left"
	)
	p := &policyv1alpha1.PropagationPolicy{ObjectMeta: metav1.ObjectMeta{
		Namespace: "default", Name: "p", Labels: map[string]string{policyv1alpha1.PropagationPolicyPermanentIDLabel: "id-p"},
	}, Spec: policyv1alpha1.PropagationSpec{ResourceSelectors: []policyv1alpha1.ResourceSelector{{APIVersion: "apps/v1", Kind: "Deployment"}}}}
	now := metav1.NewTime(time.Now().Truncate(time.Second))
	gone := func(f *facts) { f.template = nil }
	for name, tc := range map[string]struct {
		change func(*facts)
		want   string
	}{
		"template and policy are there":    {func(*facts) {}, left},
		"namespace is being deleted":       {func(f *facts) { f.namespace.DeletionTimestamp, f.namespace.Finalizers = &now, []string{"a"} }, deleted},
		"namespace is gone":                {func(f *facts) { f.namespace = nil }, deleted},
		"policy is gone":                   {func(f *facts) { f.policy = nil }, deleted},
		"policy selects it no longer":      {func(f *facts) { f.policy.Spec.ResourceSelectors[0].Kind = "Job" }, deleted},
		"policy waits for overrides":       {func(f *facts) { f.policy.Spec.DependentOverrides = []string{"o"} }, deleted},
		"no policy claims it":              {func(f *facts) { f.template = deployment() }, deleted},
		"binding has another name":         {func(f *facts) { f.name = "mine" }, deleted},
		"template is being deleted":        {func(f *facts) { f.template.SetDeletionTimestamp(&now) }, deleted},
		"template is gone, kind is native": {gone, deleted},
		"template is gone, CRD is there":   {func(f *facts) { gone(f); f.crd, f.cached = crdOf(-time.Hour, now) }, deleted},
		"CRD is being deleted": {func(f *facts) {
			gone(f)
			f.crd, f.cached = crdOf(-time.Hour, now)
			f.crd.DeletionTimestamp, f.crd.Finalizers = &now, []string{"a"}
		}, "is being deleted"},
		"CRD is gone":                        {func(f *facts) { gone(f); _, f.cached = crdOf(-time.Hour, now) }, "deployments.apps was deleted"},
		"CRD is back, template is not":       {func(f *facts) { gone(f); f.crd, f.cached = crdOf(time.Hour, now) }, "created again"},
		"CRD and template are back":          {func(f *facts) { f.crd, f.cached = crdOf(time.Hour, now) }, left},
		"both are back, no policy claims it": {func(f *facts) { f.template = deployment(); f.crd, f.cached = crdOf(time.Hour, now) }, "created again"},
	} {
		t.Run(name, func(t *testing.T) {
			f := &facts{template: deployment(), policy: p.DeepCopy(), name: "nginx-deployment",
				namespace: &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "default"}}}
			policy.For(p).Take(f.template).Apply(f.template)
			tc.change(f)
			h := f.harness(t, now)
			h.deleteBinding()
			h.mustReconcile()
			got := deleted
			b := resourceBinding(nil)
			if err := h.Stored.Get(t.Context(), h.key, b); err == nil {
				if len(b.Status.Conditions) != 1 || b.Status.Conditions[0].Reason != delivery.ReasonTypeDeleted {
					t.Fatalf("the conditions are %v", b.Status.Conditions)
				}
				got = b.Status.Conditions[0].Message
			} else if h.kept() > 0 {
				got = left
			}
			if !strings.Contains(got, tc.want) || (got == left || got == deleted) != (tc.want == left || tc.want == deleted) {
				t.Errorf("got %q, want %q", got, tc.want)
			}
			if works := h.kept(); (works == 0) != (tc.want == deleted) {
				t.Errorf("%d works", works)
			}
		})
	}
}

// facts are what the control plane has of a binding that is deleted.
type facts struct {
	template, cached *unstructured.Unstructured
	crd              *apiextensionsv1.CustomResourceDefinition
	policy           *policyv1alpha1.PropagationPolicy
	namespace        *corev1.Namespace
	name             string
}

// harness returns a control plane in which Works of the binding exist.
func (f *facts) harness(t *testing.T, created metav1.Time) *harness {
	b := resourceBinding(map[string]int32{"m1": 2})
	b.Name, b.CreationTimestamp = f.name, created
	var stored []client.Object
	if f.namespace != nil {
		stored = append(stored, f.namespace)
	}
	if f.policy != nil {
		stored = append(stored, f.policy)
	}
	if f.crd != nil {
		stored = append(stored, f.crd)
	}
	h := newHarness(t, deployment(), b, stored...)
	h.mustReconcile()
	var objs []*unstructured.Unstructured
	for _, obj := range []*unstructured.Unstructured{f.template, f.cached} {
		if obj != nil {
			objs = append(objs, obj)
		}
	}
	h.setTemplates(objs...)
	return h
}

// kept returns the number of Works that are not being deleted.
func (h *harness) kept() int {
	h.Helper()
	return len(slices.DeleteFunc(h.works(), func(w workv1alpha1.Work) bool { return w.DeletionTimestamp != nil }))
}

func (h *harness) deleteBinding() {
	h.Helper()
	h.Must(h.Stored.Delete(h.Context(), h.current()))
}

// The template goes after its binding left the Works, before there is a next one.
func TestKeep_NotWithoutATemplate(t *testing.T) {
	for name, remains := range map[string]bool{"template is there": true, "template is gone": false} {
		t.Run(name, func(t *testing.T) {
			h := newHarness(t, deployment(), resourceBinding(map[string]int32{"m1": 2}))
			h.mustReconcile()
			b := h.current()
			b.SetFinalizers(nil)
			h.Must(h.Stored.Update(t.Context(), b))
			h.deleteBinding()
			if !remains {
				h.setTemplates()
			}
			h.mustReconcile()
			if got := h.kept() > 0; got != remains {
				t.Errorf("works remain: %v", got)
			}
		})
	}
}

func TestEnded(t *testing.T) {
	h := newHarness(t, nil, resourceBinding(nil))
	claimed := deployment()
	claimed.SetLabels(map[string]string{policyv1alpha1.PropagationPolicyPermanentIDLabel: "id"})
	claimed.SetAnnotations(map[string]string{policyv1alpha1.PropagationPolicyNamespaceAnnotation: "default", policyv1alpha1.PropagationPolicyNameAnnotation: "p"})
	for name, tc := range map[string]struct {
		event templates.Event
		want  bool
	}{
		"deleted":              {templates.Event{Old: claimed}, true},
		"created with a claim": {templates.Event{New: claimed}, true},
		"claimed":              {templates.Event{Old: deployment(), New: claimed}, true},
		"changed":              {templates.Event{Old: claimed, New: claimed}, false},
		"listed":               {templates.Event{New: claimed, Initial: true}, false},
		"created":              {templates.Event{New: deployment()}, false},
	} {
		t.Run(name, func(t *testing.T) {
			got := h.mapper().ended(t.Context(), tc.event)
			if (len(got) == 2) != tc.want || tc.want && got[0].String() != "default/nginx-deployment" {
				t.Errorf("got %v", got)
			}
		})
	}
}

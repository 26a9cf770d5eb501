package detector

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/karmada-toolkit/karmada/internal/build"
	policyv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/policy/v1alpha1"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/templates"
	"github.com/karmada-toolkit/karmada/pkg/domain/policy"
)

func TestPolicy_DeletionReleasesAndKeepsBindings(t *testing.T) {
	for name, p := range map[string]policyv1alpha1.Policy{"namespaced": pp("p", nil), "cluster": cpp("p", nil)} {
		t.Run(name, func(t *testing.T) {
			h := newHarness(t, nil, []*unstructured.Unstructured{deployment("a", 1), deployment("b", 1)}, p)
			h.mustReconcile(keyFor("a"))
			h.mustReconcile(keyFor("b"))
			h.Must(h.Stored.Delete(t.Context(), p))
			h.Must(h.reconcilePolicy(p))
			for _, template := range []string{"a", "b"} {
				if _, claimed := policy.Of(h.observed(template)); claimed {
					t.Errorf("template %s is still claimed", template)
				}
				if _, claimed := policy.Of(h.binding(template + "-deployment")); claimed {
					t.Errorf("the binding of %s is still claimed", template)
				}
			}
			if err := h.Stored.Get(t.Context(), client.ObjectKeyFromObject(p), p); client.IgnoreNotFound(err) != nil || err == nil {
				t.Errorf("the policy is still there: %v", err)
			}
		})
	}
}

// A ClusterPropagationPolicy enqueues the limits and rights that PropagationPolicies hold when it appears, by name, by
// labels or by kind, and in one namespace or in all; nothing else waits for an edit of the template.
func TestPolicy_ClusterPolicyEnqueuesHeldLimits(t *testing.T) {
	quota := build.Object("v1", "ResourceQuota", "default", "limits")
	quota.SetLabels(map[string]string{"app": "a"})
	config := build.Object("v1", "ConfigMap", "default", "web")
	namespaced := pp("p", func(s *policyv1alpha1.PropagationSpec) {
		s.ResourceSelectors = []policyv1alpha1.ResourceSelector{
			{APIVersion: "v1", Kind: "ResourceQuota", Namespace: "default"}, {APIVersion: "v1", Kind: "ConfigMap", Namespace: "default"},
		}
	})
	for name, tc := range map[string]struct {
		selector policyv1alpha1.ResourceSelector
		want     []string
	}{
		"by name":                {policyv1alpha1.ResourceSelector{APIVersion: "v1", Kind: "ResourceQuota", Namespace: "default", Name: "limits"}, []string{"limits"}},
		"by kind":                {policyv1alpha1.ResourceSelector{APIVersion: "v1", Kind: "ResourceQuota"}, []string{"limits"}},
		"by labels":              {policyv1alpha1.ResourceSelector{APIVersion: "v1", Kind: "ResourceQuota", LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "a"}}}, []string{"limits"}},
		"other labels":           {policyv1alpha1.ResourceSelector{APIVersion: "v1", Kind: "ResourceQuota", LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "b"}}}, nil},
		"another namespace":      {policyv1alpha1.ResourceSelector{APIVersion: "v1", Kind: "ResourceQuota", Namespace: "other"}, nil},
		"what a namespace keeps": {policyv1alpha1.ResourceSelector{APIVersion: "v1", Kind: "ConfigMap", Namespace: "default"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHarness(t, nil, []*unstructured.Unstructured{quota.DeepCopy(), config.DeepCopy()}, namespaced.DeepCopyObject().(client.Object))
			for _, obj := range []*unstructured.Unstructured{quota, config} {
				if _, err := h.det.templates.Reconcile(t.Context(), templateKey{objectKey: keyOf(obj)}); err != nil {
					t.Fatal(err)
				}
				h.until(func() bool {
					_, held := policy.Of(h.cluster.Store.Cached(obj.GroupVersionKind(), obj.GetNamespace(), obj.GetName()))
					return held
				})
			}
			h.queued()
			wide := cpp("c", func(s *policyv1alpha1.PropagationSpec) {
				s.ResourceSelectors = []policyv1alpha1.ResourceSelector{tc.selector}
			})
			h.Must(h.Stored.Create(t.Context(), wide))
			h.Must(h.reconcilePolicy(wide))
			var got []string
			for _, key := range h.queued() {
				got = append(got, key.name)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// The kinds of which cluster-wide policies decide.
func TestClusterFirst(t *testing.T) {
	for kind, want := range map[schema.GroupKind]bool{
		{Kind: "ResourceQuota"}: true, {Kind: "LimitRange"}: true, {Group: "networking.k8s.io", Kind: "NetworkPolicy"}: true,
		{Group: "rbac.authorization.k8s.io", Kind: "Role"}: true, {Group: "rbac.authorization.k8s.io", Kind: "RoleBinding"}: true,
		{Kind: "ConfigMap"}: false, {Group: "example.io", Kind: "ResourceQuota"}: false, {Group: "apps", Kind: "Deployment"}: false,
	} {
		if got := policy.ClusterFirst(kind); got != want {
			t.Errorf("%s: %v", kind, got)
		}
	}
}

func TestPolicy_ChangeOfSelectorsReleasesWhatIsLost(t *testing.T) {
	p := pp("p", nil)
	h := newHarness(t, nil, []*unstructured.Unstructured{deployment("a", 1), deployment("b", 1)}, p)
	h.mustReconcile(keyFor("a"))
	h.mustReconcile(keyFor("b"))
	h.Refresh(p)
	p.Spec.ResourceSelectors[0].Name = "a"
	h.Must(h.Stored.Update(t.Context(), p))
	h.queued()
	h.Must(h.reconcilePolicy(p))
	if _, claimed := policy.Of(h.observed("b")); claimed {
		t.Error("b is still claimed")
	}
	if b := h.binding("b-deployment"); b.Labels[policyv1alpha1.PropagationPolicyPermanentIDLabel] != "" {
		t.Error("the binding of b is still claimed")
	}
	if diff := cmp.Diff([]templateKey{keyFor("a")}, h.queued(), cmp.AllowUnexported(templateKey{}, objectKey{})); diff != "" {
		t.Error(diff)
	}
}

func TestLazy_WaitsForTheUser(t *testing.T) {
	lazy := func(s *policyv1alpha1.PropagationSpec) { s.ActivationPreference = policyv1alpha1.LazyActivation }
	p := pp("p", lazy)
	h := newHarness(t, nil, one(deployment("nginx", 1)))
	h.mustReconcile(keyFor("nginx"))
	h.Must(h.Stored.Create(t.Context(), p))
	h.Must(h.reconcilePolicy(p))
	keys := h.queued()
	if len(keys) != 1 || !keys[0].byPolicy {
		t.Fatalf("queued %v", keys)
	}
	before := h.observed("nginx")
	h.mustReconcile(keys[0])
	if _, claimed := policy.Of(h.observed("nginx")); !claimed {
		t.Error("the template is not claimed")
	}
	h.noBinding("nginx-deployment")

	for what, tc := range map[string]struct {
		event templates.Event
		want  bool
	}{
		"the claim":          {templates.Event{Old: before, New: h.observed("nginx")}, true},
		"a restart":          {templates.Event{New: h.observed("nginx"), Initial: true}, true},
		"a new template":     {templates.Event{New: h.observed("nginx")}, false},
		"an unclaimed start": {templates.Event{New: before, Initial: true}, false},
	} {
		if got := h.det.source.byPolicy(tc.event); got != tc.want {
			t.Errorf("%s: got %v", what, got)
		}
	}
	old := h.observed("nginx")
	h.edit("nginx", func(obj *unstructured.Unstructured) {
		_ = unstructured.SetNestedField(obj.Object, int64(2), "spec", "replicas")
	})
	if h.det.source.byPolicy(templates.Event{Old: old, New: h.observed("nginx")}) {
		t.Error("a user's edit does not activate the policy")
	}
	h.mustReconcile(keyFor("nginx"))
	h.binding("nginx-deployment")
}

// A policy that is created within the grace period of a template is no edit of a user.
func TestLazy_ATemplateThatWaitsIsNotApplied(t *testing.T) {
	h := newHarness(t, nil, one(deployment("nginx", 1)))
	h.mustReconcile(keyFor("nginx"))
	if len(h.later) != 1 {
		t.Fatalf("reconciled again: %v", h.later)
	}
	p := pp("p", func(s *policyv1alpha1.PropagationSpec) { s.ActivationPreference = policyv1alpha1.LazyActivation })
	h.Must(h.Stored.Create(t.Context(), p))
	for key := range h.later {
		h.mustReconcile(key)
	}
	if _, claimed := policy.Of(h.observed("nginx")); !claimed {
		t.Error("the template is not claimed")
	}
	h.noBinding("nginx-deployment")
}

func TestLazy_ReleaseByAnotherPolicyIsNoEdit(t *testing.T) {
	h := newHarness(t, nil, one(deployment("nginx", 1)), pp("p", nil))
	unclaimed := h.observed("nginx")
	h.mustReconcile(keyFor("nginx"))
	claimed := h.observed("nginx")
	if !h.det.source.byPolicy(templates.Event{Old: claimed, New: unclaimed}) {
		t.Error("a release counts as an edit")
	}
	edited := unclaimed.DeepCopy()
	_ = unstructured.SetNestedField(edited.Object, int64(2), "spec", "replicas")
	if h.det.source.byPolicy(templates.Event{Old: claimed, New: edited}) {
		t.Error("an edit counts as a release")
	}
}

func TestPreemption(t *testing.T) {
	always := func(priority int32) func(*policyv1alpha1.PropagationSpec) {
		return func(s *policyv1alpha1.PropagationSpec) {
			s.Priority = new(priority)
			s.Preemption = policyv1alpha1.PreemptAlways
			s.ResourceSelectors[0].Name = "nginx"
			s.ResourceSelectors[0].Namespace = "default"
		}
	}
	never := func(s *policyv1alpha1.PropagationSpec) { s.Priority = ptr.To[int32](5) }
	for name, tc := range map[string]struct {
		gate              bool
		holder, contender policyv1alpha1.Policy
		event             string
	}{
		"higher priority": {true, pp("holder", never), pp("contender", always(6)),
			"Normal PreemptPolicySucceed Propagation policy(default/contender) preempted propagation policy(default/holder) successfully"},
		"equal priority":                    {true, pp("holder", never), pp("contender", always(5)), ""},
		"the gate is off":                   {false, pp("holder", never), pp("contender", always(6)), ""},
		"cluster policy over a policy":      {true, pp("holder", never), cpp("contender", always(6)), ""},
		"policy over a cluster policy":      {true, cpp("holder", never), pp("contender", always(0)), "Normal PreemptPolicySucceed Propagation policy(default/contender) preempted cluster propagation policy(holder) successfully"},
		"cluster policy over a cluster one": {true, cpp("holder", never), cpp("contender", always(6)), "Normal PreemptPolicySucceed Cluster propagation policy(contender) preempted cluster propagation policy(holder) successfully"},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHarness(t, preemption(tc.gate), one(deployment("nginx", 1)), tc.holder)
			h.mustReconcile(keyFor("nginx"))
			h.Events()
			h.Must(h.Stored.Create(t.Context(), tc.contender))
			h.Must(h.reconcilePolicy(tc.contender))
			var want []string
			holder := "holder"
			if tc.event != "" {
				want, holder = []string{tc.event}, "contender"
			}
			if diff := cmp.Diff(want, h.Events()); diff != "" {
				t.Error(diff)
			}
			if claim, _ := policy.Of(h.observed("nginx")); claim.Name != holder {
				t.Errorf("held by %+v", claim)
			}
		})
	}
}

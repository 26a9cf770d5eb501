package detector

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"

	"github.com/karmada-toolkit/karmada/internal/gates"
	policyv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/policy/v1alpha1"
)

const heldByP = `Warning ClaimedByOtherPolicy Deployment "default/nginx" is claimed by PropagationPolicy "default/p"`

// late returns a policy that was created after the start.
func (h *harness) late(p policyv1alpha1.Policy) policyv1alpha1.Policy {
	h.Helper()
	p.SetCreationTimestamp(metav1.NewTime(h.Clock.Now().Add(time.Minute)))
	p.SetGeneration(1)
	h.Must(h.Stored.Create(h.Context(), p))
	return p
}

func TestHeld_APolicyThatComesLateHearsOfIt(t *testing.T) {
	high := func(s *policyv1alpha1.PropagationSpec) {
		s.Priority, s.Preemption = ptr.To[int32](100), policyv1alpha1.PreemptAlways
		s.ResourceSelectors[0].Name, s.ResourceSelectors[0].Namespace = "nginx", "default"
	}
	for name, tc := range map[string]struct {
		gates *gates.Gates
		late  policyv1alpha1.Policy
		want  []string
	}{
		"a policy":                          {nil, pp("q", nil), []string{heldByP}},
		"a cluster policy":                  {nil, cpp("q", nil), []string{heldByP}},
		"a higher priority does not help":   {nil, pp("q", high), []string{heldByP}},
		"a policy that selects others":      {nil, pp("q", func(s *policyv1alpha1.PropagationSpec) { s.ResourceSelectors[0].Name = "other" }), nil},
		"a policy that preempts":            {preemption(true), pp("q", high), []string{"Normal PreemptPolicySucceed Propagation policy(default/q) preempted propagation policy(default/p) successfully"}},
		"a cluster policy does not preempt": {preemption(true), cpp("q", high), []string{heldByP}},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHarness(t, tc.gates, one(deployment("nginx", 1)), pp("p", nil))
			h.mustReconcile(keyFor("nginx"))
			h.Events()
			p := h.late(tc.late)
			for range 2 { // reported once
				h.Must(h.reconcilePolicy(p))
				h.observed("nginx")
			}
			if diff := cmp.Diff(tc.want, h.Events()); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestHeld_AfterAStartNothingIsReportedAgain(t *testing.T) {
	h := newHarness(t, nil, one(deployment("nginx", 1)), pp("p", nil))
	h.mustReconcile(keyFor("nginx"))
	h.Events()
	q := pp("q", nil)
	q.CreationTimestamp = metav1.NewTime(h.Clock.Now().Add(-time.Minute))
	q.Generation = 1
	h.Must(h.Stored.Create(t.Context(), q))
	h.Must(h.reconcilePolicy(q))
	if got := h.Events(); got != nil {
		t.Errorf("events %v", got)
	}
	q.Generation = 2
	h.Must(h.Stored.Update(t.Context(), q))
	h.Must(h.reconcilePolicy(q))
	if diff := cmp.Diff([]string{heldByP}, h.Events()); diff != "" {
		t.Error(diff)
	}
}

func TestHeld_APolicyThatLosesANewTemplateHearsOfIt(t *testing.T) {
	h := newHarness(t, nil, one(deployment("nginx", 1)), pp("p", nil), pp("q", nil), cpp("c", nil),
		pp("o", func(s *policyv1alpha1.PropagationSpec) { s.ResourceSelectors[0].Name = "other" }))
	h.mustReconcile(keyFor("nginx"))
	want := []string{heldByP, heldByP, "Normal ApplyPolicySucceed Apply policy(default/p) succeed"}
	if diff := cmp.Diff(want, h.Events()); diff != "" {
		t.Error(diff)
	}
	h.edit("nginx", func(obj *unstructured.Unstructured) {
		_ = unstructured.SetNestedField(obj.Object, int64(2), "spec", "replicas")
	})
	h.mustReconcile(keyFor("nginx"))
	if got := h.Events(); len(got) != 1 {
		t.Errorf("events %v", got)
	}
}

func TestHeld_ManyTemplatesAreOneEvent(t *testing.T) {
	var objs []*unstructured.Unstructured
	for _, name := range []string{"a", "b", "c", "d", "e"} {
		objs = append(objs, deployment(name, 1))
	}
	h := newHarness(t, nil, objs, pp("p", nil))
	for _, obj := range objs {
		h.mustReconcile(keyFor(obj.GetName()))
	}
	h.Events()
	h.Must(h.reconcilePolicy(h.late(pp("q", nil))))
	const by = `is claimed by PropagationPolicy "default/p"`
	want := []string{`Warning ClaimedByOtherPolicy Deployment "default/a" ` + by + `; Deployment "default/b" ` + by + `; Deployment "default/c" ` + by + `; and 2 more`}
	if diff := cmp.Diff(want, h.Events()); diff != "" {
		t.Error(diff)
	}
}

package detector

import (
	"context"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/karmada-toolkit/karmada/internal/status"
	policyv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/policy/v1alpha1"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/templates"
	"github.com/karmada-toolkit/karmada/pkg/domain/policy"
)

// heldReporter reports to policies of one scope the templates that they select and
// that other policies hold.
type heldReporter struct {
	store     *templates.Store
	preemptor *preemptor
	events    *recorder
	// started is the start of this process.
	started time.Time
	// reported holds the generation of each policy that was reported last.
	reported *status.Memory[types.NamespacedName, int64]
}

// report records events on a policy that selects templates which other policies hold, or objects of the control plane,
// once for each generation of the policy. The first observed generation of a policy
// from before the start was reported by an earlier process.
func (r *heldReporter) report(ctx context.Context, p policyv1alpha1.Policy) {
	key, generation := client.ObjectKeyFromObject(p), p.GetGeneration()
	last, known := r.reported.Get(key)
	r.reported.Set(key, generation)
	if !known && p.GetCreationTimestamp().Time.Before(r.started.Truncate(time.Second)) || known && last == generation {
		return
	}
	r.events.claimedByOther(p, r.byOthers(ctx, p)...)
	r.events.own(p, r.own(p))
}

// own returns a line for each object of the control plane that the policy selects.
func (r *heldReporter) own(p policyv1alpha1.Policy) []string {
	var out []string
	for _, rs := range p.PropagationSpec().ResourceSelectors {
		for _, obj := range r.selected(p, rs) {
			if line := named(obj) + " belongs to the control plane and is not propagated: " + policy.Own(obj); policy.MatchesOwn(obj, p) && !slices.Contains(out, line) {
				out = append(out, line)
			}
		}
	}
	return out
}

// byOthers returns a line for each template that the policy selects and another one
// keeps.
func (r *heldReporter) byOthers(ctx context.Context, p policyv1alpha1.Policy) []string {
	var out []string
	seen := map[objectKey]bool{}
	for _, rs := range p.PropagationSpec().ResourceSelectors {
		for _, obj := range r.selected(p, rs) {
			holder, held := policy.Of(obj)
			key := keyOf(obj)
			if !held || seen[key] || holder.SamePolicy(policy.For(p)) || !policy.Matches(obj, p) {
				continue
			}
			seen[key] = true
			if r.preemptor.enabled && p.PropagationSpec().Preemption == policyv1alpha1.PreemptAlways {
				if ok, err := r.preemptor.preempts(ctx, obj, p, holder); err != nil || ok {
					continue // it was taken over, or its policy is being deleted
				}
			}
			out = append(out, claimedBy(obj, holder))
		}
	}
	return out
}

// selected returns the templates that one selector may select.
func (r *heldReporter) selected(p policyv1alpha1.Policy, rs policyv1alpha1.ResourceSelector) []*unstructured.Unstructured {
	gvk := schema.FromAPIVersionAndKind(rs.APIVersion, rs.Kind)
	namespace := rs.Namespace
	if p.GetNamespace() != "" {
		namespace = p.GetNamespace()
	}
	if rs.Name != "" && namespace != "" {
		if obj := r.store.Cached(gvk, namespace, rs.Name); obj != nil {
			return []*unstructured.Unstructured{obj}
		}
		return nil
	}
	return r.store.CachedAll(func(kind schema.GroupVersionKind) bool { return kind == gvk })
}

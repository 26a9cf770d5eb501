package detector

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	policyv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/policy/v1alpha1"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/policy"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/scope"
)

// ReasonClaimedByOther is the reason of events on policies that select templates
// which another policy holds: policies have no status.
const ReasonClaimedByOther = "ClaimedByOtherPolicy"

// heldShown is the number of templates that one event names.
const heldShown = 3

// heldReports remembers the generation of each policy up to which the templates that
// others hold were reported.
type heldReports struct {
	mu    sync.Mutex
	known map[heldKey]int64
}

type heldKey struct {
	cluster bool
	types.NamespacedName
}

func newHeldReports() *heldReports { return &heldReports{known: map[heldKey]int64{}} }

// fresh reports whether the generation of a policy was not reported yet, and records
// it. The first generation seen of a policy that existed at the start was.
func (h *heldReports) fresh(cluster bool, key types.NamespacedName, generation int64, existed bool) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	k := heldKey{cluster, key}
	last, ok := h.known[k]
	h.known[k] = generation
	if !ok {
		return !existed
	}
	return last != generation
}

func (h *heldReports) forget(cluster bool, key types.NamespacedName) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.known, heldKey{cluster, key})
}

// reportHeld records an event on a policy that selects templates which other policies
// hold, once for each generation of the policy. Policies that were there at a start
// are not reported again.
func (r *policyReconciler) reportHeld(ctx context.Context, p policyv1alpha1.Policy) {
	existed := p.GetCreationTimestamp().Time.Before(r.started.Truncate(time.Second))
	if !r.held.fresh(!r.scope.Namespaced, client.ObjectKeyFromObject(p), p.GetGeneration(), existed) {
		return
	}
	if lost := r.heldByOthers(ctx, p); len(lost) > 0 {
		r.events.Warning(p, ReasonClaimedByOther, strings.Join(summarize(lost), "; "))
	}
}

// summarize shortens a list for an event.
func summarize(all []string) []string {
	slices.Sort(all)
	if len(all) <= heldShown {
		return all
	}
	return append(slices.Clone(all[:heldShown]), fmt.Sprintf("and %d more", len(all)-heldShown))
}

// heldByOthers returns a line for each template that the policy selects and another
// one keeps.
func (r *policyReconciler) heldByOthers(ctx context.Context, p policyv1alpha1.Policy) []string {
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
			if r.gates.Preemption && p.PropagationSpec().Preemption == policyv1alpha1.PreemptAlways {
				if ok, err := r.preempts(ctx, p, holder); err != nil || ok {
					continue // it was taken over, or its policy is going
				}
			}
			out = append(out, claimedBy(obj, holder))
		}
	}
	return out
}

// selected returns the templates that one selector may select.
func (r *policyReconciler) selected(p policyv1alpha1.Policy, rs policyv1alpha1.ResourceSelector) []*unstructured.Unstructured {
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
	return r.store.CachedAll(gvk)
}

// reportOutranked records an event on each policy that selects a template and lost it
// to a policy that outranks it.
func (r *templateReconciler) reportOutranked(ctx context.Context, obj *unstructured.Unstructured, best policyv1alpha1.Policy, candidates []policyv1alpha1.Policy) error {
	winner := policy.For(best)
	if !winner.Cluster {
		others, err := r.candidates(ctx, scope.ClusterPolicy(), obj)
		if err != nil {
			return err
		}
		candidates = append(slices.Clone(candidates), others...)
	}
	for _, p := range candidates {
		if p.GetDeletionTimestamp() == nil && !policy.For(p).SamePolicy(winner) && policy.Matches(obj, p) {
			r.events.Warning(p, ReasonClaimedByOther, claimedBy(obj, winner))
		}
	}
	return nil
}

func claimedBy(obj *unstructured.Unstructured, holder policy.Claim) string {
	name := obj.GetName()
	if obj.GetNamespace() != "" {
		name = obj.GetNamespace() + "/" + name
	}
	return fmt.Sprintf("%s %q is claimed by %s", obj.GetKind(), name, holder.Describe())
}

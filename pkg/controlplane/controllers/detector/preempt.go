package detector

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	policyv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/policy/v1alpha1"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/policy"
)

// priorities remembers the explicit priority of each policy, to notice when one
// is lowered.
type priorities struct {
	mu    sync.Mutex
	known map[types.NamespacedName]int32
}

func newPriorities() *priorities { return &priorities{known: map[types.NamespacedName]int32{}} }

// swap stores a priority and returns the one before.
func (p *priorities) swap(key types.NamespacedName, priority int32) (before int32, known bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	before, known = p.known[key]
	p.known[key] = priority
	return before, known
}

func (p *priorities) forget(key types.NamespacedName) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.known, key)
}

// preemption has a policy take templates over from policies of lower priority,
// and has those that now outrank this one do the same.
func (r *policyReconciler) preemption(ctx context.Context, p policyv1alpha1.Policy) error {
	var errs []error
	if p.PropagationSpec().Preemption == policyv1alpha1.PreemptAlways {
		errs = append(errs, r.preempt(ctx, p))
	}
	now := p.PropagationSpec().ExplicitPriority()
	before, known := r.priorities.swap(client.ObjectKeyFromObject(p), now)
	if known && before > now {
		errs = append(errs, r.preemptBetween(ctx, p, now, before))
	}
	return errors.Join(errs...)
}

// preemptBetween lets the policies between two priorities preempt, the highest
// first.
func (r *policyReconciler) preemptBetween(ctx context.Context, lowered policyv1alpha1.Policy, low, high int32) error {
	list := r.scope.NewList()
	if err := r.client.List(ctx, list, client.InNamespace(lowered.GetNamespace()), client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("listing policies: %w", err)
	}
	var between []policyv1alpha1.Policy
	for _, p := range list.Policies() {
		priority := p.PropagationSpec().ExplicitPriority()
		if p.PropagationSpec().Preemption == policyv1alpha1.PreemptAlways && p.GetDeletionTimestamp() == nil &&
			low < priority && priority < high {
			between = append(between, p)
		}
	}
	slices.SortFunc(between, func(a, b policyv1alpha1.Policy) int {
		return cmp.Or(cmp.Compare(b.PropagationSpec().ExplicitPriority(), a.PropagationSpec().ExplicitPriority()),
			strings.Compare(a.GetName(), b.GetName()))
	})
	var errs []error
	for _, p := range between {
		errs = append(errs, r.preempt(ctx, p))
	}
	return errors.Join(errs...)
}

func (r *policyReconciler) preempt(ctx context.Context, p policyv1alpha1.Policy) error {
	var errs []error
	for _, rs := range p.PropagationSpec().ResourceSelectors {
		gvk := schema.FromAPIVersionAndKind(rs.APIVersion, rs.Kind)
		obj, err := r.store.Get(ctx, gvk, rs.Namespace, rs.Name)
		if apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			errs = append(errs, err)
			continue
		}
		if obj.GetDeletionTimestamp() == nil {
			errs = append(errs, r.preemptObject(ctx, obj, p))
		}
	}
	return errors.Join(errs...)
}

// preemptObject takes one template over if the policy may.
func (r *policyReconciler) preemptObject(ctx context.Context, obj *unstructured.Unstructured, p policyv1alpha1.Policy) error {
	claim := policy.For(p)
	holder, held := policy.Of(obj)
	if !held || !policy.Matches(obj, p) {
		return nil
	}
	if ok, err := r.preempts(ctx, p, holder); err != nil || !ok {
		return err
	}
	_, err := r.claim(ctx, obj, claim)
	r.measures.preempted(err)
	what := describePreemption(claim, holder)
	if err != nil {
		r.events.Warning(obj, ReasonPreemptPolicyFailed, fmt.Sprintf("%s failed to preempt %s: %v", what[0], what[1], err))
		return err
	}
	r.events.Normal(obj, ReasonPreemptPolicySucceed, fmt.Sprintf("%s preempted %s successfully", what[0], what[1]))
	return nil
}

// preempts reports whether a policy takes over what another one holds.
func (r *policyReconciler) preempts(ctx context.Context, p policyv1alpha1.Policy, holder policy.Claim) (bool, error) {
	claim := policy.For(p)
	if holder == claim || claim.Cluster != holder.Cluster && claim.Cluster {
		return false, nil // its own, or one of a PropagationPolicy
	}
	if claim.Cluster != holder.Cluster {
		return true, nil
	}
	current, err := r.policy(ctx, holder)
	if err != nil {
		return false, err
	}
	return policy.Preempts(p, current), nil
}

// describePreemption names the two policies as events do.
func describePreemption(by, of policy.Claim) [2]string {
	name := func(c policy.Claim) string {
		return fmt.Sprintf("%spropagation policy(%s)", c.Scope().EventPrefix, c.Key())
	}
	first := name(by)
	return [2]string{strings.ToUpper(first[:1]) + first[1:], name(of)}
}

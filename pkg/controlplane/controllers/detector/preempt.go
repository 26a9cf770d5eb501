package detector

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/karmada-toolkit/karmada/internal/status"
	policyv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/policy/v1alpha1"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/templates"
	"github.com/karmada-toolkit/karmada/pkg/domain/policy"
	"github.com/karmada-toolkit/karmada/pkg/domain/scope"
)

// newMemory returns a memory of policies of one scope.
func newMemory[V any]() *status.Memory[types.NamespacedName, V] {
	return status.NewMemory[types.NamespacedName, V](0)
}

// preemptor takes templates over for policies of one scope.
type preemptor struct {
	enabled  bool
	scope    *scope.Policy
	client   client.Client
	store    *templates.Store
	policies *policyReader
	claims   *claims
	events   *recorder
	metrics  *metrics
	// priorities holds the explicit priority of each policy, to notice when one is
	// lowered.
	priorities *status.Memory[types.NamespacedName, int32]
}

// run lets a policy that changed take templates over from policies of lower priority,
// and lets the policies with a higher priority than its new one do the same.
func (r *preemptor) run(ctx context.Context, p policyv1alpha1.Policy) error {
	if !r.enabled {
		return nil
	}
	var errs []error
	if p.PropagationSpec().Preemption == policyv1alpha1.PreemptAlways {
		errs = append(errs, r.preempt(ctx, p))
	}
	key, now := client.ObjectKeyFromObject(p), p.PropagationSpec().ExplicitPriority()
	before, known := r.priorities.Get(key)
	r.priorities.Set(key, now)
	if known && before > now {
		errs = append(errs, r.preemptBetween(ctx, p, now, before))
	}
	return errors.Join(errs...)
}

// preemptBetween lets the policies between two priorities preempt, the highest first.
func (r *preemptor) preemptBetween(ctx context.Context, lowered policyv1alpha1.Policy, low, high int32) error {
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

func (r *preemptor) preempt(ctx context.Context, p policyv1alpha1.Policy) error {
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
func (r *preemptor) preemptObject(ctx context.Context, obj *unstructured.Unstructured, p policyv1alpha1.Policy) error {
	claim := policy.For(p)
	holder, held := policy.Of(obj)
	if !held || !policy.Matches(obj, p) {
		return nil
	}
	if ok, err := r.preempts(ctx, obj, p, holder); err != nil || !ok {
		return err
	}
	_, err := r.claims.take(ctx, obj, claim)
	r.metrics.preempted(err)
	r.events.preempted(obj, claim, holder, err)
	return err
}

// preempts reports whether a policy takes over an object that another one holds.
func (r *preemptor) preempts(ctx context.Context, obj *unstructured.Unstructured, p policyv1alpha1.Policy, holder policy.Claim) (bool, error) {
	return policy.TakesOver(obj.GroupVersionKind().GroupKind(), p, holder, func() (policyv1alpha1.Policy, error) { return r.policies.get(ctx, holder) })
}

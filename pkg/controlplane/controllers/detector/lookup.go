package detector

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/karmada-toolkit/karmada/internal/controllers"
	policyv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/policy/v1alpha1"
	workv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha1"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/env"
	"github.com/karmada-toolkit/karmada/pkg/domain/policy"
	"github.com/karmada-toolkit/karmada/pkg/domain/scope"
)

// policyReader reads policies.
type policyReader struct{ client, live client.Reader }

// get returns the policy that a claim names. A new policy may not be in the cache yet.
func (r *policyReader) get(ctx context.Context, claim policy.Claim) (policyv1alpha1.Policy, error) {
	p := claim.Scope().New()
	key := client.ObjectKey{Namespace: claim.Namespace, Name: claim.Name}
	err := r.client.Get(ctx, key, p)
	if apierrors.IsNotFound(err) {
		err = r.live.Get(ctx, key, p)
	}
	if err != nil {
		return nil, fmt.Errorf("getting %s: %w", describe(claim), err)
	}
	return p, nil
}

// candidates returns the policies of a scope with a selector for the kind, and the
// name if any, of the template.
func (r *policyReader) candidates(ctx context.Context, s *scope.Policy, obj *unstructured.Unstructured) ([]policyv1alpha1.Policy, error) {
	var out []policyv1alpha1.Policy
	for _, name := range []string{anyName, obj.GetName()} {
		list := s.NewList()
		opts := []client.ListOption{
			client.MatchingFields{selectorIndex: selectorKey(obj.GetAPIVersion(), obj.GetKind(), name)},
			client.UnsafeDisableDeepCopy,
		}
		if s.Namespaced {
			opts = append(opts, client.InNamespace(obj.GetNamespace()))
		}
		if err := r.client.List(ctx, list, opts...); err != nil {
			return nil, fmt.Errorf("listing policies: %w", err)
		}
		out = append(out, list.Policies()...)
	}
	return out, nil
}

// dependentOverrides returns an error unless every override policy exists that the
// policy depends on.
func (r *policyReader) dependentOverrides(ctx context.Context, p policyv1alpha1.Policy) error {
	override := scope.PolicyOf(p).NewOverride
	for _, name := range p.PropagationSpec().DependentOverrides {
		key := client.ObjectKey{Namespace: p.GetNamespace(), Name: name}
		err := r.client.Get(ctx, key, override(), client.UnsafeDisableDeepCopy)
		if apierrors.IsNotFound(err) {
			return errDependentOverrides
		}
		if err != nil {
			return fmt.Errorf("getting override policy %q: %w", name, err)
		}
	}
	return nil
}

// selectorIndex finds policies by what they select, dependsIndex by the override
// policies that they wait for.
const (
	selectorIndex = "detector.selector"
	dependsIndex  = "detector.dependentOverride"
	anyName       = "*"
)

func selectorKey(apiVersion, kind, name string) string {
	return apiVersion + "," + kind + "," + cmp.Or(name, anyName)
}

func index(ctx context.Context, e *env.Env) error {
	for _, s := range scope.Policies() {
		err := errors.Join(e.Index(ctx, s.New(), selectorIndex, controllers.Index(selectorKeys)), e.Index(ctx, s.New(), dependsIndex, controllers.Index(dependsKeys)))
		if err != nil {
			return err
		}
	}
	// The index starts the informers of bindings, which are read from the cache.
	for _, s := range scope.Bindings() {
		if err := e.Index(ctx, s.New(), "detector.present", func(client.Object) []string { return nil }); err != nil {
			return err
		}
	}
	if err := e.Index(ctx, &workv1alpha1.Work{}, workIndex, workKeys); err != nil {
		return fmt.Errorf("indexing works: %w", err)
	}
	return nil
}

func selectorKeys(p policyv1alpha1.Policy) []string {
	seen := map[string]bool{}
	var out []string
	for _, rs := range p.PropagationSpec().ResourceSelectors {
		if key := selectorKey(rs.APIVersion, rs.Kind, rs.Name); !seen[key] {
			seen[key] = true
			out = append(out, key)
		}
	}
	return out
}

func dependsKeys(p policyv1alpha1.Policy) []string {
	return p.PropagationSpec().DependentOverrides
}

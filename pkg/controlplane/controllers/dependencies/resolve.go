package dependencies

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	configv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/config/v1alpha1"
	"github.com/karmada-toolkit/karmada/pkg/apis/validation"
	workv1alpha2 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha2"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/delivery"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/env"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/templates"
)

// resolver returns the dependencies of templates, and the objects that these name.
type resolver struct {
	store       *templates.Store
	interpreter env.Interpreter
}

// dependencies returns what a template refers to, sorted.
func (r *resolver) dependencies(obj *unstructured.Unstructured) ([]configv1alpha1.DependentObjectReference, error) {
	if !r.interpreter.HookEnabled(obj.GroupVersionKind(), configv1alpha1.InterpreterOperationInterpretDependency) {
		return nil, nil
	}
	deps, err := r.interpreter.GetDependencies(obj)
	if err != nil {
		return nil, fmt.Errorf("getting dependencies: %w", err)
	}
	deps = slices.Clone(deps)
	slices.SortStableFunc(deps, compare)
	return deps, nil
}

// allowed returns the dependencies that a template of the namespace may have, and why
// the others are refused. Interpreters take namespaces from templates, which are
// written by users of the template's namespace.
func (r *resolver) allowed(namespace string, deps []configv1alpha1.DependentObjectReference) (allowed []configv1alpha1.DependentObjectReference, refused []error) {
	for _, dep := range deps {
		ref := workv1alpha2.ObjectReference{APIVersion: dep.APIVersion, Kind: dep.Kind, Namespace: dep.Namespace, Name: dep.Name}
		refusal := delivery.Check(namespace, &ref)
		if refusal == nil && dep.Namespace == "" {
			_, namespaced, known := r.store.Resource(schema.FromAPIVersionAndKind(dep.APIVersion, dep.Kind))
			if known && namespaced || !known && dep.Name == "" {
				refusal = &delivery.Refusal{Reason: delivery.ReasonWrongScope, Message: "the dependency has no namespace"}
			}
		}
		if refusal != nil {
			refused = append(refused, fmt.Errorf("dependency on %s %s/%s: %w", dep.Kind, dep.Namespace, dep.Name, refusal))
			continue
		}
		allowed = append(allowed, dep)
	}
	return allowed, refused
}

// objects returns the objects that dependencies name or select. Those that do
// not exist are left out.
func (r *resolver) objects(ctx context.Context, deps []configv1alpha1.DependentObjectReference) ([]*unstructured.Unstructured, error) {
	var out []*unstructured.Unstructured
	seen := map[types.UID]bool{}
	add := func(obj *unstructured.Unstructured, dep *configv1alpha1.DependentObjectReference) {
		// A list without a namespace would be one of all namespaces.
		if !seen[obj.GetUID()] && obj.GetNamespace() == dep.Namespace {
			seen[obj.GetUID()] = true
			out = append(out, obj)
		}
	}
	for i := range deps {
		dep := &deps[i]
		gvk := schema.FromAPIVersionAndKind(dep.APIVersion, dep.Kind)
		if dep.Name != "" {
			obj, err := r.store.Get(ctx, gvk, dep.Namespace, dep.Name)
			if apierrors.IsNotFound(err) {
				continue
			}
			if err != nil {
				return nil, err
			}
			add(obj, dep)
			continue
		}
		selector, err := validation.LabelSelector(dep.LabelSelector)
		if err != nil {
			return nil, fmt.Errorf("dependency on %s: %w", dep.Kind, err)
		}
		objs, err := r.store.List(ctx, gvk, dep.Namespace, selector)
		if err != nil {
			return nil, err
		}
		for _, obj := range objs {
			add(obj, dep)
		}
	}
	return out, nil
}

// compare orders dependencies.
func compare(a, b configv1alpha1.DependentObjectReference) int {
	return cmp.Or(strings.Compare(a.APIVersion, b.APIVersion), strings.Compare(a.Kind, b.Kind),
		strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Name, b.Name))
}

package binding

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	configv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/config/v1alpha1"
	workv1alpha2 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha2"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/delivery"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/env"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/templates"
	"github.com/karmada-toolkit/karmada/pkg/domain/scope"
)

// guard decides which bindings may deliver their templates.
type guard struct {
	scope       *scope.Binding
	client      client.Reader
	store       *templates.Store
	interpreter env.Interpreter
}

// check returns why the template of a binding must not be delivered, or nil.
func (g *guard) check(ctx context.Context, b workv1alpha2.Binding) (*delivery.Refusal, error) {
	ref := &b.GetSpec().Resource
	if refusal := delivery.Check(b.GetNamespace(), ref); refusal != nil || !g.scope.Namespaced || ref.Namespace != "" {
		return refusal, nil
	}
	needed, err := g.needed(ctx, b)
	if err != nil || needed {
		return nil, err
	}
	return &delivery.Refusal{Reason: delivery.ReasonWrongScope, Message: fmt.Sprintf(
		"spec.resource.namespace is empty and no template of namespace %q that propagates its dependencies depends on %s %q",
		b.GetNamespace(), ref.Kind, ref.Name)}, nil
}

// needed reports whether the interpreter names the cluster-scoped object of a
// ResourceBinding as a dependency of a template in the namespace of the binding,
// which follows another binding that propagates dependencies. The spec of the binding
// itself does not prove it: users can write it.
func (g *guard) needed(ctx context.Context, b workv1alpha2.Binding) (bool, error) {
	ref := &b.GetSpec().Resource
	if ref.APIVersion == "" || ref.Kind == "" || ref.Name == "" {
		return false, nil
	}
	for i := range b.GetSpec().RequiredBy {
		by := &b.GetSpec().RequiredBy[i]
		if by.Namespace != b.GetNamespace() {
			continue
		}
		referrer := &workv1alpha2.ResourceBinding{}
		err := g.client.Get(ctx, client.ObjectKey{Namespace: by.Namespace, Name: by.Name}, referrer, client.UnsafeDisableDeepCopy)
		if apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			return false, fmt.Errorf("getting binding %s/%s: %w", by.Namespace, by.Name, err)
		}
		named, err := g.depends(ctx, referrer, ref)
		if err != nil || named {
			return named, err
		}
	}
	return false, nil
}

// depends reports whether the template of a binding depends on a cluster-scoped
// object.
func (g *guard) depends(ctx context.Context, referrer *workv1alpha2.ResourceBinding, on *workv1alpha2.ObjectReference) (bool, error) {
	from := &referrer.Spec.Resource
	if referrer.DeletionTimestamp != nil || !referrer.Spec.PropagateDeps || from.Namespace != referrer.Namespace ||
		delivery.Check(referrer.Namespace, from) != nil {
		return false, nil //nolint:nilerr // what is not delivered has no dependencies that are
	}
	gvk := schema.FromAPIVersionAndKind(from.APIVersion, from.Kind)
	if !g.interpreter.HookEnabled(gvk, configv1alpha1.InterpreterOperationInterpretDependency) {
		return false, nil
	}
	template, err := g.store.Get(ctx, gvk, from.Namespace, from.Name)
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	deps, err := g.interpreter.GetDependencies(template.DeepCopy())
	if err != nil {
		return false, fmt.Errorf("getting the dependencies of %s %s/%s: %w", from.Kind, from.Namespace, from.Name, err)
	}
	return delivery.Depends(ctx, g.store, deps, on)
}

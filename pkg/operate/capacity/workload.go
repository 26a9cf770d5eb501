package capacity

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/dynamic"

	configv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/config/v1alpha1"
	"github.com/karmada-toolkit/karmada/pkg/apis/names"
	workv1alpha2 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha2"
	"github.com/karmada-toolkit/karmada/pkg/domain/interpreter"
	bundled "github.com/karmada-toolkit/karmada/plugins/interpreter"
)

// Reader reads workloads.
type Reader struct {
	// ControlPlane reads bindings and customizations.
	ControlPlane dynamic.Interface
}

// Template returns the workload of a template of the control plane: what its binding contains, which every kind of
// interpreter has contributed to, or, without a binding, what Manifest returns.
func (r *Reader) Template(ctx context.Context, object *unstructured.Unstructured) (*Workload, error) {
	gvr := workv1alpha2.GroupVersion.WithResource("resourcebindings")
	in := r.ControlPlane.Resource(gvr).Namespace(object.GetNamespace())
	found, err := in.Get(ctx, names.Binding(object.GetKind(), object.GetName()), metav1.GetOptions{})
	if apierrors.IsNotFound(err) || apierrors.IsForbidden(err) || object.GetNamespace() == "" {
		return r.Manifest(ctx, object)
	}
	if err != nil {
		return nil, fmt.Errorf("reading the binding of %s %q: %w", object.GetKind(), object.GetName(), err)
	}
	binding := &workv1alpha2.ResourceBinding{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(found.Object, binding); err != nil {
		return nil, fmt.Errorf("decoding the binding of %s %q: %w", object.GetKind(), object.GetName(), err)
	}
	s := &binding.Spec
	ref := &s.Resource
	if ref.Kind != object.GetKind() || ref.APIVersion != object.GetAPIVersion() || s.ReplicaRequirements == nil && len(s.Components) == 0 {
		return r.Manifest(ctx, object)
	}
	return &Workload{
		Kind: object.GetKind(), Namespace: object.GetNamespace(), Name: object.GetName(),
		Replicas: s.Replicas, Requirements: s.ReplicaRequirements, Components: s.Components,
	}, nil
}

// Manifest returns the workload of an object, by the customizations of the control plane, those that come with this
// program, and the rules of Kubernetes' own kinds. Interpreter webhooks are not called.
func (r *Reader) Manifest(ctx context.Context, object *unstructured.Unstructured) (*Workload, error) {
	in, err := r.interpreter(ctx)
	if err != nil {
		return nil, err
	}
	w := &Workload{Kind: object.GetKind(), Namespace: object.GetNamespace(), Name: object.GetName()}
	gvk := object.GroupVersionKind()
	if in.HookEnabled(gvk, configv1alpha1.InterpreterOperationInterpretReplica) {
		w.Replicas, w.Requirements, err = in.GetReplicas(object)
	} else if w.Components, err = in.GetComponents(object); errors.Is(err, interpreter.ErrNoRule) {
		return nil, fmt.Errorf("%s %q has no replicas, as far as the interpreters know its kind", w.Kind, w.Name)
	}
	if err != nil {
		return nil, fmt.Errorf("reading the requirements of %s %q: %w", w.Kind, w.Name, err)
	}
	return w, nil
}

func (r *Reader) interpreter(ctx context.Context) (*interpreter.Interpreter, error) {
	list, err := r.ControlPlane.Resource(configv1alpha1.GroupVersion.WithResource("resourceinterpretercustomizations")).List(ctx, metav1.ListOptions{})
	if err != nil && !apierrors.IsForbidden(err) && !apierrors.IsNotFound(err) {
		return nil, fmt.Errorf("listing the interpreter customizations of the control plane: %w", err)
	}
	var customizations []*configv1alpha1.ResourceInterpreterCustomization
	if err == nil {
		err = meta.EachListItem(list, func(o runtime.Object) error {
			u, ok := o.(*unstructured.Unstructured)
			if !ok {
				return fmt.Errorf("unexpected %T", o)
			}
			c := &configv1alpha1.ResourceInterpreterCustomization{}
			customizations = append(customizations, c)
			return runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, c)
		})
		if err != nil {
			return nil, fmt.Errorf("decoding the interpreter customizations of the control plane: %w", err)
		}
	}
	return bundled.NewOffline(customizations)
}

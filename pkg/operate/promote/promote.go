// Package promote makes objects that already run in a member cluster templates of the control plane: the object and,
// on request, its dependencies are copied to the control plane without what belongs to the member, and a policy
// propagates them back to the same member, where they are adopted in place.
package promote

import (
	"context"
	"errors"
	"fmt"
	"io"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/cli-runtime/pkg/printers"
	"k8s.io/client-go/dynamic"

	"github.com/karmada-toolkit/karmada/pkg/member/access"
)

// Deps are what Run works with. All fields are required, except Printer and Interpreters.
type Deps struct {
	// ControlPlane and Member read and write objects of any kind. Objects of Member that were not requested are refused.
	ControlPlane, Member dynamic.Interface
	// Mapper maps kinds to resources of the control plane.
	Mapper meta.RESTMapper
	// Interpreters find dependencies, in the order in which they are called. Request.Dependencies needs at least one.
	Interpreters []Interpreter
	// Printer prints objects to Out instead of creating them; nil creates them.
	Printer printers.ResourcePrinter
	// Out receives one line for each object that was written, or the printed objects.
	Out io.Writer
	// Warn receives what the user should know and what does not end the run.
	Warn func(format string, args ...any)
}

// Request is what to promote.
type Request struct {
	// Cluster is the name of the member that the object was read from.
	Cluster string
	// Namespace is where the object and its dependencies are in the member, and where they are created in the control
	// plane. It is required for cluster-scoped objects as well: their dependencies are looked up there.
	Namespace string
	// Dependencies also promotes what the object refers to, and makes the policy propagate it.
	Dependencies bool
	// CreatePolicy creates a policy that propagates the object to Cluster.
	CreatePolicy bool
	// PolicyName is the name of that policy; empty means a name derived from the object.
	PolicyName string
	// DryRun writes nothing.
	DryRun bool
}

// Run promotes one object, as it was read from the member. An object that the control plane already has is left as it
// is, with a warning. It returns an error when a dependency cannot be promoted, in which case the dependencies that were
// created are removed again, or when an object or policy cannot be created.
func Run(ctx context.Context, d Deps, r Request, obj *unstructured.Unstructured) error {
	t, err := newTarget(d.Mapper, obj, r.Namespace)
	if err != nil {
		return err
	}
	if err := t.check(obj, obj.GetName()); err != nil {
		return err
	}
	if r.Dependencies && !r.DryRun {
		if err := promoteDependencies(ctx, d, r, obj); err != nil {
			return fmt.Errorf("failed to promote dependencies of resource %s automatically: %w", t, err)
		}
	}
	if err := Clean(t.object); err != nil {
		return err
	}
	switch {
	case d.Printer != nil:
		return t.print(d, r)
	case r.DryRun:
		d.Warn("%s would be created in the control plane", t)
		return nil
	}
	return t.create(ctx, d, r)
}

// target is an object on its way to the control plane.
type target struct {
	object    *unstructured.Unstructured
	mapping   *meta.RESTMapping
	namespace string
}

func newTarget(mapper meta.RESTMapper, obj *unstructured.Unstructured, namespace string) (*target, error) {
	gvk := obj.GroupVersionKind()
	mapping, err := mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
	if meta.IsNoMatchError(err) {
		return nil, fmt.Errorf("the control plane does not serve kind %q of %s: promote its CustomResourceDefinition first", gvk.Kind, gvk.GroupVersion())
	}
	if err != nil {
		return nil, fmt.Errorf("finding the resource of kind %q in the control plane: %w", gvk.Kind, err)
	}
	return &target{object: obj.DeepCopy(), mapping: mapping, namespace: namespace}, nil
}

// check returns an error unless an object that was read from the member is the one that was requested: a member must not
// choose what is created in the control plane. name may be empty.
func (t *target) check(obj *unstructured.Unstructured, name string) error {
	namespace := ""
	if t.namespaced() {
		namespace = t.namespace
	}
	want := access.Requested(t.mapping.GroupVersionKind, namespace, name)
	err := want.CheckIn(access.IdentityOf(obj), t.namespaced())
	if err == nil && obj.GetName() == "" {
		err = errors.New("the object has no name")
	}
	if err != nil {
		return fmt.Errorf("the member returned something else for %s: %w", t, err)
	}
	return nil
}

func (t *target) namespaced() bool { return t.mapping.Scope.Name() == meta.RESTScopeNameNamespace }

// String returns the resource and the name in the form of the contract's messages.
func (t *target) String() string {
	name := t.object.GetName()
	if t.namespaced() {
		name = t.namespace + "/" + name
	}
	return fmt.Sprintf("%q(%s)", t.mapping.Resource.String(), name)
}

func (t *target) in(c dynamic.Interface) dynamic.ResourceInterface {
	if t.namespaced() {
		return c.Resource(t.mapping.Resource).Namespace(t.namespace)
	}
	return c.Resource(t.mapping.Resource)
}

func (t *target) print(d Deps, r Request) error {
	if err := d.Printer.PrintObj(t.object, d.Out); err != nil {
		return fmt.Errorf("printing %s: %w", t, err)
	}
	if !r.CreatePolicy {
		return nil
	}
	policy := t.policy(r, r.Namespace)
	if err := d.Printer.PrintObj(policy, d.Out); err != nil {
		return fmt.Errorf("printing %s %s: %w", policy.GetKind(), policy.GetName(), err)
	}
	return nil
}

func (t *target) create(ctx context.Context, d Deps, r Request) error {
	_, err := t.in(d.ControlPlane).Create(ctx, t.object, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		d.Warn("%s already exists in the control plane and is left as it is; no policy is created", t)
		return nil
	}
	if err != nil {
		return t.failed(err)
	}
	if err := t.printf(d, "ResourceTemplate (%s/%s) is created successfully", t.namespace, t.object.GetName()); err != nil {
		return err
	}
	if r.CreatePolicy {
		if err := t.createPolicy(ctx, d, r); err != nil {
			return err
		}
	}
	return t.printf(d, "Resource %s is promoted successfully", t)
}

// failed explains why the object was not created.
func (t *target) failed(err error) error {
	if apierrors.IsNotFound(err) && t.namespaced() {
		return fmt.Errorf("creating %s in the control plane: namespace %q does not exist there; create it first, with karmadactl create namespace %[2]s: %[3]w", t, t.namespace, err)
	}
	return fmt.Errorf("creating %s in the control plane: %w", t, err)
}

func (t *target) createPolicy(ctx context.Context, d Deps, r Request) error {
	// The name of a cluster-scoped policy hashes no namespace, other than the one that is printed.
	namespace := ""
	if t.namespaced() {
		namespace = t.namespace
	}
	policy := t.policy(r, namespace)
	title := fmt.Sprintf("%s(%s)", policy.GetKind(), policy.GetName())
	created := fmt.Sprintf("%s %s", policy.GetKind(), policy.GetName())
	if t.namespaced() {
		title = fmt.Sprintf("%s(%s/%s)", policy.GetKind(), namespace, policy.GetName())
		created = fmt.Sprintf("%s (%s/%s)", policy.GetKind(), namespace, policy.GetName())
	}
	_, err := policyClient(d.ControlPlane, policy).Create(ctx, policy, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("the %s already exist, please edit it to propagate resource", title)
	}
	if err != nil {
		return fmt.Errorf("creating the %s: %w; the template stays in the control plane and is not propagated", title, err)
	}
	return t.printf(d, "%s is created successfully", created)
}

func (t *target) printf(d Deps, format string, args ...any) error {
	if _, err := fmt.Fprintf(d.Out, format+"\n", args...); err != nil {
		return fmt.Errorf("writing the result of %s: %w", t, err)
	}
	return nil
}

package promote

import (
	"context"
	"errors"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/util/retry"

	configv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/config/v1alpha1"
	workv1alpha2 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha2"
	"github.com/karmada-toolkit/karmada/pkg/domain/interpreter"
)

// Interpreter is a named source of rules that return the dependencies of an object.
type Interpreter struct {
	// Name is printed when this source has a rule for the object, as in "use default interpreter".
	Name string
	// Rules returns the rules for a kind, or nil.
	Rules func(schema.GroupVersionKind) *interpreter.Rules
}

// errExists is returned for a dependency that the control plane already has.
var errExists = errors.New("already exists in the control plane")

// promoteDependencies creates what the object refers to. If one of them cannot be created, those created before are
// removed again; one that is there already is no error.
func promoteDependencies(ctx context.Context, d Deps, r Request, obj *unstructured.Unstructured) error {
	references, err := findDependencies(d, obj)
	if err != nil {
		return err
	}
	var created []*target
	for _, reference := range references {
		var all []*target
		if all, err = readDependency(ctx, d, r, reference); err != nil {
			break
		}
		if created, err = createAll(ctx, d, all, created); err != nil {
			break
		}
	}
	if err == nil {
		return nil
	}
	if exists := errors.Is(err, errExists); exists {
		d.Warn("%v; the dependencies that were created are removed again", err)
		err = nil
	}
	for _, t := range created {
		err = errors.Join(err, t.revert(ctx, d))
	}
	return err
}

// createAll creates dependencies and returns created with those that now exist. Nothing is written while objects are
// printed.
func createAll(ctx context.Context, d Deps, all, created []*target) ([]*target, error) {
	if d.Printer != nil {
		return created, nil
	}
	for _, t := range all {
		if err := Clean(t.object); err != nil {
			return created, err
		}
		_, err := t.in(d.ControlPlane).Create(ctx, t.object, metav1.CreateOptions{})
		if apierrors.IsAlreadyExists(err) {
			return created, fmt.Errorf("dependency %s %w", t, errExists)
		}
		if err != nil {
			return created, t.failed(err)
		}
		created = append(created, t)
		if err := t.printf(d, "Dependency resource %s is promoted successfully", t); err != nil {
			return created, err
		}
	}
	return created, nil
}

// findDependencies returns the dependencies of the first source that supports the kind.
func findDependencies(d Deps, obj *unstructured.Unstructured) ([]configv1alpha1.DependentObjectReference, error) {
	gvk := obj.GroupVersionKind()
	for _, source := range d.Interpreters {
		rules := source.Rules(gvk)
		if !rules.Has(configv1alpha1.InterpreterOperationInterpretDependency) {
			continue
		}
		if d.Printer == nil {
			if _, err := fmt.Fprintf(d.Out, "use %s interpreter\n", source.Name); err != nil {
				return nil, fmt.Errorf("writing the name of the interpreter: %w", err)
			}
		}
		references, err := rules.Dependencies(obj)
		if err != nil {
			return nil, fmt.Errorf("finding the dependencies: %w", err)
		}
		if err := interpreter.VerifyDependencies(references); err != nil {
			return nil, fmt.Errorf("finding the dependencies: %w", err)
		}
		return inOrder(references), nil
	}
	d.Warn("no interpreter has a rule for the dependencies of kind %s: the object is promoted without", gvk.Kind)
	return nil, nil
}

// inOrder returns references in the order in which they are promoted: kinds of pods' references as pods refer to them,
// then all others.
func inOrder(references []configv1alpha1.DependentObjectReference) []configv1alpha1.DependentObjectReference {
	order := []string{"ConfigMap", "Secret", "ServiceAccount", "PersistentVolumeClaim"}
	rank := func(r configv1alpha1.DependentObjectReference) int {
		if i := slices.Index(order, r.Kind); i >= 0 {
			return i
		}
		return len(order)
	}
	references = slices.Clone(references)
	slices.SortStableFunc(references, func(a, b configv1alpha1.DependentObjectReference) int { return rank(a) - rank(b) })
	return references
}

// readDependency reads a dependency from the member: one object by name, or all that its label selector matches.
func readDependency(ctx context.Context, d Deps, r Request, reference configv1alpha1.DependentObjectReference) ([]*target, error) {
	probe := &unstructured.Unstructured{}
	probe.SetAPIVersion(reference.APIVersion)
	probe.SetKind(reference.Kind)
	probe.SetName(reference.Name)
	t, err := newTarget(d.Mapper, probe, r.Namespace)
	if err != nil {
		return nil, err
	}
	if reference.Name == "" {
		return listDependencies(ctx, d, r, t, reference.LabelSelector)
	}
	found, err := t.in(d.Member).Get(ctx, reference.Name, metav1.GetOptions{})
	title := fmt.Sprintf("failed to get dependency %q(%s/%s) in cluster(%s)", reference.Kind, r.Namespace, reference.Name, r.Cluster)
	if apierrors.IsNotFound(err) {
		return nil, fmt.Errorf("%s: the %s or %s don't exist in cluster(%s)", title, reference.Kind, reference.Name, r.Cluster)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", title, err)
	}
	if err := t.check(found, reference.Name); err != nil {
		return nil, fmt.Errorf("%s: %w", title, err)
	}
	t.object = found
	return []*target{t}, nil
}

func listDependencies(ctx context.Context, d Deps, r Request, t *target, selector *metav1.LabelSelector) ([]*target, error) {
	list, err := t.in(d.Member).List(ctx, metav1.ListOptions{LabelSelector: metav1.FormatLabelSelector(selector)})
	if err != nil {
		return nil, fmt.Errorf("listing dependencies of kind %s in cluster(%s): %w", t.object.GetKind(), r.Cluster, err)
	}
	all := make([]*target, 0, len(list.Items))
	for i := range list.Items {
		if err := t.check(&list.Items[i], ""); err != nil {
			return nil, fmt.Errorf("listing dependencies of kind %s in cluster(%s): %w", t.mapping.GroupVersionKind.Kind, r.Cluster, err)
		}
		all = append(all, &target{object: &list.Items[i], mapping: t.mapping, namespace: t.namespace})
	}
	return all, nil
}

// revert removes a dependency from the control plane, after the object in the member lost the labels that bind it to
// the control plane: it must not be removed there.
func (t *target) revert(ctx context.Context, d Deps) error {
	err := retry.RetryOnConflict(retry.DefaultRetry, func() error {
		found, err := t.in(d.Member).Get(ctx, t.object.GetName(), metav1.GetOptions{})
		if err != nil {
			return err
		}
		if err := t.check(found, t.object.GetName()); err != nil {
			return err
		}
		labels := found.GetLabels()
		delete(labels, workv1alpha2.WorkPermanentIDLabel)
		delete(labels, workv1alpha2.ManagedByKarmadaLabel)
		found.SetLabels(labels)
		_, err = t.in(d.Member).Update(ctx, found, metav1.UpdateOptions{})
		return err
	})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("reverting dependency %s in the member: %w", t, err)
	}
	if err := t.in(d.ControlPlane).Delete(ctx, t.object.GetName(), metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("removing dependency %s from the control plane: %w", t, err)
	}
	return t.printf(d, "Dependency resource %s is reverted successfully", t)
}

package propagation

import (
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	configv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/config/v1alpha1"
	policyv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/policy/v1alpha1"
	workv1alpha2 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha2"
	"github.com/karmada-toolkit/karmada/pkg/domain/manifest"
	"github.com/karmada-toolkit/karmada/pkg/domain/override"
	"github.com/karmada-toolkit/karmada/pkg/domain/replicas"
	"github.com/karmada-toolkit/karmada/pkg/domain/services"
)

// Object is what clusters get of a template, before overrides.
type Object struct {
	template    *unstructured.Unstructured
	spec        *workv1alpha2.ResourceBindingSpec
	interpreter Interpreter
	completions map[string]int64
}

// ObjectOf returns what targets get of a template by the spec of its binding. None of it is changed.
func ObjectOf(template *unstructured.Unstructured, spec *workv1alpha2.ResourceBindingSpec, targets []workv1alpha2.TargetCluster, interpreter Interpreter) *Object {
	return &Object{template: template, spec: spec, interpreter: interpreter, completions: completions(template, spec, targets)}
}

// Revise returns a copy of the template with the replicas and completions of a target. The error is that of the interpreter, or that a
// target gets no completions.
func (o *Object) Revise(target *workv1alpha2.TargetCluster) (*unstructured.Unstructured, error) {
	obj := o.template.DeepCopy()
	manifest.Reactivate(obj)
	obj, err := o.Scale(obj, target)
	if err != nil {
		return nil, err
	}
	if o.completions == nil {
		return obj, nil
	}
	n, ok := o.completions[target.Name]
	if !ok {
		return nil, fmt.Errorf("no completions found for cluster %s", target.Name)
	}
	if err := unstructured.SetNestedField(obj.Object, n, "spec", "completions"); err != nil {
		return nil, fmt.Errorf("setting completions: %w", err)
	}
	return obj, nil
}

// Scale returns an object of the template, which it may change, with the replicas of a target.
func (o *Object) Scale(obj *unstructured.Unstructured, target *workv1alpha2.TargetCluster) (*unstructured.Unstructured, error) {
	if o.spec.IsWorkload() && o.interpreter.HookEnabled(obj.GroupVersionKind(), configv1alpha1.InterpreterOperationReviseReplica) {
		revised, err := o.interpreter.ReviseReplica(obj, int64(target.Replicas))
		if err != nil {
			return nil, fmt.Errorf("revising replicas: %w", err)
		}
		obj = revised
	}
	if err := override.IdentityOf(o.template).Check(obj.Object); err != nil {
		return nil, fmt.Errorf("revising replicas: %w", err)
	}
	return obj, nil
}

// OverridingNamespace returns the namespace whose OverridePolicies apply to a template. It is empty, for cluster-wide
// policies alone, for what the federation made or propagates itself: the Services of MultiClusterServices and those derived
// from ServiceImports. Who may write policies does not decide about these.
func OverridingNamespace(binding workv1alpha2.Binding, template *unstructured.Unstructured) string {
	if binding.GetLabels()[services.BindingManagedByLabel] != "" || template.GetKind() == "Service" && services.IsDerived(template) {
		return ""
	}
	return template.GetNamespace()
}

// completions divides the completions of a Job between its targets in proportion
// to their replicas. Nil means that there is nothing to divide.
func completions(obj *unstructured.Unstructured, spec *workv1alpha2.ResourceBindingSpec, targets []workv1alpha2.TargetCluster) map[string]int64 {
	gvk := obj.GroupVersionKind()
	if gvk.Group != "batch" || gvk.Kind != "Job" || spec.Replicas <= 0 || spec.Placement == nil ||
		spec.Placement.ReplicaSchedulingType() != policyv1alpha1.ReplicaSchedulingTypeDivided {
		return nil
	}
	total, found, err := unstructured.NestedInt64(obj.Object, "spec", "completions")
	if err != nil || !found {
		return nil
	}
	parties := make([]replicas.Party, len(targets))
	for i, t := range targets {
		parties[i] = replicas.Party{Name: t.Name, Votes: int64(t.Replicas)}
	}
	out := make(map[string]int64, len(parties))
	if !replicas.Dispense(total, parties, replicas.TieOf(string(obj.GetUID()))) {
		return out // no target gets any; revise fails for each
	}
	for _, p := range parties {
		out[p.Name] = p.Seats
	}
	return out
}

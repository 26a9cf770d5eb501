// Package propagation decides what a template becomes: the spec of its binding under a policy, and the object that a cluster gets.
package propagation

import (
	"cmp"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	configv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/config/v1alpha1"
	policyv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/policy/v1alpha1"
	workv1alpha2 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha2"
	"github.com/karmada-toolkit/karmada/pkg/domain/scope"
)

// Interpreter is what is known of the replicas of kinds.
type Interpreter interface {
	// HookEnabled reports whether there is a rule for an operation on a kind.
	HookEnabled(gvk schema.GroupVersionKind, op configv1alpha1.InterpreterOperation) bool
	GetReplicas(obj *unstructured.Unstructured) (int32, *workv1alpha2.ReplicaRequirements, error)
	GetComponents(obj *unstructured.Unstructured) ([]workv1alpha2.Component, error)
	ReviseReplica(obj *unstructured.Unstructured, replicas int64) (*unstructured.Unstructured, error)
}

// Features are the feature gates that decide what is in the spec of a binding.
type Features struct {
	// Components counts the components of templates that have several pod templates: MultiplePodTemplatesScheduling.
	Components bool
	// Quotas names the namespace of a template in its requirements: ResourceQuotaEstimate.
	Quotas bool
	// Affinity sets groups of workloads: WorkloadAffinity.
	Affinity bool
}

// Size is what a template runs. A kind without a rule has none.
type Size struct {
	Replicas     int32
	Requirements *workv1alpha2.ReplicaRequirements
	Components   []workv1alpha2.Component
	// By is the operation of the interpreter that determined it; empty for a kind without a rule.
	By configv1alpha1.InterpreterOperation
}

// SizeOf returns what a template runs. An error is that of the interpreter, of the operation By.
func SizeOf(obj *unstructured.Unstructured, interpreter Interpreter, features Features) (Size, error) {
	gvk := obj.GroupVersionKind()
	if features.Components && interpreter.HookEnabled(gvk, configv1alpha1.InterpreterOperationInterpretComponent) {
		components, err := interpreter.GetComponents(obj)
		return Size{Components: components, By: configv1alpha1.InterpreterOperationInterpretComponent}, err
	}
	if !interpreter.HookEnabled(gvk, configv1alpha1.InterpreterOperationInterpretReplica) {
		return Size{}, nil
	}
	replicas, requirements, err := interpreter.GetReplicas(obj)
	if err != nil {
		return Size{By: configv1alpha1.InterpreterOperationInterpretReplica}, err
	}
	if features.Quotas && requirements != nil && requirements.Namespace == "" {
		requirements = requirements.DeepCopy()
		requirements.Namespace = obj.GetNamespace()
	}
	return Size{Replicas: replicas, Requirements: requirements, By: configv1alpha1.InterpreterOperationInterpretReplica}, nil
}

// Spec is what a template and its policy determine of the spec of a binding.
type Spec struct {
	Scope    *scope.Binding
	Policy   *policyv1alpha1.PropagationSpec
	Template workv1alpha2.ObjectReference
	Size     Size
	// Priority is the value of the priority class that the policy names; nil for none.
	Priority *workv1alpha2.SchedulePriority
	Groups   *workv1alpha2.WorkloadAffinityGroups
}

// SpecOf returns what a template of a size and a policy determine of the spec of a binding, without the priority.
func SpecOf(obj *unstructured.Unstructured, p policyv1alpha1.Policy, size Size, features Features) *Spec {
	s := &Spec{Scope: scope.BindingIn(obj.GetNamespace()), Policy: p.PropagationSpec(), Size: size, Template: workv1alpha2.ObjectReference{
		APIVersion: obj.GetAPIVersion(), Kind: obj.GetKind(),
		Namespace: obj.GetNamespace(), Name: obj.GetName(), UID: obj.GetUID(),
	}}
	if s.Scope.Affinity && features.Affinity {
		s.Groups = affinityGroups(obj, &s.Policy.Placement)
	}
	return s
}

// Apply writes it into the spec of a binding, with the resource version of the template
// that the binding stands for. The fields of other writers are not changed.
func (s *Spec) Apply(spec *workv1alpha2.ResourceBindingSpec, version string) {
	policy := s.Policy.DeepCopy()
	spec.Resource = s.Template
	spec.Resource.ResourceVersion = version
	spec.Replicas, spec.ReplicaRequirements, spec.Components = s.Size.Replicas, s.Size.Requirements, s.Size.Components
	spec.PropagateDeps = policy.PropagateDeps
	spec.SchedulerName = policy.SchedulerName
	spec.Placement = &policy.Placement
	spec.Failover = policy.Failover
	spec.ConflictResolution = cmp.Or(policy.ConflictResolution, policyv1alpha1.ConflictAbort)
	spec.PreserveResourcesOnDeletion = policy.PreserveResourcesOnDeletion
	spec.Suspension = suspension(spec.Suspension, policy.Suspension)
	if s.Scope.Priority {
		spec.SchedulePriority = s.Priority
	}
	if s.Scope.Affinity {
		spec.WorkloadAffinityGroups = s.Groups
	}
}

// suspension returns the suspension of a policy beside that of scheduling, which
// others write.
func suspension(have *workv1alpha2.Suspension, policy *policyv1alpha1.Suspension) *workv1alpha2.Suspension {
	var out workv1alpha2.Suspension
	if have != nil {
		out.Scheduling = have.Scheduling
	}
	if policy != nil {
		out.Suspension = *policy
	}
	if policy == nil && out.Scheduling == nil {
		return nil
	}
	return &out
}

// affinityGroups returns the workload affinity groups of a template by its labels.
func affinityGroups(obj *unstructured.Unstructured, placement *policyv1alpha1.Placement) *workv1alpha2.WorkloadAffinityGroups {
	if placement.WorkloadAffinity == nil {
		return nil
	}
	groups := workv1alpha2.WorkloadAffinityGroups{}
	if a := placement.WorkloadAffinity.Affinity; a != nil {
		groups.AffinityGroup = group(obj, a.GroupByLabelKey)
	}
	if a := placement.WorkloadAffinity.AntiAffinity; a != nil {
		groups.AntiAffinityGroup = group(obj, a.GroupByLabelKey)
	}
	if groups == (workv1alpha2.WorkloadAffinityGroups{}) {
		return nil
	}
	return &groups
}

func group(obj *unstructured.Unstructured, key string) string {
	value, ok := obj.GetLabels()[key]
	if !ok {
		return ""
	}
	return key + "=" + value
}

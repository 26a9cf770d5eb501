package detector

import (
	"cmp"
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/karmada-toolkit/karmada/internal/gates"
	configv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/config/v1alpha1"
	policyv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/policy/v1alpha1"
	workv1alpha2 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha2"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/env"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/templates"
	"github.com/karmada-toolkit/karmada/pkg/domain/scope"
)

// wanted holds what the detector writes into the spec of a binding.
type wanted struct {
	scope        *scope.Binding
	policy       *policyv1alpha1.PropagationSpec
	template     workv1alpha2.ObjectReference
	replicas     int32
	requirements *workv1alpha2.ReplicaRequirements
	components   []workv1alpha2.Component
	priority     *workv1alpha2.SchedulePriority
	groups       *workv1alpha2.WorkloadAffinityGroups
	// content is the hash of what is propagated of the template.
	content uint64
}

// specBuilder builds the specs of bindings.
type specBuilder struct {
	store       *templates.Store
	interpreter env.Interpreter
	gates       *gates.Gates
	events      *recorder
}

// build returns what the binding of a template contains under a policy.
func (b *specBuilder) build(ctx context.Context, obj *unstructured.Unstructured, p policyv1alpha1.Policy) (*wanted, error) {
	content, err := templates.Hash(obj)
	if err != nil {
		return nil, err
	}
	w := &wanted{
		scope: scope.BindingIn(obj.GetNamespace()), policy: p.PropagationSpec(), content: content,
		template: workv1alpha2.ObjectReference{
			APIVersion: obj.GetAPIVersion(), Kind: obj.GetKind(),
			Namespace: obj.GetNamespace(), Name: obj.GetName(), UID: obj.GetUID(),
		},
	}
	if err := b.replicas(obj, w); err != nil {
		return nil, err
	}
	if w.scope.Affinity && b.gates.Enabled(gates.WorkloadAffinity) {
		w.groups = affinityGroups(obj, &w.policy.Placement)
	}
	if w.scope.Priority && b.gates.Enabled(gates.PriorityBasedScheduling) {
		w.priority, err = b.schedulePriority(ctx, w.policy.SchedulePriority)
	}
	return w, err
}

// apply writes what is wanted into a spec, with the resource version of the template
// that the binding stands for. The fields of other writers are not changed.
func (w *wanted) apply(spec *workv1alpha2.ResourceBindingSpec, version string) {
	policy := w.policy.DeepCopy()
	spec.Resource = w.template
	spec.Resource.ResourceVersion = version
	spec.Replicas, spec.ReplicaRequirements, spec.Components = w.replicas, w.requirements, w.components
	spec.PropagateDeps = policy.PropagateDeps
	spec.SchedulerName = policy.SchedulerName
	spec.Placement = &policy.Placement
	spec.Failover = policy.Failover
	spec.ConflictResolution = cmp.Or(policy.ConflictResolution, policyv1alpha1.ConflictAbort)
	spec.PreserveResourcesOnDeletion = policy.PreserveResourcesOnDeletion
	spec.Suspension = suspension(spec.Suspension, policy.Suspension)
	if w.scope.Priority {
		spec.SchedulePriority = w.priority
	}
	if w.scope.Affinity {
		spec.WorkloadAffinityGroups = w.groups
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

// replicas sets the replicas of a template, or its components.
func (b *specBuilder) replicas(obj *unstructured.Unstructured, w *wanted) error {
	gvk := obj.GroupVersionKind()
	if b.gates.Enabled(gates.MultiplePodTemplatesScheduling) && b.interpreter.HookEnabled(gvk, configv1alpha1.InterpreterOperationInterpretComponent) {
		components, err := b.interpreter.GetComponents(obj)
		b.events.components(obj, len(components), err)
		if err != nil {
			return fmt.Errorf("getting components: %w", err)
		}
		w.components = components
		return nil
	}
	if !b.interpreter.HookEnabled(gvk, configv1alpha1.InterpreterOperationInterpretReplica) {
		return nil
	}
	replicas, requirements, err := b.interpreter.GetReplicas(obj)
	b.events.replicas(obj, replicas, err)
	if err != nil {
		return fmt.Errorf("getting replicas: %w", err)
	}
	if b.gates.Enabled(gates.ResourceQuotaEstimate) && requirements != nil && requirements.Namespace == "" {
		requirements = requirements.DeepCopy()
		requirements.Namespace = obj.GetNamespace()
	}
	w.replicas, w.requirements = replicas, requirements
	return nil
}

// schedulePriority returns the value of the priority class that a policy names.
func (b *specBuilder) schedulePriority(ctx context.Context, sp *policyv1alpha1.SchedulePriority) (*workv1alpha2.SchedulePriority, error) {
	if sp == nil {
		return nil, nil
	}
	if sp.PriorityClassSource != policyv1alpha1.KubePriorityClass {
		return nil, fmt.Errorf("priority class source %q is not known", sp.PriorityClassSource)
	}
	gvk := schema.GroupVersionKind{Group: "scheduling.k8s.io", Version: "v1", Kind: "PriorityClass"}
	class, err := b.store.Get(ctx, gvk, "", sp.PriorityClassName)
	if apierrors.IsNotFound(err) {
		return nil, fmt.Errorf("priority class %q does not exist", sp.PriorityClassName)
	}
	if err != nil {
		return nil, err
	}
	value, _, err := unstructured.NestedInt64(class.Object, "value")
	if err != nil {
		return nil, fmt.Errorf("reading priority class %q: %w", sp.PriorityClassName, err)
	}
	return &workv1alpha2.SchedulePriority{Priority: int32(value)}, nil
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

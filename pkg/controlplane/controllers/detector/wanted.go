package detector

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	configv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/config/v1alpha1"
	policyv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/policy/v1alpha1"
	workv1alpha2 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha2"
)

// wanted is the part of a binding's spec that the detector writes.
type wanted struct {
	spec    workv1alpha2.ResourceBindingSpec
	content uint64
	ranked  bool
}

// wanted returns what the binding of a template must say under a policy.
func (d *detector) wanted(ctx context.Context, obj *unstructured.Unstructured, p policyv1alpha1.Policy) (*wanted, error) {
	content, err := hash(obj)
	if err != nil {
		return nil, err
	}
	ps := p.PropagationSpec()
	w := &wanted{content: content, ranked: bindingScopeOf(obj.GetNamespace()).ranked}
	w.spec = workv1alpha2.ResourceBindingSpec{
		Resource: workv1alpha2.ObjectReference{
			APIVersion: obj.GetAPIVersion(), Kind: obj.GetKind(),
			Namespace: obj.GetNamespace(), Name: obj.GetName(), UID: obj.GetUID(),
		},
		PropagateDeps:               ps.PropagateDeps,
		SchedulerName:               ps.SchedulerName,
		Placement:                   &ps.Placement,
		Failover:                    ps.Failover,
		ConflictResolution:          ps.ConflictResolution,
		PreserveResourcesOnDeletion: ps.PreserveResourcesOnDeletion,
	}
	if w.spec.ConflictResolution == "" {
		w.spec.ConflictResolution = policyv1alpha1.ConflictAbort
	}
	if ps.Suspension != nil {
		w.spec.Suspension = &workv1alpha2.Suspension{Suspension: *ps.Suspension}
	}
	if err := d.replicas(obj, &w.spec); err != nil {
		return nil, err
	}
	if !w.ranked {
		return w, nil
	}
	if d.gates.WorkloadAffinity {
		w.spec.WorkloadAffinityGroups = affinityGroups(obj, &ps.Placement)
	}
	if d.gates.Priority {
		w.spec.SchedulePriority, err = d.schedulePriority(ctx, ps.SchedulePriority)
	}
	return w, err
}

// into writes what is wanted into a spec and leaves the rest of it alone.
func (w *wanted) into(spec *workv1alpha2.ResourceBindingSpec) {
	s := w.spec.DeepCopy()
	spec.Resource = s.Resource
	spec.Replicas, spec.ReplicaRequirements, spec.Components = s.Replicas, s.ReplicaRequirements, s.Components
	spec.PropagateDeps = s.PropagateDeps
	spec.SchedulerName = s.SchedulerName
	spec.Placement = s.Placement
	spec.Failover = s.Failover
	spec.ConflictResolution = s.ConflictResolution
	spec.PreserveResourcesOnDeletion = s.PreserveResourcesOnDeletion
	spec.Suspension = suspension(spec.Suspension, s.Suspension)
	if w.ranked {
		spec.SchedulePriority = s.SchedulePriority
		spec.WorkloadAffinityGroups = s.WorkloadAffinityGroups
	}
}

// suspension returns the policy's suspension beside what others suspended.
func suspension(have, want *workv1alpha2.Suspension) *workv1alpha2.Suspension {
	if have == nil || have.Scheduling == nil {
		return want
	}
	out := &workv1alpha2.Suspension{Scheduling: have.Scheduling}
	if want != nil {
		out.Suspension = want.Suspension
	}
	return out
}

func (d *detector) replicas(obj *unstructured.Unstructured, spec *workv1alpha2.ResourceBindingSpec) error {
	gvk := obj.GroupVersionKind()
	if d.gates.Components && d.interpreter.HookEnabled(gvk, configv1alpha1.InterpreterOperationInterpretComponent) {
		components, err := d.interpreter.GetComponents(obj)
		if err != nil {
			d.events.Warning(obj, ReasonGetComponentsFailed, err.Error())
			return fmt.Errorf("getting components: %w", err)
		}
		spec.Components = components
		d.events.Detail(obj, ReasonGetComponentsSucceed, fmt.Sprintf("Get components(%d) succeed.", len(components)))
		return nil
	}
	if !d.interpreter.HookEnabled(gvk, configv1alpha1.InterpreterOperationInterpretReplica) {
		return nil
	}
	replicas, requirements, err := d.interpreter.GetReplicas(obj)
	if err != nil {
		d.events.Warning(obj, ReasonGetReplicasFailed, err.Error())
		return fmt.Errorf("getting replicas: %w", err)
	}
	if d.gates.Quota && requirements != nil && requirements.Namespace == "" {
		requirements = requirements.DeepCopy()
		requirements.Namespace = obj.GetNamespace()
	}
	spec.Replicas, spec.ReplicaRequirements = replicas, requirements
	d.events.Detail(obj, ReasonGetReplicasSucceed, fmt.Sprintf("Get replicas(%d) succeed.", replicas))
	return nil
}

// schedulePriority returns the value of the priority class that a policy names.
func (d *detector) schedulePriority(ctx context.Context, sp *policyv1alpha1.SchedulePriority) (*workv1alpha2.SchedulePriority, error) {
	if sp == nil {
		return nil, nil
	}
	if sp.PriorityClassSource != policyv1alpha1.KubePriorityClass {
		return nil, fmt.Errorf("priority class source %q is not known", sp.PriorityClassSource)
	}
	gvk := schema.GroupVersionKind{Group: "scheduling.k8s.io", Version: "v1", Kind: "PriorityClass"}
	class, err := d.store.Get(ctx, gvk, "", sp.PriorityClassName)
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

// affinityGroups returns the groups that the labels of a template put it in.
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

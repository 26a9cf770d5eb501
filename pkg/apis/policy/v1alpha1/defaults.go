package v1alpha1

import "slices"

// DefaultGracePeriodSeconds is the default of gracePeriodSeconds of an eviction
// with the purge mode Gracefully.
const DefaultGracePeriodSeconds int32 = 600

// DefaultSelectorNamespaces sets the empty namespaces of the selectors of a
// namespaced policy, in place.
func DefaultSelectorNamespaces(selectors []ResourceSelector, namespace string) {
	for i := range selectors {
		if selectors[i].Namespace == "" {
			selectors[i].Namespace = namespace
		}
	}
}

// DefaultPropagationSpec sets the defaults of admission in the spec of both kinds
// of propagation policy, in place; other defaults come from the schema.
func DefaultPropagationSpec(spec *PropagationSpec) {
	DefaultSpreadConstraints(spec.Placement.SpreadConstraints)
	for _, s := range spec.ResourceSelectors {
		if s.Kind == "ServiceImport" && s.APIVersion == "multicluster.x-k8s.io/v1alpha1" {
			spec.PropagateDeps = true
		}
	}
	if r := spec.Placement.ReplicaScheduling; r != nil && r.ReplicaSchedulingType == ReplicaSchedulingTypeDivided && r.ReplicaDivisionPreference == "" {
		r.ReplicaDivisionPreference = ReplicaDivisionPreferenceWeighted
	}
	if spec.Failover != nil && spec.Failover.Application != nil {
		if app := spec.Failover.Application; app.PurgeMode == PurgeModeGracefully && app.GracePeriodSeconds == nil {
			app.GracePeriodSeconds = new(DefaultGracePeriodSeconds)
		}
	}
}

// DefaultSpreadConstraints sets the defaults of constraints, in place: a
// constraint without field and label spreads by cluster, and minGroups is 1.
func DefaultSpreadConstraints(constraints []SpreadConstraint) {
	for i := range constraints {
		c := &constraints[i]
		if c.SpreadByField == "" && c.SpreadByLabel == "" {
			c.SpreadByField = SpreadByFieldCluster
		}
		if c.MinGroups == 0 {
			c.MinGroups = 1
		}
	}
}

// DefaultNewPolicy sets the id and the finalizer of a policy that is created. An
// id set by the user is replaced.
func DefaultNewPolicy(p Policy, id string) {
	label, finalizer := ClusterPropagationPolicyPermanentIDLabel, ClusterPropagationPolicyFinalizer
	if _, ok := p.(*PropagationPolicy); ok {
		label, finalizer = PropagationPolicyPermanentIDLabel, PropagationPolicyFinalizer
	}
	labels := p.GetLabels()
	if labels == nil {
		labels = map[string]string{}
	}
	labels[label] = id
	p.SetLabels(labels)
	if !slices.Contains(p.GetFinalizers(), finalizer) {
		p.SetFinalizers(append(p.GetFinalizers(), finalizer))
	}
}

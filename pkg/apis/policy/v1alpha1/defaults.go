package v1alpha1

import "slices"

// DefaultGracePeriodSeconds is how long an object stays in a cluster that it is
// moved away from gracefully.
const DefaultGracePeriodSeconds int32 = 600

// DefaultSelectorNamespaces fills the empty namespaces of the selectors of a
// namespaced policy, in place.
func DefaultSelectorNamespaces(selectors []ResourceSelector, namespace string) {
	for i := range selectors {
		if selectors[i].Namespace == "" {
			selectors[i].Namespace = namespace
		}
	}
}

// DefaultPropagationSpec fills what admission fills in the body of both kinds of
// propagation policy, in place; other defaults come from the schema.
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

// DefaultSpreadConstraints fills constraints in place: what names nothing spreads
// by cluster, and at least one group is wanted.
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

// DefaultNewPolicy gives a policy that is being created its id and its
// finalizer. An id that the user brought is replaced.
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

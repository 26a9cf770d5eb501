package v1alpha1

// Labels and annotations that link a template and its binding to the policy that
// claimed it.
const (
	// PropagationPolicyPermanentIDLabel holds the id of a PropagationPolicy, on the
	// policy and on what it claimed.
	PropagationPolicyPermanentIDLabel = "propagationpolicy.karmada.io/permanent-id"
	// ClusterPropagationPolicyPermanentIDLabel holds the id of a
	// ClusterPropagationPolicy, on the policy and on what it claimed.
	ClusterPropagationPolicyPermanentIDLabel = "clusterpropagationpolicy.karmada.io/permanent-id"
	// PropagationPolicyNamespaceAnnotation holds the namespace of the claiming
	// PropagationPolicy.
	PropagationPolicyNamespaceAnnotation = "propagationpolicy.karmada.io/namespace"
	// PropagationPolicyNameAnnotation holds the name of the claiming
	// PropagationPolicy.
	PropagationPolicyNameAnnotation = "propagationpolicy.karmada.io/name"
	// ClusterPropagationPolicyAnnotation holds the name of the claiming
	// ClusterPropagationPolicy.
	ClusterPropagationPolicyAnnotation = "clusterpropagationpolicy.karmada.io/name"
	// NamespaceSkipAutoPropagationLabel set to "true" (in any case) on a Namespace
	// excludes it from automatic propagation to the member clusters.
	NamespaceSkipAutoPropagationLabel = "namespace.karmada.io/skip-auto-propagation"
)

// Annotations that record what the scheduler and the binding controller used.
const (
	// AppliedPlacementAnnotation holds the placement, as JSON, that the scheduler
	// used last.
	AppliedPlacementAnnotation = "policy.karmada.io/applied-placement"
	// AppliedOverridesAnnotation lists the OverridePolicies applied to a Work.
	AppliedOverridesAnnotation = "policy.karmada.io/applied-overrides"
	// AppliedClusterOverridesAnnotation lists the ClusterOverridePolicies applied
	// to a Work.
	AppliedClusterOverridesAnnotation = "policy.karmada.io/applied-cluster-overrides"
)

// Finalizers of the propagation policies.
const (
	PropagationPolicyFinalizer        = "karmada.io/propagation-policy-controller"
	ClusterPropagationPolicyFinalizer = "karmada.io/cluster-propagation-policy-controller"
)

// DefaultSchedulerName is the default of schedulerName.
const DefaultSchedulerName = "default-scheduler"

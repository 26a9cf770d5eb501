package v1alpha2

// Condition types of bindings.
const (
	// Scheduled reports whether the scheduler found clusters.
	Scheduled = "Scheduled"
	// FullyApplied reports whether the object in every cluster has its desired
	// state.
	FullyApplied = "FullyApplied"
	// Deliverable is False while something of the binding is not delivered because it must not be, and absent otherwise.
	Deliverable = "Deliverable"
)

// Reasons of the conditions.
const (
	BindingReasonSuccess         = "Success"
	BindingReasonSchedulerError  = "SchedulerError"
	BindingReasonNoClusterFit    = "NoClusterFit"
	BindingReasonUnschedulable   = "Unschedulable"
	BindingReasonQuotaExceeded   = "QuotaExceeded"
	FullyAppliedSuccessReason    = "FullyAppliedSuccess"
	FullyAppliedFailedReason     = "FullyAppliedFailed"
	FullyAppliedSuccessMessage   = "All works have been successfully applied"
	FullyAppliedFailedMessage    = "Failed to apply all works, see status.aggregatedStatus for details"
	FullyAppliedNoTargetMessage  = "The binding has no target cluster, see condition Scheduled"
	ScheduledSuccessMessage      = "Binding has been scheduled successfully."
	DefaultGracefulEvictionGrace = 600
)

// Labels and annotations of bindings and of the objects created from them.
const (
	// ResourceBindingPermanentIDLabel holds the id of a ResourceBinding, on it and
	// on its Works and their objects.
	ResourceBindingPermanentIDLabel = "resourcebinding.karmada.io/permanent-id"
	// ClusterResourceBindingPermanentIDLabel holds the id of a
	// ClusterResourceBinding, on it and on its Works and their objects.
	ClusterResourceBindingPermanentIDLabel = "clusterresourcebinding.karmada.io/permanent-id"
	// WorkPermanentIDLabel holds the id of a Work, on it and on its objects.
	WorkPermanentIDLabel = "work.karmada.io/permanent-id"
	// ResourceBindingNamespaceAnnotation names the namespace of the ResourceBinding
	// that a Work or object was created from.
	ResourceBindingNamespaceAnnotation = "resourcebinding.karmada.io/namespace"
	// ResourceBindingNameAnnotation names the ResourceBinding that a Work or object
	// was created from.
	ResourceBindingNameAnnotation = "resourcebinding.karmada.io/name"
	// ClusterResourceBindingAnnotation names the ClusterResourceBinding that a Work
	// or object was created from.
	ClusterResourceBindingAnnotation = "clusterresourcebinding.karmada.io/name"
	// BindingManagedByLabel on a ResourceBinding names another owner than a policy.
	BindingManagedByLabel = "binding.karmada.io/managed-by"
	// UnhealthySinceAnnotation on a binding holds, as JSON, since when its application is
	// unhealthy, by cluster, so that a restart of the control plane does not delay its
	// failover.
	UnhealthySinceAnnotation = "failover.karmada.io/unhealthy-since"
	// BindingDependenciesAnnotation lists, as JSON, the objects that a template
	// refers to.
	BindingDependenciesAnnotation = "resourcebinding.karmada.io/dependencies"
	// BindingDependedByLabelPrefix starts the labels of an attached binding that
	// name the bindings that depend on it.
	BindingDependedByLabelPrefix = "resourcebinding.karmada.io/depended-by-"
	// PreservedWhereRequiredAnnotation lists, on a binding that others require, the clusters, separated by commas, in which one of
	// these preserves its objects; "*" stands for all. Such a cluster keeps what it has of the template when the binding leaves it.
	PreservedWhereRequiredAnnotation = "resourcebinding.karmada.io/preserved-where-required"
	// PreservedWhereLeftAnnotation lists the clusters in which the objects of one that required the binding were preserved when it
	// left; they refer to the template still. The format and the effect are those of PreservedWhereRequiredAnnotation.
	PreservedWhereLeftAnnotation = "resourcebinding.karmada.io/preserved-where-left"
	// WorkNamespaceAnnotation names the namespace of the Work that an object was
	// created from.
	WorkNamespaceAnnotation = "work.karmada.io/namespace"
	// WorkNameAnnotation names the Work that an object was created from.
	WorkNameAnnotation = "work.karmada.io/name"
	// WantedAnnotation is set on a Work that is being deleted, for the agent of its cluster: whether its binding wants it, "true" or
	// "false". The objects of one that is wanted stay, for the next Work.
	WantedAnnotation = "work.karmada.io/wanted"
	// ResourceConflictResolutionAnnotation is overwrite or abort.
	ResourceConflictResolutionAnnotation = "work.karmada.io/conflict-resolution"
	// ResourceConflictResolutionOverwrite takes over an existing object.
	ResourceConflictResolutionOverwrite = "overwrite"
	// ResourceConflictResolutionAbort leaves an existing object unchanged.
	ResourceConflictResolutionAbort = "abort"
	// ManagedByKarmadaLabel marks objects in members that the control plane owns.
	ManagedByKarmadaLabel = "karmada.io/managed"
	// ManagedByKarmadaLabelValue is the value of ManagedByKarmadaLabel.
	ManagedByKarmadaLabelValue = "true"
	// InertAnnotation is set on a template that the control plane deactivated on its own API server, such as a webhook
	// configuration. The value is a JSON object with the fields that were removed; the manifests of Works have them.
	InertAnnotation = "propagation.karmada.io/inert"
	// KeepActiveAnnotation, set to "true" on such an object, has it act on the API server of the control plane although a policy
	// claims it.
	KeepActiveAnnotation = "propagation.karmada.io/keep-active"
	// AllocatedNodePortsAnnotation lists the node ports of a Service that the API server of the control plane allocated, as
	// PORT/PROTOCOL=NODEPORT with commas between them. A member in which one is taken allocates another.
	AllocatedNodePortsAnnotation = "propagation.karmada.io/allocated-node-ports"
	// SystemLabel marks objects that the control plane creates for its own use.
	SystemLabel = "karmada.io/system"
	// SystemLabelValue is the value of SystemLabel.
	SystemLabelValue = "true"
	// ResourceTemplateUIDAnnotation holds the UID of the template.
	ResourceTemplateUIDAnnotation = "resourcetemplate.karmada.io/uid"
	// ResourceTemplateGenerationAnnotation holds the generation of the template.
	ResourceTemplateGenerationAnnotation = "resourcetemplate.karmada.io/generation"
	// ManagedAnnotation lists the annotations that come from the template.
	ManagedAnnotation = "resourcetemplate.karmada.io/managed-annotations"
	// ManagedLabels lists the labels that come from the template.
	ManagedLabels = "resourcetemplate.karmada.io/managed-labels"
	// RetainReplicasLabel set to "true" retains the number of replicas of the
	// member.
	RetainReplicasLabel = "resourcetemplate.karmada.io/retain-replicas"
	// ResourceTemplateClaimedByLabel names another controller that owns a template.
	ResourceTemplateClaimedByLabel = "resourcetemplate.karmada.io/claimed-by"
	// DeletionProtectionLabel set to "Always" forbids deletion.
	DeletionProtectionLabel = "resourcetemplate.karmada.io/deletion-protected"
	// DeletionProtectionAlways is the value that forbids deletion.
	DeletionProtectionAlways = "Always"
)

// Finalizers of bindings and Works.
const (
	BindingControllerFinalizer              = "karmada.io/binding-controller"
	ClusterBindingControllerFinalizer       = "karmada.io/cluster-resource-binding-controller"
	BindingDependenciesDistributorFinalizer = "karmada.io/binding-dependencies-distributor"
	ExecutionControllerFinalizer            = "karmada.io/execution-controller"
)

package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Cluster is a member cluster.
//
// +genclient
// +genclient:nonNamespaced
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
type Cluster struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec describes the cluster and how the control plane connects to it.
	Spec ClusterSpec `json:"spec"`

	// Status is the observed state of the cluster.
	// +optional
	Status ClusterStatus `json:"status,omitempty"`
}

// ClusterList is a list of Cluster.
//
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
type ClusterList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Cluster `json:"items"`
}

// ClusterSyncMode selects the component that applies objects to the cluster.
type ClusterSyncMode string

// The values of ClusterSyncMode.
const (
	// Push: the control plane applies objects to the cluster.
	Push ClusterSyncMode = "Push"
	// Pull: an agent in the cluster reads objects from the control plane and applies
	// them.
	Pull ClusterSyncMode = "Pull"
)

// ClusterSpec describes a cluster and how the control plane connects to it.
type ClusterSpec struct {
	// ID is the UID of the cluster's kube-system namespace; join and register set
	// it.
	// +optional
	ID string `json:"id,omitempty"`

	// SyncMode is Push or Pull.
	// +required
	SyncMode ClusterSyncMode `json:"syncMode"`

	// APIEndpoint is the URL of the cluster's API server, such as
	// https://10.10.10.10:6443.
	// +optional
	APIEndpoint string `json:"apiEndpoint,omitempty"`

	// SecretRef is the Secret with the credentials of the control plane: token and
	// caBundle.
	// +optional
	SecretRef *LocalSecretReference `json:"secretRef,omitempty"`

	// ImpersonatorSecretRef is the Secret with the token used to impersonate users
	// that come through the proxy.
	// +optional
	ImpersonatorSecretRef *LocalSecretReference `json:"impersonatorSecretRef,omitempty"`

	// InsecureSkipTLSVerification true skips verification of the API server's
	// certificate. Default false.
	// +optional
	InsecureSkipTLSVerification bool `json:"insecureSkipTLSVerification,omitempty"`

	// ProxyURL is the URL of the proxy for connections to the cluster; its scheme is
	// http, https or socks5.
	// +optional
	ProxyURL string `json:"proxyURL,omitempty"`

	// ProxyHeader are HTTP headers sent to that proxy; a value may hold several,
	// separated by commas.
	// +optional
	ProxyHeader map[string]string `json:"proxyHeader,omitempty"`

	// Provider is the cloud provider of the cluster.
	// +optional
	Provider string `json:"provider,omitempty"`

	// Region is the region of the cluster.
	// +optional
	Region string `json:"region,omitempty"`

	// Zone is deprecated; use Zones.
	// +optional
	Zone string `json:"zone,omitempty"`

	// Zones are the failure zones of the cluster.
	// +optional
	Zones []string `json:"zones,omitempty"`

	// Taints keep objects off the cluster unless they tolerate them.
	// +optional
	Taints []corev1.Taint `json:"taints,omitempty"`

	// ResourceModels group nodes into grades by their allocatable resources, to
	// estimate the capacity of the cluster.
	// +optional
	ResourceModels []ResourceModel `json:"resourceModels,omitempty"`
}

// LocalSecretReference refers to a Secret of the control plane.
type LocalSecretReference struct {
	// Namespace of the Secret.
	Namespace string `json:"namespace"`

	// Name of the Secret.
	Name string `json:"name"`
}

// ResourceModel is a grade of nodes.
type ResourceModel struct {
	// Grade is the number of the grade, from 0.
	// +required
	Grade uint `json:"grade"`

	// Ranges are the bounds of the grade by resource.
	// +required
	Ranges []ResourceModelRange `json:"ranges"`
}

// ResourceModelRange is the range of one resource of a grade: [min,max).
type ResourceModelRange struct {
	// Name of the resource.
	// +required
	Name corev1.ResourceName `json:"name"`

	// Min is the lower bound, inclusive.
	// +required
	Min resource.Quantity `json:"min"`

	// Max is the upper bound, exclusive.
	// +required
	Max resource.Quantity `json:"max"`
}

// Condition types of a Cluster.
const (
	// ClusterConditionReady reports whether the cluster is reachable and healthy.
	ClusterConditionReady = "Ready"
	// ClusterConditionCompleteAPIEnablements reports whether status.apiEnablements
	// is complete.
	ClusterConditionCompleteAPIEnablements = "CompleteAPIEnablements"
	// ClusterConditionOrphanedObjects reports whether a cluster has objects whose Works
	// the control plane does not have, as after it was restored from a backup or after
	// the cluster was abandoned and joined again.
	ClusterConditionOrphanedObjects = "OrphanedObjects"
	// ClusterConditionStoreRestored reports whether a cluster was restored from an older
	// copy of its store in the last ten minutes.
	ClusterConditionStoreRestored = "StoreRestored"
	// ClusterConditionObjectsStuck reports whether objects that leave a cluster stay there, or objects that no binding has, such as
	// namespaces, are not applied.
	ClusterConditionObjectsStuck = "ObjectsStuck"
	// ClusterConditionAPIEndpointAccepted reports whether the control plane has an address
	// of a cluster in Pull mode, after it refused the one of the agent.
	ClusterConditionAPIEndpointAccepted = "APIEndpointAccepted"
	// ClusterConditionAgentRefused reports whether the control plane refuses the agent of
	// a cluster in Pull mode the Works of its cluster.
	ClusterConditionAgentRefused = "AgentRefused"
	// ClusterConditionEvictionsStopped reports whether workloads are not evicted from a
	// cluster because many clusters became not Ready at once.
	ClusterConditionEvictionsStopped = "EvictionsStopped"
	// ServiceDomainNameResolutionReady reports whether the cluster resolves the DNS
	// names of Services.
	ServiceDomainNameResolutionReady = "ServiceDomainNameResolutionReady"
)

// Taint keys that the control plane sets.
const (
	TaintClusterUnschedulable = "cluster.karmada.io/unschedulable"
	TaintClusterNotReady      = "cluster.karmada.io/not-ready"
	TaintClusterUnreachable   = "cluster.karmada.io/unreachable"
	// TaintClusterFlapping is the key of the taint of clusters whose condition Ready changes often.
	TaintClusterFlapping = "cluster.karmada.io/flapping"
)

// CauseClusterNotReported is the type of the cause in the status details of an error
// about a cluster in Pull mode whose agent has not written its endpoint and
// credentials yet.
const CauseClusterNotReported = "ClusterNotReported"

// Names around a cluster.
const (
	// SecretTokenKey is the key of the bearer token in a cluster's Secret.
	SecretTokenKey = "token"
	// SecretCADataKey is the key of the CA bundle in a cluster's Secret.
	SecretCADataKey = "caBundle"
	// ClusterControllerFinalizer keeps a Cluster until its objects are deleted.
	ClusterControllerFinalizer = "karmada.io/cluster-controller"
	// ExecutionSpacePrefix starts the name of the namespace with a cluster's Works.
	ExecutionSpacePrefix = "karmada-es-"
	// NamespaceKarmadaSystem is the namespace of the control plane's own objects.
	NamespaceKarmadaSystem = "karmada-system"
	// NamespaceKarmadaCluster is the namespace of credentials and leases.
	NamespaceKarmadaCluster = "karmada-cluster"
	// DeleteOrphansAnnotation on a Cluster is the confirmation of a user that the
	// objects which its condition OrphanedObjects names are to be deleted; its value
	// is the one that the condition shows, which stands for exactly these objects.
	DeleteOrphansAnnotation = "cluster.karmada.io/delete-orphans"
	// ExecutionNamespaceLabel on an execution namespace holds the name of its Cluster while
	// that exists. The namespace cannot be deleted then.
	ExecutionNamespaceLabel = "cluster.karmada.io/execution-namespace-of"
	// ReadyChangesAnnotation on a Cluster holds when its condition Ready changed, the
	// oldest first, separated by commas, while clusters that change often are tainted.
	ReadyChangesAnnotation = "cluster.karmada.io/ready-changes"
	// FlappingUntilAnnotation on a Cluster holds when it loses the taint TaintClusterFlapping if its
	// condition Ready does not change until then, in RFC 3339.
	FlappingUntilAnnotation = "cluster.karmada.io/flapping-until"
	// FailingAnnotation, "true" on the Lease of a Cluster, reports that its agent does not reach it: the condition Ready follows when
	// that has lasted.
	FailingAnnotation = "cluster.karmada.io/failing"
	// CacheSourceAnnotation names the cluster that an object was read from.
	CacheSourceAnnotation = "resource.karmada.io/cached-from-cluster"
	// QueryFromClusterAnnotation is the annotation of metrics with the name of the
	// cluster that reported them.
	QueryFromClusterAnnotation = "resource.karmada.io/query-from-cluster"
)

// ClusterStatus is the observed state of a cluster.
type ClusterStatus struct {
	// KubernetesVersion is the version of the cluster's API server.
	// +optional
	KubernetesVersion string `json:"kubernetesVersion,omitempty"`

	// APIEnablements are the APIs that the cluster serves.
	// +optional
	APIEnablements []APIEnablement `json:"apiEnablements,omitempty"`

	// Conditions of the cluster.
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// NodeSummary counts the nodes of the cluster.
	// +optional
	NodeSummary *NodeSummary `json:"nodeSummary,omitempty"`

	// ResourceSummary is the sum of the resources of the cluster.
	// +optional
	ResourceSummary *ResourceSummary `json:"resourceSummary,omitempty"`

	// RemedyActions are the actions that Remedies request for the cluster.
	// +optional
	RemedyActions []string `json:"remedyActions,omitempty"`
}

// APIEnablement is a group and version that a cluster serves.
type APIEnablement struct {
	// GroupVersion, such as apps/v1.
	// +required
	GroupVersion string `json:"groupVersion"`

	// Resources of that group and version.
	// +optional
	Resources []APIResource `json:"resources,omitempty"`
}

// APIResource is a resource that a cluster serves.
type APIResource struct {
	// Name is the plural name.
	// +required
	Name string `json:"name"`

	// Kind of its objects.
	// +required
	Kind string `json:"kind"`
}

// NodeSummary counts the nodes of the cluster.
type NodeSummary struct {
	// TotalNum is the number of nodes.
	// +optional
	TotalNum int32 `json:"totalNum,omitempty"`

	// ReadyNum is the number of ready nodes.
	// +optional
	ReadyNum int32 `json:"readyNum,omitempty"`
}

// ResourceSummary is the sum of the resources of a cluster.
type ResourceSummary struct {
	// Allocatable is the sum of the allocatable resources of all nodes.
	// +optional
	Allocatable corev1.ResourceList `json:"allocatable,omitempty"`

	// Allocating is the sum of the requests of pods that are not bound to a node
	// yet.
	// +optional
	Allocating corev1.ResourceList `json:"allocating,omitempty"`

	// Allocated is the sum of the requests of pods that are bound to a node.
	// +optional
	Allocated corev1.ResourceList `json:"allocated,omitempty"`

	// AllocatableModelings are the numbers of nodes by grade.
	// +optional
	AllocatableModelings []AllocatableModeling `json:"allocatableModelings,omitempty"`
}

// AllocatableModeling is the number of nodes of one grade.
type AllocatableModeling struct {
	// Grade is the number of the grade, as in spec.resourceModels.
	// +required
	Grade uint `json:"grade"`

	// Count is the number of nodes of the grade.
	// +required
	Count int `json:"count"`
}

// ClusterProxyOptions are the options of a request to a cluster's proxy.
//
// +k8s:conversion-gen:explicit-from=net/url.Values
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
type ClusterProxyOptions struct {
	metav1.TypeMeta `json:",inline"`

	// Path is the path of the request in the cluster.
	// +optional
	Path string `json:"path,omitempty"`
}

// OtherOwner returns the name of a Cluster other than the named one that owns an
// object, or "" when there is none.
func OtherOwner(obj metav1.Object, cluster string) string {
	for _, owner := range obj.GetOwnerReferences() {
		gv, err := schema.ParseGroupVersion(owner.APIVersion)
		if err == nil && gv.Group == GroupName && owner.Kind == "Cluster" && owner.Name != cluster {
			return owner.Name
		}
	}
	return ""
}

// ReadyCondition returns the condition Ready of a cluster, or nil.
func (c *Cluster) ReadyCondition() *metav1.Condition {
	return meta.FindStatusCondition(c.Status.Conditions, ClusterConditionReady)
}

// Ready reports whether the condition Ready of a cluster is true.
func (c *Cluster) Ready() bool {
	return meta.IsStatusConditionTrue(c.Status.Conditions, ClusterConditionReady)
}

// ReadyStatus returns the status of the condition Ready of a cluster; Unknown if there is none.
func (c *Cluster) ReadyStatus() metav1.ConditionStatus {
	if ready := c.ReadyCondition(); ready != nil {
		return ready.Status
	}
	return metav1.ConditionUnknown
}

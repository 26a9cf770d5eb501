package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Cluster is a member cluster.
//
// +genclient
// +genclient:nonNamespaced
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
type Cluster struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec says how the cluster is reached and what it is.
	Spec ClusterSpec `json:"spec"`

	// Status is what was observed of the cluster.
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

// ClusterSyncMode says who carries objects to the cluster.
type ClusterSyncMode string

// The values of ClusterSyncMode.
const (
	// Push: the control plane writes to the cluster.
	Push ClusterSyncMode = "Push"
	// Pull: an agent in the cluster fetches from the control plane.
	Pull ClusterSyncMode = "Pull"
)

// ClusterSpec says how a cluster is reached and what it is.
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

	// InsecureSkipTLSVerification true skips the check of the cluster's
	// certificate. Default false.
	// +optional
	InsecureSkipTLSVerification bool `json:"insecureSkipTLSVerification,omitempty"`

	// ProxyURL is the proxy on the way to the cluster; http, https or socks5.
	// +optional
	ProxyURL string `json:"proxyURL,omitempty"`

	// ProxyHeader are headers for that proxy; a value may hold several, separated
	// by commas.
	// +optional
	ProxyHeader map[string]string `json:"proxyHeader,omitempty"`

	// Provider is the cloud provider.
	// +optional
	Provider string `json:"provider,omitempty"`

	// Region is the region.
	// +optional
	Region string `json:"region,omitempty"`

	// Zone is deprecated; use Zones.
	// +optional
	Zone string `json:"zone,omitempty"`

	// Zones are the failure zones.
	// +optional
	Zones []string `json:"zones,omitempty"`

	// Taints keep objects off the cluster unless they tolerate them.
	// +optional
	Taints []corev1.Taint `json:"taints,omitempty"`

	// ResourceModels grade nodes by size, for the estimation of capacity.
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

// ResourceModel is one grade of nodes.
type ResourceModel struct {
	// Grade is the number of the grade, from 0.
	// +required
	Grade uint `json:"grade"`

	// Ranges are the bounds of the grade by resource.
	// +required
	Ranges []ResourceModelRange `json:"ranges"`
}

// ResourceModelRange bounds one resource of a grade: [min,max).
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
	// ClusterConditionReady says whether the cluster answers and is healthy.
	ClusterConditionReady = "Ready"
	// ClusterConditionCompleteAPIEnablements says whether the list of its APIs is
	// complete.
	ClusterConditionCompleteAPIEnablements = "CompleteAPIEnablements"
	// ClusterConditionOrphanedObjects reports whether a cluster has objects whose Works
	// the control plane does not have, as after it was restored from a backup or after
	// the cluster was abandoned and joined again.
	ClusterConditionOrphanedObjects = "OrphanedObjects"
	// ServiceDomainNameResolutionReady says whether it resolves service names.
	ServiceDomainNameResolutionReady = "ServiceDomainNameResolutionReady"
)

// Taint keys that the control plane sets.
const (
	TaintClusterUnschedulable = "cluster.karmada.io/unschedulable"
	TaintClusterNotReady      = "cluster.karmada.io/not-ready"
	TaintClusterUnreachable   = "cluster.karmada.io/unreachable"
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
	// ClusterControllerFinalizer holds a Cluster until its objects are gone.
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
	// CacheSourceAnnotation names the cluster an object came from.
	CacheSourceAnnotation = "resource.karmada.io/cached-from-cluster"
)

// ClusterStatus is what was observed of a cluster.
type ClusterStatus struct {
	// KubernetesVersion is the cluster's version.
	// +optional
	KubernetesVersion string `json:"kubernetesVersion,omitempty"`

	// APIEnablements are the APIs that the cluster serves.
	// +optional
	APIEnablements []APIEnablement `json:"apiEnablements,omitempty"`

	// Conditions of the cluster.
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// NodeSummary counts nodes.
	// +optional
	NodeSummary *NodeSummary `json:"nodeSummary,omitempty"`

	// ResourceSummary adds up resources.
	// +optional
	ResourceSummary *ResourceSummary `json:"resourceSummary,omitempty"`

	// RemedyActions are actions that a Remedy asks for.
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

// NodeSummary counts nodes.
type NodeSummary struct {
	// TotalNum is the number of nodes.
	// +optional
	TotalNum int32 `json:"totalNum,omitempty"`

	// ReadyNum is the number of ready nodes.
	// +optional
	ReadyNum int32 `json:"readyNum,omitempty"`
}

// ResourceSummary adds up the resources of a cluster.
type ResourceSummary struct {
	// Allocatable is the sum over all nodes.
	// +optional
	Allocatable corev1.ResourceList `json:"allocatable,omitempty"`

	// Allocating is what pods ask for that have no node yet.
	// +optional
	Allocating corev1.ResourceList `json:"allocating,omitempty"`

	// Allocated is what pods on nodes ask for.
	// +optional
	Allocated corev1.ResourceList `json:"allocated,omitempty"`

	// AllocatableModelings counts nodes by grade.
	// +optional
	AllocatableModelings []AllocatableModeling `json:"allocatableModelings,omitempty"`
}

// AllocatableModeling counts the nodes of one grade.
type AllocatableModeling struct {
	// Grade is the grade.
	// +required
	Grade uint `json:"grade"`

	// Count is the number of nodes.
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

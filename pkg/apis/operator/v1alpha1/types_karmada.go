package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

const (
	// KarmadaFinalizer is on a Karmada until its control plane is removed.
	KarmadaFinalizer = "operator.karmada.io/finalizer"
	// DisableCascadingDeletionLabel has the deletion of a Karmada leave its control plane, unless the value is "false".
	DisableCascadingDeletionLabel = "operator.karmada.io/disable-cascading-deletion"
)

// Karmada is a control plane in a host cluster.
//
// +genclient
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=karmadas,scope=Namespaced,categories={karmada-io}
// +kubebuilder:printcolumn:JSONPath=`.status.conditions[?(@.type=="Ready")].status`,name="READY",type=string
// +kubebuilder:printcolumn:JSONPath=`.metadata.creationTimestamp`,name="AGE",type=date
// +kubebuilder:subresource:status
// +kubebuilder:storageversion
type Karmada struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec is the control plane that is wanted.
	// +optional
	Spec KarmadaSpec `json:"spec,omitempty"`

	// Status is what the operator reports.
	// +optional
	Status KarmadaStatus `json:"status,omitempty"`
}

// KarmadaList is a list of Karmada.
//
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
// +kubebuilder:object:root=true
type KarmadaList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Karmada `json:"items"`
}

// KarmadaSpec is the control plane that is wanted.
type KarmadaSpec struct {
	// HostCluster is the cluster in which the control plane runs. Default: that of the operator.
	// +optional
	HostCluster *HostCluster `json:"hostCluster,omitempty"`

	// PrivateRegistry has all images.
	// +optional
	PrivateRegistry *ImageRegistry `json:"privateRegistry,omitempty"`

	// Components are the parts of the control plane.
	// +optional
	Components *KarmadaComponents `json:"components,omitempty"`

	// FeatureGates of all roles that have such a gate.
	// +optional
	FeatureGates map[string]bool `json:"featureGates,omitempty"`

	// CRDTarball is an archive with the APIs of the federation. Default: those that are built in.
	// +optional
	CRDTarball *CRDTarball `json:"crdTarball,omitempty"`

	// CustomCertificate are settings of certificates.
	// +optional
	CustomCertificate *CustomCertificate `json:"customCertificate,omitempty"`

	// Suspend has the operator leave the control plane as it is.
	// +optional
	Suspend *bool `json:"suspend,omitempty"`
}

// HostCluster is the cluster in which a control plane runs.
type HostCluster struct {
	// APIEndpoint replaces the server of the kubeconfig.
	// +optional
	APIEndpoint string `json:"apiEndpoint,omitempty"`

	// SecretRef is a Secret with the key "kubeconfig". Nil, or without a name, is the cluster of the operator.
	// +optional
	SecretRef *LocalSecretReference `json:"secretRef,omitempty"`

	// Networking of the cluster.
	// +optional
	Networking *Networking `json:"networking,omitempty"`
}

// Networking of a host cluster.
type Networking struct {
	// DNSDomain of the cluster. Default: cluster.local.
	// +optional
	DNSDomain *string `json:"dnsDomain,omitempty"`
}

// ImageRegistry is a registry of images.
type ImageRegistry struct {
	// Registry is its address, which replaces that in the names of images.
	// +required
	Registry string `json:"registry"`
}

// DownloadPolicy is when an archive is downloaded.
//
// +kubebuilder:validation:Enum=Always;IfNotPresent
type DownloadPolicy string

// The download policies.
const (
	DownloadAlways       DownloadPolicy = "Always"
	DownloadIfNotPresent DownloadPolicy = "IfNotPresent"
)

// CRDTarball is an archive with the APIs of the federation.
type CRDTarball struct {
	// HTTPSource is where it is.
	// +optional
	HTTPSource *HTTPSource `json:"httpSource,omitempty"`

	// CRDDownloadPolicy is when it is downloaded.
	// +kubebuilder:default=IfNotPresent
	// +optional
	CRDDownloadPolicy *DownloadPolicy `json:"crdDownloadPolicy,omitempty"`
}

// HTTPSource is a file on an HTTP server.
type HTTPSource struct {
	// URL of the file.
	// +required
	URL string `json:"url"`

	// Proxy through which it is downloaded.
	// +optional
	Proxy *ProxyConfig `json:"proxy,omitempty"`
}

// ProxyConfig is a proxy.
type ProxyConfig struct {
	// ProxyURL is its address.
	// +required
	ProxyURL string `json:"proxyURL"`
}

// CustomCertificate are settings of certificates.
type CustomCertificate struct {
	// APIServerCACert is a Secret with the keys tls.crt and tls.key: the authority of the control plane.
	// +optional
	APIServerCACert *LocalSecretReference `json:"apiServerCACert,omitempty"`

	// LeafCertValidityDays is how long certificates other than authorities are valid, in days. Default: 365.
	// +kubebuilder:validation:Minimum=1
	// +optional
	LeafCertValidityDays *int32 `json:"leafCertValidityDays,omitempty"`
}

// KarmadaComponents are the parts of a control plane.
type KarmadaComponents struct {
	// Etcd is the store.
	// +required
	Etcd *Etcd `json:"etcd"`

	// KarmadaAPIServer is the API server.
	// +optional
	KarmadaAPIServer *KarmadaAPIServer `json:"karmadaAPIServer,omitempty"`

	// KarmadaAggregatedAPIServer is the API server of clusters.
	// +optional
	KarmadaAggregatedAPIServer *KarmadaAggregatedAPIServer `json:"karmadaAggregatedAPIServer,omitempty"`

	// KubeControllerManager are the controllers of Kubernetes.
	// +optional
	KubeControllerManager *KubeControllerManager `json:"kubeControllerManager,omitempty"`

	// KarmadaControllerManager are the controllers of the federation.
	// +optional
	KarmadaControllerManager *KarmadaControllerManager `json:"karmadaControllerManager,omitempty"`

	// KarmadaScheduler is the scheduler.
	// +optional
	KarmadaScheduler *KarmadaScheduler `json:"karmadaScheduler,omitempty"`

	// KarmadaWebhook is the webhook server.
	// +optional
	KarmadaWebhook *KarmadaWebhook `json:"karmadaWebhook,omitempty"`

	// KarmadaDescheduler is installed if it is set.
	// +optional
	KarmadaDescheduler *KarmadaDescheduler `json:"karmadaDescheduler,omitempty"`

	// KarmadaSearch is installed if it is set.
	// +optional
	KarmadaSearch *KarmadaSearch `json:"karmadaSearch,omitempty"`

	// KarmadaMetricsAdapter is always installed. Default: 2 replicas.
	// +optional
	KarmadaMetricsAdapter *KarmadaMetricsAdapter `json:"karmadaMetricsAdapter,omitempty"`
}

// Etcd is the store: one of the two.
type Etcd struct {
	// Local is installed. Default, without External.
	// +optional
	Local *LocalEtcd `json:"local,omitempty"`

	// External exists already.
	// +optional
	External *ExternalEtcd `json:"external,omitempty"`
}

// LocalEtcd is an etcd that is installed.
type LocalEtcd struct {
	CommonSettings `json:",inline"`

	// VolumeData is where its data is. Default: an emptyDir, which is lost with the pod.
	// +optional
	VolumeData *VolumeData `json:"volumeData,omitempty"`

	// ServerCertSANs are further names in the certificate for clients.
	// +optional
	ServerCertSANs []string `json:"serverCertSANs,omitempty"`

	// PeerCertSANs are further names in the certificate for members.
	// +optional
	PeerCertSANs []string `json:"peerCertSANs,omitempty"`
}

// VolumeData is where data is: one of the three.
type VolumeData struct {
	// VolumeClaim is the template of a claim for each pod.
	// +optional
	VolumeClaim *corev1.PersistentVolumeClaimTemplate `json:"volumeClaim,omitempty"`

	// HostPath is a directory of the node.
	// +optional
	HostPath *corev1.HostPathVolumeSource `json:"hostPath,omitempty"`

	// EmptyDir is lost with the pod.
	// +optional
	EmptyDir *corev1.EmptyDirVolumeSource `json:"emptyDir,omitempty"`
}

// ExternalEtcd is an etcd that exists already.
type ExternalEtcd struct {
	// Endpoints are its URLs.
	// +required
	Endpoints []string `json:"endpoints"`

	// SecretRef is a Secret with the keys ca.crt, tls.crt and tls.key.
	// +required
	SecretRef LocalSecretReference `json:"secretRef"`
}

// KarmadaAPIServer is the API server.
type KarmadaAPIServer struct {
	CommonSettings `json:",inline"`

	// ServiceSubnet is the range of the addresses of its Services. Default: 10.96.0.0/12.
	// +optional
	ServiceSubnet *string `json:"serviceSubnet,omitempty"`

	// ServiceType of its own Service in the host cluster.
	// +kubebuilder:default=ClusterIP
	// +kubebuilder:validation:Enum=ClusterIP;NodePort;LoadBalancer
	// +optional
	ServiceType corev1.ServiceType `json:"serviceType,omitempty"`

	// LoadBalancerClass of the Service of type LoadBalancer.
	// +optional
	LoadBalancerClass *string `json:"loadBalancerClass,omitempty"`

	// ServiceAnnotations of the Service.
	// +optional
	ServiceAnnotations map[string]string `json:"serviceAnnotations,omitempty"`

	// ExtraArgs replace arguments, or are added: by name, without dashes.
	// +optional
	ExtraArgs map[string]string `json:"extraArgs,omitempty"`

	// ExtraVolumes of the pods.
	// +optional
	ExtraVolumes []corev1.Volume `json:"extraVolumes,omitempty"`

	// ExtraVolumeMounts of the container of the API server.
	// +optional
	ExtraVolumeMounts []corev1.VolumeMount `json:"extraVolumeMounts,omitempty"`

	// CertSANs are further names in the certificate.
	// +optional
	CertSANs []string `json:"certSANs,omitempty"`

	// FeatureGates of the API server.
	// +optional
	FeatureGates map[string]bool `json:"featureGates,omitempty"`

	// SidecarContainers are further containers of the pods.
	// +optional
	SidecarContainers []corev1.Container `json:"sidecarContainers,omitempty"`
}

// KarmadaAggregatedAPIServer is the API server of clusters.
type KarmadaAggregatedAPIServer struct {
	CommonSettings `json:",inline"`

	// ExtraArgs replace arguments, or are added: by name, without dashes.
	// +optional
	ExtraArgs map[string]string `json:"extraArgs,omitempty"`

	// CertSANs are further names in the certificate.
	// +optional
	CertSANs []string `json:"certSANs,omitempty"`

	// FeatureGates of the server.
	// +optional
	FeatureGates map[string]bool `json:"featureGates,omitempty"`
}

// KubeControllerManager are the controllers of Kubernetes.
type KubeControllerManager struct {
	CommonSettings `json:",inline"`

	// Controllers that run. Default: those that a control plane without nodes needs.
	// +optional
	Controllers []string `json:"controllers,omitempty"`

	// ExtraArgs replace arguments, or are added: by name, without dashes.
	// +optional
	ExtraArgs map[string]string `json:"extraArgs,omitempty"`

	// FeatureGates of the controllers.
	// +optional
	FeatureGates map[string]bool `json:"featureGates,omitempty"`
}

// KarmadaControllerManager are the controllers of the federation.
type KarmadaControllerManager struct {
	CommonSettings `json:",inline"`

	// Controllers that run. Default: all that are on by default.
	// +optional
	Controllers []string `json:"controllers,omitempty"`

	// ExtraArgs replace arguments, or are added: by name, without dashes.
	// +optional
	ExtraArgs map[string]string `json:"extraArgs,omitempty"`

	// FeatureGates of the controllers.
	// +optional
	FeatureGates map[string]bool `json:"featureGates,omitempty"`
}

// KarmadaScheduler is the scheduler.
type KarmadaScheduler struct {
	CommonSettings `json:",inline"`

	// ExtraArgs replace arguments, or are added: by name, without dashes.
	// +optional
	ExtraArgs map[string]string `json:"extraArgs,omitempty"`

	// FeatureGates of the scheduler.
	// +optional
	FeatureGates map[string]bool `json:"featureGates,omitempty"`
}

// KarmadaWebhook is the webhook server.
type KarmadaWebhook struct {
	CommonSettings `json:",inline"`

	// ExtraArgs replace arguments, or are added: by name, without dashes.
	// +optional
	ExtraArgs map[string]string `json:"extraArgs,omitempty"`
}

// KarmadaDescheduler is the descheduler.
type KarmadaDescheduler struct {
	CommonSettings `json:",inline"`

	// ExtraArgs replace arguments, or are added: by name, without dashes.
	// +optional
	ExtraArgs map[string]string `json:"extraArgs,omitempty"`
}

// KarmadaSearch is the API server of ResourceRegistries.
type KarmadaSearch struct {
	CommonSettings `json:",inline"`

	// ExtraArgs replace arguments, or are added: by name, without dashes.
	// +optional
	ExtraArgs map[string]string `json:"extraArgs,omitempty"`
}

// KarmadaMetricsAdapter serves metrics of members.
type KarmadaMetricsAdapter struct {
	CommonSettings `json:",inline"`

	// ExtraArgs replace arguments, or are added: by name, without dashes.
	// +optional
	ExtraArgs map[string]string `json:"extraArgs,omitempty"`
}

// CommonSettings are those of all parts.
type CommonSettings struct {
	Image `json:",inline"`

	// ImagePullPolicy of the container. Default: IfNotPresent.
	// +optional
	ImagePullPolicy corev1.PullPolicy `json:"imagePullPolicy,omitempty"`

	// Replicas is the number of pods. Default: 1.
	// +optional
	Replicas *int32 `json:"replicas,omitempty"`

	// Labels of the workload and its pods.
	// +optional
	Labels map[string]string `json:"labels,omitempty"`

	// Annotations of the workload and its pods.
	// +optional
	Annotations map[string]string `json:"annotations,omitempty"`

	// Resources of the container.
	// +optional
	Resources corev1.ResourceRequirements `json:"resources,omitempty"`

	// PriorityClassName of the pods.
	// +kubebuilder:default="system-node-critical"
	// +optional
	PriorityClassName string `json:"priorityClassName,omitempty"`

	// PodDisruptionBudgetConfig of the pods. Default: none.
	// +optional
	PodDisruptionBudgetConfig *PodDisruptionBudgetConfig `json:"podDisruptionBudgetConfig,omitempty"`

	// Tolerations of the pods, in place of the default ones.
	// +optional
	Tolerations []corev1.Toleration `json:"tolerations,omitempty"`

	// Affinity of the pods.
	// +optional
	Affinity *corev1.Affinity `json:"affinity,omitempty"`
}

// PodDisruptionBudgetConfig is how many pods an eviction leaves: exactly one of the two.
//
// +kubebuilder:validation:XValidation:rule="has(self.minAvailable) || has(self.maxUnavailable)",message="either minAvailable or maxUnavailable must be set"
// +kubebuilder:validation:XValidation:rule="!(has(self.minAvailable) && has(self.maxUnavailable))",message="minAvailable and maxUnavailable are mutually exclusive"
type PodDisruptionBudgetConfig struct {
	// MinAvailable is the number or part of pods that stay.
	// +optional
	MinAvailable *intstr.IntOrString `json:"minAvailable,omitempty"`

	// MaxUnavailable is the number or part of pods that may go.
	// +optional
	MaxUnavailable *intstr.IntOrString `json:"maxUnavailable,omitempty"`
}

// Image is the image of a part.
type Image struct {
	// ImageRepository is the name of the image without a tag.
	// +optional
	ImageRepository string `json:"imageRepository,omitempty"`

	// ImageTag is its tag.
	// +optional
	ImageTag string `json:"imageTag,omitempty"`
}

// LocalSecretReference names a Secret.
type LocalSecretReference struct {
	// Namespace of the Secret.
	// +optional
	Namespace string `json:"namespace,omitempty"`

	// Name of the Secret.
	// +optional
	Name string `json:"name,omitempty"`
}

// ConditionType is the type of a condition of a Karmada.
type ConditionType string

// Ready reports whether the control plane is as the spec has it, and works.
const Ready ConditionType = "Ready"

// Reasons of the condition Ready.
const (
	ReasonProgressing     = "Progressing"
	ReasonCompleted       = "Completed"
	ReasonFailed          = "Failed"
	ReasonValidationError = "ValidationError"
)

// KarmadaStatus is what the operator reports.
type KarmadaStatus struct {
	// ObservedGeneration is the generation that the status is about.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// SecretRef is a Secret with the administrator's kubeconfig, under the key "karmada.config".
	// +optional
	SecretRef *LocalSecretReference `json:"secretRef,omitempty"`

	// KarmadaVersion is the version of the roles of Karmada.
	// +optional
	KarmadaVersion string `json:"karmadaVersion,omitempty"`

	// KubernetesVersion is the version of the API server.
	// +optional
	KubernetesVersion string `json:"kubernetesVersion,omitempty"`

	// Conditions are Ready.
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// APIServerService is the Service of the API server.
	// +optional
	APIServerService *APIServerService `json:"apiServerService,omitempty"`
}

// APIServerService is the Service of the API server.
type APIServerService struct {
	// Name of the Service.
	// +required
	Name string `json:"name"`
}

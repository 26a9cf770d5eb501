package follow

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/karmada-toolkit/karmada/internal/quantity"
)

// Views of nodes and pods have the fields from which free resources are computed. They are a small part of the objects, and quantities are
// text of the member, with which the decoder of the complete types would compute before it can be checked.

// Meta is the metadata that a reflector needs.
type Meta struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
}

// Node is a node.
type Node struct {
	Meta `json:",inline"`
	Spec struct {
		Taints        []corev1.Taint `json:"taints,omitempty"`
		Unschedulable bool           `json:"unschedulable,omitempty"`
	} `json:"spec,omitempty"`
	Status struct {
		Allocatable Quantities `json:"allocatable,omitempty"`
		Conditions  []struct {
			Type   corev1.NodeConditionType `json:"type"`
			Status corev1.ConditionStatus   `json:"status"`
		} `json:"conditions,omitempty"`
	} `json:"status,omitempty"`
}

// DeepCopyObject implements runtime.Object. Views are not copied.
func (n *Node) DeepCopyObject() runtime.Object { return n }

// NodeList is a list of nodes.
type NodeList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Node `json:"items"`
}

// DeepCopyObject implements runtime.Object. Views are not copied.
func (l *NodeList) DeepCopyObject() runtime.Object { return l }

// Pod is a pod.
type Pod struct {
	Meta `json:",inline"`
	Spec struct {
		NodeName       string      `json:"nodeName,omitempty"`
		Containers     []container `json:"containers,omitempty"`
		InitContainers []container `json:"initContainers,omitempty"`
		Overhead       Quantities  `json:"overhead,omitempty"`
		Resources      *requests   `json:"resources,omitempty"`
	} `json:"spec,omitempty"`
	Status struct {
		Phase      corev1.PodPhase `json:"phase,omitempty"`
		StartTime  *metav1.Time    `json:"startTime,omitempty"`
		Conditions []struct {
			Type               corev1.PodConditionType `json:"type"`
			Status             corev1.ConditionStatus  `json:"status"`
			Reason             string                  `json:"reason,omitempty"`
			LastTransitionTime metav1.Time             `json:"lastTransitionTime,omitempty"`
		} `json:"conditions,omitempty"`
	} `json:"status,omitempty"`
}

type container struct {
	Name          string                         `json:"name"`
	RestartPolicy *corev1.ContainerRestartPolicy `json:"restartPolicy,omitempty"`
	Resources     requests                       `json:"resources,omitempty"`
}

type requests struct {
	Requests Quantities `json:"requests,omitempty"`
}

// DeepCopyObject implements runtime.Object. Views are not copied.
func (p *Pod) DeepCopyObject() runtime.Object { return p }

// PodList is a list of pods.
type PodList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Pod `json:"items"`
}

// DeepCopyObject implements runtime.Object. Views are not copied.
func (l *PodList) DeepCopyObject() runtime.Object { return l }

// Quantities are quantities by resource. Those that cannot be used count as 0.
type Quantities map[corev1.ResourceName]quantity.Lenient

const (
	// MaxResourceNames limits the resources of a node, or of a container.
	MaxResourceNames = 64
	maxResourceName  = 253
)

// List returns the quantities of resources that are counted.
func (q Quantities) List() corev1.ResourceList {
	if len(q) == 0 || len(q) > MaxResourceNames {
		return nil
	}
	out := make(corev1.ResourceList, len(q))
	for name, value := range q {
		if Counted(name) && len(name) <= maxResourceName && value.Sign() >= 0 {
			out[name] = value.Quantity
		}
	}
	return out
}

// Object returns a Node with the fields of the view.
func (n *Node) Object() *corev1.Node {
	out := &corev1.Node{ObjectMeta: n.ObjectMeta, Status: corev1.NodeStatus{Allocatable: n.Status.Allocatable.List()}}
	out.Spec.Taints, out.Spec.Unschedulable = n.Spec.Taints, n.Spec.Unschedulable
	return out
}

// Counted reports whether schedulers count a resource.
func Counted(name corev1.ResourceName) bool {
	switch name {
	case corev1.ResourceCPU, corev1.ResourceMemory, corev1.ResourceEphemeralStorage, corev1.ResourcePods:
		return true
	}
	s := string(name)
	return strings.HasPrefix(s, corev1.ResourceHugePagesPrefix) || strings.HasPrefix(s, corev1.ResourceAttachableVolumesPrefix) ||
		strings.Contains(s, "/") && !strings.HasPrefix(s, corev1.DefaultResourceRequestsPrefix)
}

// Object returns a Pod with the fields of the view.
func (p *Pod) Object() *corev1.Pod {
	out := &corev1.Pod{ObjectMeta: p.ObjectMeta, Spec: corev1.PodSpec{NodeName: p.Spec.NodeName, Overhead: p.Spec.Overhead.List()}}
	if p.Spec.Resources != nil {
		out.Spec.Resources = &corev1.ResourceRequirements{Requests: p.Spec.Resources.Requests.List()}
	}
	out.Spec.Containers = containers(p.Spec.Containers)
	out.Spec.InitContainers = containers(p.Spec.InitContainers)
	out.Status.Phase, out.Status.StartTime = p.Status.Phase, p.Status.StartTime
	for _, c := range p.Status.Conditions {
		out.Status.Conditions = append(out.Status.Conditions, corev1.PodCondition{
			Type: c.Type, Status: c.Status, Reason: c.Reason, LastTransitionTime: c.LastTransitionTime,
		})
	}
	return out
}

// maxContainers limits the containers of a pod that are counted. The API server admits
// fewer.
const maxContainers = 1000

func containers(views []container) []corev1.Container {
	views = views[:min(len(views), maxContainers)]
	out := make([]corev1.Container, len(views))
	for i := range views {
		v := &views[i]
		out[i] = corev1.Container{Name: v.Name, RestartPolicy: v.RestartPolicy, Resources: corev1.ResourceRequirements{Requests: v.Resources.Requests.List()}}
	}
	return out
}

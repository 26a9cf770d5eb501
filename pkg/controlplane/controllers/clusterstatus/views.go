package clusterstatus

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"

	"github.com/karmada-toolkit/karmada/internal/quantity"
	"github.com/karmada-toolkit/karmada/pkg/member/access"
)

// Views decode the fields of nodes and pods that are summed. They are a small part of
// the objects, and quantities are text of the member, with which the decoder of the
// complete types would compute before it can be checked.

// viewMeta is the metadata that a reflector needs.
type viewMeta struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
}

// nodeView is a node.
type nodeView struct {
	viewMeta `json:",inline"`
	Status   struct {
		Allocatable quantities `json:"allocatable,omitempty"`
		Conditions  []struct {
			Type   corev1.NodeConditionType `json:"type"`
			Status corev1.ConditionStatus   `json:"status"`
		} `json:"conditions,omitempty"`
	} `json:"status,omitempty"`
}

// DeepCopyObject implements runtime.Object. Views are not copied.
func (n *nodeView) DeepCopyObject() runtime.Object { return n }

// nodeViewList is a list of nodes.
type nodeViewList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []nodeView `json:"items"`
}

// DeepCopyObject implements runtime.Object. Views are not copied.
func (l *nodeViewList) DeepCopyObject() runtime.Object { return l }

// podView is a pod.
type podView struct {
	viewMeta `json:",inline"`
	Spec     struct {
		NodeName       string          `json:"nodeName,omitempty"`
		Containers     []containerView `json:"containers,omitempty"`
		InitContainers []containerView `json:"initContainers,omitempty"`
		Overhead       quantities      `json:"overhead,omitempty"`
		Resources      *resourcesView  `json:"resources,omitempty"`
	} `json:"spec,omitempty"`
}

type containerView struct {
	RestartPolicy *corev1.ContainerRestartPolicy `json:"restartPolicy,omitempty"`
	Resources     resourcesView                  `json:"resources,omitempty"`
}

type resourcesView struct {
	Requests quantities `json:"requests,omitempty"`
}

// DeepCopyObject implements runtime.Object. Views are not copied.
func (p *podView) DeepCopyObject() runtime.Object { return p }

// podViewList is a list of pods.
type podViewList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []podView `json:"items"`
}

// DeepCopyObject implements runtime.Object. Views are not copied.
func (l *podViewList) DeepCopyObject() runtime.Object { return l }

type quantities map[corev1.ResourceName]quantity.Lenient

const (
	// maxResourceNames limits the resources of a node, or of a container.
	maxResourceNames = 64
	maxResourceName  = 253
)

// list returns the quantities of resources that are counted.
func (q quantities) list() corev1.ResourceList {
	if len(q) == 0 || len(q) > maxResourceNames {
		return nil
	}
	out := make(corev1.ResourceList, len(q))
	for name, value := range q {
		if counted(name) && len(name) <= maxResourceName && value.Sign() >= 0 {
			out[name] = value.Quantity
		}
	}
	return out
}

// pod returns a Pod with the fields from which its requests are computed.
func (p *podView) pod() *corev1.Pod {
	out := &corev1.Pod{Spec: corev1.PodSpec{NodeName: p.Spec.NodeName, Overhead: p.Spec.Overhead.list()}}
	if p.Spec.Resources != nil {
		out.Spec.Resources = &corev1.ResourceRequirements{Requests: p.Spec.Resources.Requests.list()}
	}
	out.Spec.Containers = containers(p.Spec.Containers)
	out.Spec.InitContainers = containers(p.Spec.InitContainers)
	return out
}

// maxContainers limits the containers of a pod that are counted. The API server admits
// fewer.
const maxContainers = 1000

func containers(views []containerView) []corev1.Container {
	views = views[:min(len(views), maxContainers)]
	out := make([]corev1.Container, len(views))
	for i := range views {
		out[i] = corev1.Container{RestartPolicy: views[i].RestartPolicy, Resources: corev1.ResourceRequirements{Requests: views[i].Resources.Requests.list()}}
	}
	return out
}

// viewClient lists and watches nodes and pods.
type viewClient struct {
	rest rest.Interface
	err  error
}

func newViewClient(member *access.Member) *viewClient {
	scheme := runtime.NewScheme()
	gv := schema.GroupVersion{Version: "v1"}
	for kind, obj := range map[string]runtime.Object{
		"Node": &nodeView{}, "NodeList": &nodeViewList{}, "Pod": &podView{}, "PodList": &podViewList{},
	} {
		scheme.AddKnownTypeWithName(gv.WithKind(kind), obj)
	}
	metav1.AddToGroupVersion(scheme, gv)
	cfg := rest.CopyConfig(member.Config())
	cfg.APIPath, cfg.GroupVersion = "/api", &gv
	cfg.NegotiatedSerializer = serializer.NewCodecFactory(scheme).WithoutConversion()
	client, err := rest.RESTClientForConfigAndClient(cfg, member.HTTP())
	if err != nil {
		return &viewClient{err: fmt.Errorf("opening cluster %s: %w", member.Name(), err)}
	}
	return &viewClient{rest: client}
}

func (c *viewClient) list(ctx context.Context, resource string, o metav1.ListOptions, into runtime.Object) (runtime.Object, error) {
	if c.err != nil {
		return nil, c.err
	}
	return into, c.rest.Get().Resource(resource).VersionedParams(&o, metav1.ParameterCodec).Do(ctx).Into(into)
}

func (c *viewClient) watch(ctx context.Context, resource string, o metav1.ListOptions) (watch.Interface, error) {
	if c.err != nil {
		return nil, c.err
	}
	o.Watch = true
	return c.rest.Get().Resource(resource).VersionedParams(&o, metav1.ParameterCodec).Watch(ctx)
}

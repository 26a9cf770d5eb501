// Package usage reads the usage of pods and nodes from the API metrics.k8s.io of clusters that may answer anything.
package usage

import (
	"context"
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/metrics/pkg/apis/metrics/v1beta1"

	"github.com/karmada-toolkit/karmada/internal/kube"
	"github.com/karmada-toolkit/karmada/internal/quantity"
)

// Query selects pods or nodes.
type Query struct {
	// Namespace is that of pods. Empty means all.
	Namespace string
	// Name is that of one object. Optional.
	Name string
	// Labels and Fields are selectors. Optional.
	Labels, Fields string
	// TooLarge reports whether an error is due to the size of a response. If it does, the pods of all namespaces are read
	// by namespace, since metrics-server has no pages. Optional.
	TooLarge func(error) bool
}

// Limits of what is read by namespace.
const (
	maxNamespaces = 10_000
	maxPods       = 100_000
)

// request returns a request for a resource.
func (q Query) request(c rest.Interface, resource string) *rest.Request {
	req := c.Get().AbsPath("/apis", v1beta1.SchemeGroupVersion.Group, v1beta1.SchemeGroupVersion.Version).
		NamespaceIfScoped(q.Namespace, q.Namespace != "").Resource(resource)
	if q.Name != "" {
		return req.Name(q.Name)
	}
	if q.Labels != "" {
		req = req.Param("labelSelector", q.Labels)
	}
	if q.Fields != "" {
		req = req.Param("fieldSelector", q.Fields)
	}
	return req
}

// Pods returns the usage of the pods that a query selects.
func Pods(ctx context.Context, c rest.Interface, q Query) ([]v1beta1.PodMetrics, error) {
	pods, err := podsOf(ctx, c, q)
	if err == nil || q.TooLarge == nil || q.Namespace != "" || !q.TooLarge(err) {
		return pods, err
	}
	names, err := namespaces(ctx, c)
	if err != nil {
		return nil, err
	}
	for _, q.Namespace = range names {
		more, err := podsOf(ctx, c, q)
		if err != nil {
			return nil, err
		}
		if pods = append(pods, more...); len(pods) > maxPods {
			return nil, fmt.Errorf("the usage of more than %d pods is too large", maxPods)
		}
	}
	return pods, nil
}

// namespaces returns the names of all namespaces.
func namespaces(ctx context.Context, c rest.Interface) ([]string, error) {
	var out []string
	for next := ""; ; {
		req := c.Get().AbsPath("/api/v1/namespaces").Param("limit", "500").
			SetHeader("Accept", "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json")
		if next != "" {
			req = req.Param("continue", next)
		}
		data, err := kube.Body(ctx, req)
		if err != nil {
			return nil, err
		}
		list := metav1.PartialObjectMetadataList{}
		if err := json.Unmarshal(data, &list); err != nil {
			return nil, fmt.Errorf("reading namespaces: %w", err)
		}
		for i := range list.Items {
			out = append(out, list.Items[i].Name)
		}
		if next = list.Continue; next == "" {
			return out, nil
		}
		if len(out) > maxNamespaces || len(list.Items) == 0 {
			return nil, fmt.Errorf("the list of namespaces does not end after %d", len(out))
		}
	}
}

func podsOf(ctx context.Context, c rest.Interface, q Query) ([]v1beta1.PodMetrics, error) {
	views, err := read[podView](ctx, c, q, "pods")
	if err != nil {
		return nil, err
	}
	out := make([]v1beta1.PodMetrics, 0, len(views))
	for _, v := range views {
		pod := v1beta1.PodMetrics{ObjectMeta: v.meta(), Timestamp: v.Timestamp, Window: v.Window, Containers: make([]v1beta1.ContainerMetrics, 0, len(v.Containers))}
		for _, c := range v.Containers {
			pod.Containers = append(pod.Containers, v1beta1.ContainerMetrics{Name: c.Name, Usage: corev1.ResourceList(c.Usage)})
		}
		out = append(out, pod)
	}
	return out, nil
}

// Nodes returns the usage of the nodes that a query selects.
func Nodes(ctx context.Context, c rest.Interface, q Query) ([]v1beta1.NodeMetrics, error) {
	views, err := read[nodeView](ctx, c, q, "nodes")
	if err != nil {
		return nil, err
	}
	out := make([]v1beta1.NodeMetrics, 0, len(views))
	for _, v := range views {
		out = append(out, v1beta1.NodeMetrics{ObjectMeta: v.meta(), Timestamp: v.Timestamp, Window: v.Window, Usage: corev1.ResourceList(v.Usage)})
	}
	return out, nil
}

// read returns the objects that a query selects: one, if it has a name.
func read[T any](ctx context.Context, c rest.Interface, q Query, resource string) ([]T, error) {
	data, err := kube.Body(ctx, q.request(c, resource))
	if err != nil {
		return nil, err
	}
	list := struct {
		Items []T `json:"items"`
	}{}
	if q.Name == "" {
		err = json.Unmarshal(data, &list)
	} else {
		list.Items = make([]T, 1)
		err = json.Unmarshal(data, &list.Items[0])
	}
	if err != nil {
		return nil, fmt.Errorf("reading the usage of %s: %w", resource, err)
	}
	return list.Items, nil
}

// view is what pods and nodes have in common.
type view struct {
	Metadata struct {
		Name              string            `json:"name"`
		Namespace         string            `json:"namespace"`
		Labels            map[string]string `json:"labels"`
		CreationTimestamp metav1.Time       `json:"creationTimestamp"`
	} `json:"metadata"`
	Timestamp metav1.Time     `json:"timestamp"`
	Window    metav1.Duration `json:"window"`
}

func (v *view) meta() metav1.ObjectMeta {
	m := &v.Metadata
	return metav1.ObjectMeta{Name: m.Name, Namespace: m.Namespace, Labels: m.Labels, CreationTimestamp: m.CreationTimestamp}
}

type podView struct {
	view
	Containers []struct {
		Name  string    `json:"name"`
		Usage Resources `json:"usage"`
	} `json:"containers"`
}

type nodeView struct {
	view
	Usage Resources `json:"usage"`
}

// Resources are quantities by resource. Decoding leaves out those that are none, such as NaN, negative ones, and those
// that take long to parse: a missing value is less harmful than 0.
type Resources corev1.ResourceList

// UnmarshalJSON implements json.Unmarshaler.
func (r *Resources) UnmarshalJSON(data []byte) error {
	texts := map[corev1.ResourceName]json.RawMessage{}
	if err := json.Unmarshal(data, &texts); err != nil {
		return err
	}
	*r = make(Resources, len(texts))
	for name, text := range texts {
		if q, err := quantity.ParseJSON(text); err == nil && q.Sign() >= 0 {
			(*r)[name] = q
		}
	}
	return nil
}

package metricsadapter

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/metrics/pkg/apis/metrics"
	"k8s.io/metrics/pkg/apis/metrics/v1beta1"

	"github.com/karmada-toolkit/karmada/internal/metricsapi"
	memberusage "github.com/karmada-toolkit/karmada/internal/usage"
	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
	"github.com/karmada-toolkit/karmada/pkg/member/access"
)

// usage is the usage of pods and nodes in all members.
type usage struct{ *requester }

var _ metricsapi.Source = &usage{}

// Pods implements metricsapi.Source.
func (u *usage) Pods(ctx context.Context, s metricsapi.Selection) ([]metrics.PodMetrics, error) {
	clusters, missing := u.concerned(func(c *cluster) presence { return anyOf(c.objects().pods, s) })
	lists, failed := each(ctx, u.requester, clusters, func(ctx context.Context, c *cluster) ([]metrics.PodMetrics, error) {
		items, err := memberusage.Pods(ctx, c.rest, memberusage.Query{Namespace: s.Namespace, Labels: s.Labels.String(), TooLarge: access.IsLimit})
		return c.podsOf(items, s), err
	})
	warn(ctx, append(missing, failed...))
	items := slices.Concat(lists...)
	slices.SortStableFunc(items, func(a, b metrics.PodMetrics) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	return items, nil
}

// Nodes implements metricsapi.Source.
func (u *usage) Nodes(ctx context.Context, s metricsapi.Selection) ([]metrics.NodeMetrics, error) {
	clusters, missing := u.concerned(func(c *cluster) presence { return anyOf(c.objects().nodes, s) })
	lists, failed := each(ctx, u.requester, clusters, func(ctx context.Context, c *cluster) ([]metrics.NodeMetrics, error) {
		items, err := memberusage.Nodes(ctx, c.rest, memberusage.Query{Labels: s.Labels.String()})
		return c.nodesOf(items, s), err
	})
	warn(ctx, append(missing, failed...))
	items := slices.Concat(lists...)
	slices.SortStableFunc(items, func(a, b metrics.NodeMetrics) int { return cmp.Compare(a.Name, b.Name) })
	return items, nil
}

// Pod implements metricsapi.Source.
func (u *usage) Pod(ctx context.Context, namespace, name string) (*metrics.PodMetrics, error) {
	owner, err := u.owner(ctx, corev1.Resource("pods"), name, func(c *cluster) presence { return one(c.objects().pods, namespace, name) })
	if err != nil {
		return nil, err
	}
	none := metricsapi.NoPodMetrics(namespace, name)
	found, err := readOne(ctx, u.requester, owner, none, func(ctx context.Context) ([]v1beta1.PodMetrics, error) {
		return memberusage.Pods(ctx, owner.rest, memberusage.Query{Namespace: namespace, Name: name})
	})
	switch {
	case err != nil:
		return nil, err
	case found.Name != name, found.Namespace != namespace:
		return nil, none
	}
	pod := owner.pod(found)
	return &pod, nil
}

// Node implements metricsapi.Source.
func (u *usage) Node(ctx context.Context, name string) (*metrics.NodeMetrics, error) {
	owner, err := u.owner(ctx, corev1.Resource("nodes"), name, func(c *cluster) presence { return one(c.objects().nodes, "", name) })
	if err != nil {
		return nil, err
	}
	none := metricsapi.NoNodeMetrics(name)
	found, err := readOne(ctx, u.requester, owner, none, func(ctx context.Context) ([]v1beta1.NodeMetrics, error) {
		return memberusage.Nodes(ctx, owner.rest, memberusage.Query{Name: name})
	})
	switch {
	case err != nil:
		return nil, err
	case found.Name != name:
		return nil, none
	}
	node := owner.node(found)
	return &node, nil
}

// concerned returns the clusters that have a selected object or may have one, and the reasons for those that are closed.
func (u *usage) concerned(has func(*cluster) presence) ([]*cluster, []absence) {
	clusters, missing := u.members.snapshot()
	return slices.DeleteFunc(clusters, func(c *cluster) bool { return has(c) == absent }), missing
}

// awaitObjects returns when the objects of clusters are listed that are watched since a moment ago. A cluster that takes longer
// is waited for once.
func awaitObjects(ctx context.Context, clusters []*cluster, has func(*cluster) presence) {
	for _, c := range clusters {
		c.objects() // all at the same time
	}
	for _, c := range clusters {
		for has(c) == unknown && c.starting(c.objects()) {
			select {
			case <-ctx.Done():
				return
			case <-time.After(firstObjectsInterval):
			}
		}
	}
}

// owner returns the cluster that has an object.
func (u *usage) owner(ctx context.Context, resource schema.GroupResource, name string, has func(*cluster) presence) (*cluster, error) {
	clusters, missing := u.members.snapshot()
	awaitObjects(ctx, clusters, has)
	var owner *cluster
	for _, c := range clusters {
		switch has(c) {
		case absent:
		case unknown:
			missing = append(missing, absence{c.member.Name(), "its objects are not listed yet"})
		case present:
			if owner != nil {
				return nil, apierrors.NewConflict(schema.GroupResource{Group: metrics.GroupName, Resource: resource.Resource}, name,
					fmt.Errorf("the %s(%s) found in more than one clusters", resource.Resource[:len(resource.Resource)-1], name))
			}
			owner = c
		}
	}
	warn(ctx, missing)
	if owner == nil {
		return nil, apierrors.NewNotFound(resource, name)
	}
	return owner, nil
}

// readOne returns the answer of one cluster about an object, and none if the cluster has no usage of it.
func readOne[T any](ctx context.Context, r *requester, c *cluster, none error, get func(ctx context.Context) ([]T, error)) (*T, error) {
	ctx, cancel := context.WithTimeout(ctx, r.timeout)
	defer cancel()
	values, err := get(ctx)
	switch {
	case err == nil:
		return &values[0], nil
	case apierrors.IsNotFound(err):
		return nil, none
	}
	logFailure(ctx, c, err)
	return nil, apierrors.NewServiceUnavailable(fmt.Sprintf("cluster(%s): %s", c.member.Name(), r.reason(err)))
}

// podsOf returns the usage that a cluster reports for selected pods. A cluster may report what was not requested, such
// as pods of namespaces that the client may not read. Labels need no check: the cluster selects by them.
func (c *cluster) podsOf(items []v1beta1.PodMetrics, s metricsapi.Selection) []metrics.PodMetrics {
	s.Labels = labels.Everything()
	out := make([]metrics.PodMetrics, 0, len(items))
	for i := range items {
		if s.Matches(items[i].Namespace, items[i].Name, nil) {
			out = append(out, c.pod(&items[i]))
		}
	}
	return out
}

func (c *cluster) nodesOf(items []v1beta1.NodeMetrics, s metricsapi.Selection) []metrics.NodeMetrics {
	s.Labels = labels.Everything()
	out := make([]metrics.NodeMetrics, 0, len(items))
	for i := range items {
		if s.Matches("", items[i].Name, nil) {
			out = append(out, c.node(&items[i]))
		}
	}
	return out
}

// pod returns the usage of a pod with the name of the cluster.
func (c *cluster) pod(in *v1beta1.PodMetrics) metrics.PodMetrics {
	out := metrics.PodMetrics{ObjectMeta: c.meta(&in.ObjectMeta), Timestamp: in.Timestamp, Window: in.Window}
	out.Containers = make([]metrics.ContainerMetrics, len(in.Containers))
	for i, container := range in.Containers {
		out.Containers[i] = metrics.ContainerMetrics{Name: container.Name, Usage: container.Usage}
	}
	return out
}

// node returns the usage of a node with the name of the cluster.
func (c *cluster) node(in *v1beta1.NodeMetrics) metrics.NodeMetrics {
	meta := c.meta(&in.ObjectMeta)
	meta.Namespace = ""
	return metrics.NodeMetrics{ObjectMeta: meta, Timestamp: in.Timestamp, Window: in.Window, Usage: in.Usage}
}

func (c *cluster) meta(in *metav1.ObjectMeta) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Namespace: in.Namespace, Name: in.Name, CreationTimestamp: in.CreationTimestamp, Labels: in.Labels,
		Annotations: map[string]string{clusterv1alpha1.QueryFromClusterAnnotation: c.member.Name()},
	}
}

package kubelite

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
	aggregatorapiserver "k8s.io/kube-aggregator/pkg/apiserver"
	aggregator "k8s.io/kube-aggregator/pkg/client/clientset_generated/clientset"
	"k8s.io/metrics/pkg/apis/metrics"
	"k8s.io/metrics/pkg/apis/metrics/v1beta1"

	"github.com/karmada-toolkit/karmada/internal/metricsapi"
	"github.com/karmada-toolkit/karmada/internal/quantity"
)

// The annotations by which a user sets the simulated usage, as in kwok's ClusterResourceUsage "usage-from-annotation":
// of each container of a pod, or of a node. An annotation of a Deployment, ReplicaSet or StatefulSet is for all its pods.
const (
	annotationCPU    = "kwok.x-k8s.io/usage-cpu"
	annotationMemory = "kwok.x-k8s.io/usage-memory"
)

// usageWindow is the interval that the usage is for. It is short, since changes count at once.
const usageWindow = time.Second

// maxUsage bounds an annotation; the sum of many remains a quantity.
const maxUsage = "1P"

// serveUsage makes an API server serve metrics.k8s.io with the usage of simulated pods and nodes.
func serveUsage(server *aggregatorapiserver.APIAggregator, config *rest.Config, now func() time.Time) error {
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	group, err := metricsapi.NewGroup(&simulatedUsage{client: client, now: now})
	if err != nil {
		return err
	}
	if err := server.GenericAPIServer.InstallAPIGroup(group); err != nil {
		return fmt.Errorf("installing %s: %w", metrics.GroupName, err)
	}
	return nil
}

// registerUsage makes the discovery include metrics.k8s.io.
func registerUsage(ctx context.Context, config *rest.Config) error {
	client, err := aggregator.NewForConfig(config)
	if err != nil {
		return err
	}
	gv := v1beta1.SchemeGroupVersion
	service := &apiregistrationv1.APIService{
		ObjectMeta: metav1.ObjectMeta{Name: gv.Version + "." + gv.Group},
		Spec:       apiregistrationv1.APIServiceSpec{Group: gv.Group, Version: gv.Version, GroupPriorityMinimum: 100, VersionPriority: 100},
	}
	if _, err := client.ApiregistrationV1().APIServices().Create(ctx, service, metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("registering %s: %w", gv, err)
	}
	return nil
}

// simulatedUsage is the usage of simulated pods and nodes.
type simulatedUsage struct {
	client kubernetes.Interface
	now    func() time.Time
}

var _ metricsapi.Source = &simulatedUsage{}

// cached lets the API server answer from its cache.
func cached(s metricsapi.Selection) metav1.ListOptions {
	o := metav1.ListOptions{ResourceVersion: "0"}
	if s.Labels != nil {
		o.LabelSelector = s.Labels.String()
	}
	return o
}

// Pods implements metricsapi.Source.
func (u *simulatedUsage) Pods(ctx context.Context, s metricsapi.Selection) ([]metrics.PodMetrics, error) {
	pods, err := u.client.CoreV1().Pods(s.Namespace).List(ctx, cached(s))
	if err != nil {
		return nil, err
	}
	owners, err := u.owners(ctx, s.Namespace)
	if err != nil {
		return nil, err
	}
	out := make([]metrics.PodMetrics, 0, len(pods.Items))
	for i := range pods.Items {
		pod := &pods.Items[i]
		if pod.Status.Phase == corev1.PodRunning && s.Matches(pod.Namespace, pod.Name, pod.Labels) {
			out = append(out, u.pod(pod, owners))
		}
	}
	slices.SortFunc(out, func(a, b metrics.PodMetrics) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	return out, nil
}

// Pod implements metricsapi.Source.
func (u *simulatedUsage) Pod(ctx context.Context, namespace, name string) (*metrics.PodMetrics, error) {
	pod, err := u.client.CoreV1().Pods(namespace).Get(ctx, name, metav1.GetOptions{ResourceVersion: "0"})
	if err != nil {
		return nil, err
	}
	if pod.Status.Phase != corev1.PodRunning {
		return nil, metricsapi.NoPodMetrics(namespace, name)
	}
	owners, err := u.owners(ctx, namespace)
	if err != nil {
		return nil, err
	}
	out := u.pod(pod, owners)
	return &out, nil
}

// Nodes implements metricsapi.Source.
func (u *simulatedUsage) Nodes(ctx context.Context, s metricsapi.Selection) ([]metrics.NodeMetrics, error) {
	nodes, err := u.client.CoreV1().Nodes().List(ctx, cached(s))
	if err != nil {
		return nil, err
	}
	used, err := u.used(ctx)
	if err != nil {
		return nil, err
	}
	out := make([]metrics.NodeMetrics, 0, len(nodes.Items))
	for i := range nodes.Items {
		if node := &nodes.Items[i]; s.Matches("", node.Name, node.Labels) {
			out = append(out, u.node(node, used))
		}
	}
	slices.SortFunc(out, func(a, b metrics.NodeMetrics) int { return cmp.Compare(a.Name, b.Name) })
	return out, nil
}

// Node implements metricsapi.Source.
func (u *simulatedUsage) Node(ctx context.Context, name string) (*metrics.NodeMetrics, error) {
	node, err := u.client.CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{ResourceVersion: "0"})
	if err != nil {
		return nil, err
	}
	used, err := u.used(ctx)
	if err != nil {
		return nil, err
	}
	out := u.node(node, used)
	return &out, nil
}

// owners returns the annotations of ReplicaSets and StatefulSets. ReplicaSets have those of their Deployments.
func (u *simulatedUsage) owners(ctx context.Context, namespace string) (map[types.UID]map[string]string, error) {
	out := map[types.UID]map[string]string{}
	sets, err := u.client.AppsV1().ReplicaSets(namespace).List(ctx, cached(metricsapi.Selection{}))
	if err != nil {
		return nil, err
	}
	for i := range sets.Items {
		out[sets.Items[i].UID] = sets.Items[i].Annotations
	}
	stateful, err := u.client.AppsV1().StatefulSets(namespace).List(ctx, cached(metricsapi.Selection{}))
	if err != nil {
		return nil, err
	}
	for i := range stateful.Items {
		out[stateful.Items[i].UID] = stateful.Items[i].Annotations
	}
	return out, nil
}

// used returns the usage of the pods on each node.
func (u *simulatedUsage) used(ctx context.Context) (map[string]corev1.ResourceList, error) {
	pods, err := u.client.CoreV1().Pods(metav1.NamespaceAll).List(ctx, cached(metricsapi.Selection{}))
	if err != nil {
		return nil, err
	}
	owners, err := u.owners(ctx, metav1.NamespaceAll)
	if err != nil {
		return nil, err
	}
	out := map[string]corev1.ResourceList{}
	for i := range pods.Items {
		pod := &pods.Items[i]
		if pod.Status.Phase != corev1.PodRunning {
			continue
		}
		sum := out[pod.Spec.NodeName]
		if sum == nil {
			sum = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("0"), corev1.ResourceMemory: resource.MustParse("0")}
			out[pod.Spec.NodeName] = sum
		}
		for name, value := range metricsapi.Sum(u.pod(pod, owners).Containers) {
			total := sum[name]
			total.Add(value)
			sum[name] = total
		}
	}
	return out, nil
}

func (u *simulatedUsage) pod(pod *corev1.Pod, owners map[types.UID]map[string]string) metrics.PodMetrics {
	now := metav1.NewTime(u.now())
	out := metrics.PodMetrics{
		ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name, Labels: pod.Labels, CreationTimestamp: now},
		Timestamp:  now, Window: metav1.Duration{Duration: usageWindow},
	}
	var owner map[string]string
	if ref := metav1.GetControllerOf(pod); ref != nil {
		owner = owners[ref.UID]
	}
	usage := usageOf(corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1m"), corev1.ResourceMemory: resource.MustParse("1Mi")}, owner, pod.Annotations)
	for i := range pod.Spec.Containers {
		out.Containers = append(out.Containers, metrics.ContainerMetrics{Name: pod.Spec.Containers[i].Name, Usage: maps.Clone(usage)})
	}
	return out
}

func (u *simulatedUsage) node(node *corev1.Node, used map[string]corev1.ResourceList) metrics.NodeMetrics {
	now := metav1.NewTime(u.now())
	sum := used[node.Name]
	if sum == nil {
		sum = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("0"), corev1.ResourceMemory: resource.MustParse("0")}
	}
	return metrics.NodeMetrics{
		ObjectMeta: metav1.ObjectMeta{Name: node.Name, Labels: node.Labels, CreationTimestamp: now},
		Timestamp:  now, Window: metav1.Duration{Duration: usageWindow}, Usage: usageOf(sum, node.Annotations),
	}
}

// usageOf returns the usage that annotations set; the last that is valid wins.
func usageOf(usage corev1.ResourceList, annotations ...map[string]string) corev1.ResourceList {
	limit := resource.MustParse(maxUsage)
	for _, set := range annotations {
		for name, key := range map[corev1.ResourceName]string{corev1.ResourceCPU: annotationCPU, corev1.ResourceMemory: annotationMemory} {
			if value, err := quantity.Parse(set[key]); err == nil && value.Sign() >= 0 && value.Cmp(limit) <= 0 {
				usage[name] = value
			}
		}
	}
	return usage
}

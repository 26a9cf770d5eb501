package federatedhpa

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
	"github.com/karmada-toolkit/karmada/pkg/apis/validation"
	"github.com/karmada-toolkit/karmada/pkg/domain/autoscaling"
	"github.com/karmada-toolkit/karmada/pkg/member/access"
	"github.com/karmada-toolkit/karmada/pkg/member/follow"
)

const (
	// answerTimeout bounds the wait of a pass for a member.
	answerTimeout = 5 * time.Second
	// silence is how long a member that did not answer in time is not called.
	silence = 15 * time.Second
	// idleTimeout is how long a watch that no pass reads goes on.
	idleTimeout = 5 * time.Minute
	// maxSelector limits the selector of a member's Scale, which becomes a part of requests for metrics.
	maxSelector = 4096
	// maxKept limits what is kept of the pods of a cluster in all namespaces together, and of its workloads, in bytes.
	maxKept = 128 << 20
)

// members reads targets and their pods in members. Pods and the usual workloads are watched, by cluster and namespace,
// for all FederatedHPAs together.
type members struct {
	pool    access.Members
	mapper  meta.RESTMapper
	timeout time.Duration
	clock   clock.PassiveClock

	ctx       context.Context //nolint:containedctx // that of the manager, in which watches run
	pods      watches[corev1.Pod]
	workloads watches[autoscalingv1.Scale]
	started   chan struct{}

	mu sync.Mutex
	// silent is until when a cluster that did not answer in time is not called.
	silent map[string]time.Time
}

func newMembers(pool access.Members, mapper meta.RESTMapper, timeout time.Duration, clk clock.PassiveClock) *members {
	return &members{
		pool: pool, mapper: mapper, timeout: min(timeout, answerTimeout), clock: clk, started: make(chan struct{}), silent: map[string]time.Time{},
		pods: newWatches(podConfig, clk), workloads: newWatches(workloadConfig, clk),
	}
}

// Start ends watches that nothing reads any longer.
func (m *members) Start(ctx context.Context) error {
	m.ctx = ctx
	close(m.started)
	ticker := time.NewTicker(time.Minute)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			m.pods.stop(math.MaxInt64)
			m.workloads.stop(math.MaxInt64)
			return nil
		case <-ticker.C:
			m.pods.stop(-idleTimeout)
			m.workloads.stop(-idleTimeout)
		}
	}
}

// answer is what one cluster reports of a target.
type answer struct {
	member autoscaling.Member
	err    error
}

// read requests a target from clusters, all at once. It returns within the timeout.
func (m *members) read(ctx context.Context, clusters []*clusterv1alpha1.Cluster, resource schema.GroupVersionResource, key types.NamespacedName) []answer {
	ctx, cancel := context.WithTimeoutCause(ctx, m.timeout, errors.New("no answer in time"))
	defer cancel()
	out := make([]answer, len(clusters))
	var group sync.WaitGroup
	for i, cluster := range clusters {
		group.Go(func() { out[i].member, out[i].err = m.readOne(ctx, cluster, resource, key) })
	}
	group.Wait()
	return out
}

func (m *members) readOne(ctx context.Context, cluster *clusterv1alpha1.Cluster, resource schema.GroupVersionResource, key types.NamespacedName) (autoscaling.Member, error) {
	out := autoscaling.Member{Cluster: cluster.Name}
	select {
	case <-m.started:
	case <-ctx.Done():
		return out, context.Cause(ctx)
	}
	if m.isSilent(cluster.Name) {
		return out, errors.New("no answer in time")
	}
	member, err := m.pool.Member(ctx, cluster)
	if err != nil {
		return out, err
	}
	pods := m.pods.of(m.ctx, member, watchKey{cluster.Name, key.Namespace, corev1.SchemeGroupVersion.WithResource("pods")}) //nolint:contextcheck // the watch outlives this request
	scale, err := m.scale(ctx, member, resource, key)
	if err == nil {
		err = pods.Await(ctx)
	}
	if err != nil {
		if ctx.Err() != nil {
			m.setSilent(cluster.Name)
		}
		return out, err
	}
	if len(scale.Status.Selector) > maxSelector {
		return out, fmt.Errorf("the selector has %d characters, more than %d", len(scale.Status.Selector), maxSelector)
	}
	out.Spec, out.Status, out.Selector = max(0, scale.Spec.Replicas), max(0, scale.Status.Replicas), scale.Status.Selector
	pods.Each(func(_ types.NamespacedName, p *corev1.Pod) { out.Pods = append(out.Pods, p) })
	return out, nil
}

func (m *members) isSilent(cluster string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.clock.Now().Before(m.silent[cluster])
}

func (m *members) setSilent(cluster string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := m.clock.Now()
	maps.DeleteFunc(m.silent, func(_ string, until time.Time) bool { return until.Before(now) })
	m.silent[cluster] = now.Add(silence)
}

// scale returns the Scale of the target: of a usual workload from the watch, of others from the member.
func (m *members) scale(ctx context.Context, member *access.Member, resource schema.GroupVersionResource, key types.NamespacedName) (*autoscalingv1.Scale, error) {
	if !watchable(resource) {
		obj, err := member.Dynamic().Resource(resource).Namespace(key.Namespace).Get(ctx, key.Name, getOptions(), "scale")
		if err != nil {
			return nil, err
		}
		scale := &autoscalingv1.Scale{}
		return scale, runtime.DefaultUnstructuredConverter.FromUnstructured(obj.Object, scale)
	}
	w := m.workloads.of(m.ctx, member, watchKey{member.Name(), key.Namespace, resource}) //nolint:contextcheck // the watch outlives this request
	if err := w.Await(ctx); err != nil {
		return nil, err
	}
	if scale := w.Get(key); scale != nil {
		return scale, nil
	}
	return nil, fmt.Errorf("%s %q not found", resource.GroupResource(), key.Name)
}

// watchable reports whether the Scale of a resource follows from the object, as it does for the kinds of Kubernetes.
func watchable(resource schema.GroupVersionResource) bool {
	if resource.GroupVersion() == corev1.SchemeGroupVersion {
		return resource.Resource == "replicationcontrollers"
	}
	return resource.GroupVersion() == appsv1.SchemeGroupVersion && (resource.Resource == "deployments" || resource.Resource == "replicasets" || resource.Resource == "statefulsets")
}

// workloadConfig watches workloads and keeps their Scale.
func workloadConfig(member *access.Member, key watchKey) follow.Config[autoscalingv1.Scale] {
	return follow.Config[autoscalingv1.Scale]{
		Source: follow.Objects(member, key.resource, follow.Selection{Namespace: key.namespace}),
		Project: follow.From(func(u *unstructured.Unstructured, _ *autoscalingv1.Scale) (autoscalingv1.Scale, error) {
			return scaleOf(u), nil
		}),
		Size: func(s autoscalingv1.Scale) int { return len(s.Status.Selector) },
	}
}

// scaleOf returns what the API server derives from a workload. Without spec.replicas it is 1.
func scaleOf(u *unstructured.Unstructured) autoscalingv1.Scale {
	number := func(byDefault int64, path ...string) int32 {
		if n, ok, err := unstructured.NestedInt64(u.Object, path...); ok && err == nil {
			byDefault = n
		}
		return int32(min(max(byDefault, 0), math.MaxInt32))
	}
	out := autoscalingv1.Scale{}
	out.Spec.Replicas, out.Status.Replicas = number(1, "spec", "replicas"), number(0, "status", "replicas")
	selector, _, _ := unstructured.NestedMap(u.Object, "spec", "selector")
	if u.GetKind() == "ReplicationController" {
		set, _, _ := unstructured.NestedStringMap(u.Object, "spec", "selector")
		out.Status.Selector = labels.Set(set).String()
		return out
	}
	parsed := &metav1.LabelSelector{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(selector, parsed); err != nil {
		return out
	}
	if s, err := validation.LabelSelector(parsed); err == nil && !s.Empty() {
		out.Status.Selector = s.String()
	}
	return out
}

// podConfig watches pods and keeps what decisions need.
func podConfig(member *access.Member, key watchKey) follow.Config[corev1.Pod] {
	return follow.Config[corev1.Pod]{
		Source:  follow.Pods(member, follow.Selection{Namespace: key.namespace}),
		Project: follow.From(func(p *follow.Pod, _ *corev1.Pod) (corev1.Pod, error) { return keepPod(p.Object()), nil }),
		Size:    podSize,
	}
}

func keepPod(p *corev1.Pod) corev1.Pod {
	out := corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: p.Name, Labels: p.Labels, DeletionTimestamp: p.DeletionTimestamp},
		Status:     corev1.PodStatus{Phase: p.Status.Phase, StartTime: p.Status.StartTime, Conditions: readyOf(p)},
	}
	for i := range p.Spec.Containers {
		c := &p.Spec.Containers[i]
		out.Spec.Containers = append(out.Spec.Containers, corev1.Container{Name: c.Name, Resources: corev1.ResourceRequirements{Requests: c.Resources.Requests}})
	}
	return out
}

// podSize returns the approximate size of a pod in bytes.
func podSize(p corev1.Pod) int {
	const fixed, perContainer, perRequest, perLabel = 1200, 500, 120, 40
	n := fixed
	for key, value := range p.Labels {
		n += perLabel + len(key) + len(value)
	}
	for i := range p.Spec.Containers {
		n += perContainer + perRequest*len(p.Spec.Containers[i].Resources.Requests)
	}
	return n
}

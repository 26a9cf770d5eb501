package estimator

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/karmada-toolkit/karmada/pkg/domain/estimate"
	"github.com/karmada-toolkit/karmada/pkg/member/access"
	"github.com/karmada-toolkit/karmada/pkg/member/follow"
)

// pod has what is kept of a pod that is not terminated: assigned to a node, or waiting for one.
type pod struct {
	assigned *estimate.Pod
	waiting  *estimate.WaitingPod
}

// cluster keeps what estimates need of the objects of a member.
type cluster struct {
	model       estimate.Model
	nodes       *follow.Projection[estimate.Node]
	pods        *follow.Projection[pod]
	deployments *follow.Projection[estimate.Deployment]
	sets        *follow.Projection[estimate.ReplicaSet]
	// quotas is nil unless quotas count.
	quotas *follow.Projection[estimate.Quota]

	mu sync.Mutex
	// waiting are the pods that no node accepts.
	waiting map[types.NamespacedName]estimate.WaitingPod
}

func newCluster(m *access.Member, quotas bool) *cluster {
	c := &cluster{waiting: map[types.NamespacedName]estimate.WaitingPod{}}
	c.nodes = project(m, "nodes", follow.Nodes(m), func(v *follow.Node) (estimate.Node, error) { return estimate.NodeOf(v.Object()), nil }, nodeSize, c.nodeChanged)
	c.pods = project(m, "pods", follow.Pods(m, follow.Selection{Phases: follow.Running}),
		func(v *follow.Pod) (pod, error) { return podOf(v.Object()), nil }, podSize, c.podChanged)
	c.deployments = project(m, "deployments", follow.Deployments(m), estimate.DeploymentOf, func(*estimate.Deployment) int { return 300 }, nil)
	c.sets = project(m, "replicasets", follow.ReplicaSets(m), estimate.ReplicaSetOf, func(*estimate.ReplicaSet) int { return 200 }, nil)
	if quotas {
		c.quotas = project(m, "resourcequotas", follow.ResourceQuotas(m), func(q *corev1.ResourceQuota) (estimate.Quota, error) { return estimate.QuotaOf(q), nil },
			func(*estimate.Quota) int { return 500 }, nil)
	}
	return c
}

// project returns a projection of the objects of a source. changed may be nil.
func project[O runtime.Object, T any](m *access.Member, what string, s follow.Source, of func(O) (T, error), size func(*T) int, changed func(key types.NamespacedName, old, now *T)) *follow.Projection[T] {
	return follow.New(follow.Config[T]{
		Name: m.Name() + " " + what, Source: s,
		Project: follow.From(func(obj O, _ *T) (T, error) { return of(obj) }),
		Size:    func(v T) int { return size(&v) },
		Changed: changed,
	})
}

func nodeSize(n *estimate.Node) int {
	size := 500 + 40*len(n.Allocatable) + 100*len(n.Taints)
	for key, value := range n.Labels {
		size += 40 + len(key) + len(value)
	}
	return size
}

func podOf(p *corev1.Pod) pod {
	var out pod
	if assigned, ok := estimate.PodOf(p); ok {
		out.assigned = &assigned
	} else if waiting, ok := estimate.WaitingPodOf(p); ok {
		out.waiting = &waiting
	}
	return out
}

func podSize(p *pod) int {
	size := 100
	if p.assigned != nil {
		size += 24 * len(p.assigned.Requests)
	}
	if p.waiting != nil {
		for key, value := range p.waiting.Labels {
			size += 80 + len(key) + len(value)
		}
	}
	return size
}

func (c *cluster) nodeChanged(key types.NamespacedName, _, now *estimate.Node) {
	if now == nil {
		c.model.RemoveNode(key.Name)
		return
	}
	c.model.SetNode(*now)
}

func (c *cluster) podChanged(key types.NamespacedName, old, now *pod) {
	if old == nil {
		old = &pod{}
	}
	if now == nil {
		now = &pod{}
	}
	if old.assigned != nil || now.assigned != nil {
		c.model.ReplacePod(old.assigned, now.assigned)
	}
	if old.waiting == nil && now.waiting == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if now.waiting == nil {
		delete(c.waiting, key)
		return
	}
	c.waiting[key] = *now.waiting
}

// run watches the member until ctx ends.
func (c *cluster) run(ctx context.Context) {
	type followed interface {
		Start(ctx context.Context)
		Stop()
	}
	all := []followed{c.nodes, c.pods, c.deployments, c.sets}
	if c.quotas != nil {
		all = append(all, c.quotas)
	}
	for _, p := range all {
		p.Start(ctx)
		defer p.Stop()
	}
	c.report(ctx)
}

// reportInterval is the time between two checks whether the member is read.
const reportInterval = 30 * time.Second

// report logs when the member cannot be read, and when it can again.
func (c *cluster) report(ctx context.Context) {
	logger := log.FromContext(ctx)
	ticker := time.NewTicker(reportInterval)
	defer ticker.Stop()
	last := ""
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		now := ""
		if err := errors.Join(c.ready(), c.workloadsReady()); err != nil {
			now = err.Error()
		}
		switch now {
		case last:
		case "":
			logger.Info("The cluster is read again")
		default:
			logger.Info("The cluster is not read", "problem", now)
		}
		last = now
	}
}

// ready returns an error while estimates cannot be made: before nodes, pods and quotas were read once, and while they
// cannot be read.
func (c *cluster) ready() error {
	err := errors.Join(c.nodes.Ready(), c.pods.Ready())
	if c.quotas != nil {
		err = errors.Join(err, c.quotas.Ready())
	}
	return err
}

// workloadsReady returns an error while unschedulable replicas cannot be counted.
func (c *cluster) workloadsReady() error {
	return errors.Join(c.pods.Ready(), c.deployments.Ready(), c.sets.Ready())
}

// facts returns what estimates are made from.
func (c *cluster) facts() estimate.Facts {
	f := estimate.Facts{Nodes: c.model.Snapshot()}
	if c.quotas == nil {
		return f
	}
	f.Quotas = func(namespace string) []estimate.Quota {
		var out []estimate.Quota
		c.quotas.Each(func(key types.NamespacedName, q *estimate.Quota) {
			if namespace == "" || key.Namespace == namespace {
				out = append(out, *q)
			}
		})
		return out
	}
	return f
}

// unschedulable returns how many replicas of a Deployment no node accepts, for longer than a threshold.
func (c *cluster) unschedulable(key types.NamespacedName, threshold time.Duration, now time.Time) (int32, error) {
	d := c.deployments.Get(key)
	if d == nil {
		return 0, fmt.Errorf("deployment %s does not exist in the cluster", key)
	}
	var sets []estimate.ReplicaSet
	c.sets.Each(func(k types.NamespacedName, rs *estimate.ReplicaSet) {
		if k.Namespace == key.Namespace && rs.Owner == d.UID {
			sets = append(sets, *rs)
		}
	})
	var pods []estimate.WaitingPod
	c.mu.Lock()
	for k, p := range c.waiting {
		if k.Namespace == key.Namespace {
			pods = append(pods, p)
		}
	}
	c.mu.Unlock()
	return estimate.Unschedulable(d, sets, pods, threshold, now), nil
}

package execution

import (
	"bytes"
	"context"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"

	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
	"github.com/karmada-toolkit/karmada/pkg/apis/names"
	workv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha1"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/interpreter/notify"
)

// background is the priority of work that nobody is waiting for: what was there
// at the start, and what a cluster missed while it was away.
const background = -100

// run serves until ctx ends.
func (c *Controller) run(ctx context.Context, informers cache.Informers) error {
	clusters, err := informers.GetInformer(ctx, &clusterv1alpha1.Cluster{})
	if err != nil {
		return fmt.Errorf("watching clusters: %w", err)
	}
	works, err := informers.GetInformer(ctx, &workv1alpha1.Work{})
	if err != nil {
		return fmt.Errorf("watching works: %w", err)
	}
	onCluster, err := clusters.AddEventHandler(c.clusterHandler(ctx))
	if err != nil {
		return fmt.Errorf("watching clusters: %w", err)
	}
	onWork, err := works.AddEventHandler(c.workHandler(ctx))
	if err != nil {
		return fmt.Errorf("watching works: %w", err)
	}
	notify.Subscribe(c.deps.Interpreter, c.relearn)
	<-ctx.Done()
	_ = clusters.RemoveEventHandler(onCluster)
	_ = works.RemoveEventHandler(onWork)
	c.stop()
	return nil
}

func (c *Controller) stop() {
	c.mu.Lock()
	runners := c.runners
	c.runners = map[string]*runner{}
	c.mu.Unlock()
	for _, r := range runners {
		r.stop()
	}
}

func (c *Controller) workHandler(ctx context.Context) toolscache.ResourceEventHandler {
	enqueue := func(work *workv1alpha1.Work, priority int) {
		if cluster, err := names.ClusterOfExecutionNamespace(work.Namespace); err == nil {
			c.runner(ctx, cluster).queue.AddWithOpts(priorityqueue.AddOpts{Priority: new(priority)}, work.Name)
		}
	}
	return toolscache.ResourceEventHandlerDetailedFuncs{
		AddFunc: func(obj any, initial bool) {
			if work, ok := obj.(*workv1alpha1.Work); ok {
				priority := 0
				if initial {
					priority = background
				}
				enqueue(work, priority)
			}
		},
		UpdateFunc: func(old, obj any) {
			before, ok1 := old.(*workv1alpha1.Work)
			work, ok2 := obj.(*workv1alpha1.Work)
			if !ok1 || !ok2 {
				return
			}
			if workChanged(before, work) {
				enqueue(work, 0)
			}
			c.relay(ctx, before, work)
		},
		DeleteFunc: func(obj any) {
			if gone, ok := obj.(toolscache.DeletedFinalStateUnknown); ok {
				obj = gone.Obj
			}
			if work, ok := obj.(*workv1alpha1.Work); ok {
				enqueue(work, 0)
			}
		},
	}
}

// workChanged says whether a change of a Work is more than its status. In a
// control plane that was restored from a backup the status went back too, and the
// same generation may stand for something else.
func workChanged(before, now *workv1alpha1.Work) bool {
	return before.Generation != now.Generation || before.UID != now.UID ||
		!before.DeletionTimestamp.Equal(now.DeletionTimestamp) ||
		!slices.Equal(before.Finalizers, now.Finalizers) ||
		newer(before.ResourceVersion, now.ResourceVersion) ||
		!sameManifests(before.Spec.Workload.Manifests, now.Spec.Workload.Manifests)
}

func sameManifests(a, b []workv1alpha1.Manifest) bool {
	return slices.EqualFunc(a, b, func(a, b workv1alpha1.Manifest) bool { return bytes.Equal(a.Raw, b.Raw) })
}

func (c *Controller) clusterHandler(ctx context.Context) toolscache.ResourceEventHandler {
	return toolscache.ResourceEventHandlerFuncs{
		AddFunc: func(obj any) {
			if cluster, ok := obj.(*clusterv1alpha1.Cluster); ok {
				c.clusterChanged(ctx, nil, cluster)
			}
		},
		UpdateFunc: func(old, obj any) {
			before, ok1 := old.(*clusterv1alpha1.Cluster)
			cluster, ok2 := obj.(*clusterv1alpha1.Cluster)
			if ok1 && ok2 {
				c.clusterChanged(ctx, before, cluster)
			}
		},
		DeleteFunc: func(obj any) {
			if gone, ok := obj.(toolscache.DeletedFinalStateUnknown); ok {
				obj = gone.Obj
			}
			if cluster, ok := obj.(*clusterv1alpha1.Cluster); ok {
				c.clusterGone(ctx, cluster.Name)
			}
		},
	}
}

// clusterChanged wakes the Works that wait for a cluster: all of them when it
// becomes Ready, is being removed or is reached differently; those that failed
// when it serves other types than before.
func (c *Controller) clusterChanged(ctx context.Context, before, now *clusterv1alpha1.Cluster) {
	r := c.known(now.Name)
	if before == nil {
		c.wake(ctx, now.Name)
		return
	}
	becameReady := ready(now) && !ready(before)
	if becameReady || before.UID != now.UID || before.Generation != now.Generation || !before.DeletionTimestamp.Equal(now.DeletionTimestamp) {
		if r != nil && becameReady {
			r.retryMirrors()
		}
		c.wake(ctx, now.Name)
		return
	}
	if r != nil && !equality.Semantic.DeepEqual(before.Status.APIEnablements, now.Status.APIEnablements) {
		r.retryMirrors()
		r.wakeFailed()
	}
}

// clusterGone lets the Works of a cluster go, and stops serving it when it has
// none.
func (c *Controller) clusterGone(ctx context.Context, cluster string) {
	c.relays.forget(cluster)
	if c.wake(ctx, cluster) == 0 {
		c.drop(cluster)
	}
}

// wake enqueues all Works of a cluster and returns how many there are.
func (c *Controller) wake(ctx context.Context, cluster string) int {
	var works workv1alpha1.WorkList
	if err := c.client.List(ctx, &works, client.InNamespace(names.ExecutionNamespace(cluster)), client.UnsafeDisableDeepCopy); err != nil {
		return -1
	}
	if len(works.Items) == 0 {
		return 0
	}
	keys := make([]string, len(works.Items))
	for i := range works.Items {
		keys[i] = works.Items[i].Name
	}
	c.runner(ctx, cluster).queue.AddWithOpts(priorityqueue.AddOpts{Priority: new(background)}, keys...)
	return len(keys)
}

func ready(cluster *clusterv1alpha1.Cluster) bool {
	return meta.IsStatusConditionTrue(cluster.Status.Conditions, clusterv1alpha1.ClusterConditionReady)
}

package execution

import (
	"bytes"
	"context"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/runtime/schema"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/karmada-toolkit/karmada/internal/controllers"
	"github.com/karmada-toolkit/karmada/internal/status"
	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
	"github.com/karmada-toolkit/karmada/pkg/apis/names"
	workv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha1"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/interpretation/notify"
)

// run watches Clusters and Works until ctx ends.
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
	notify.Subscribe(c.deps.Interpreter, c.requeueAffected)
	<-ctx.Done()
	_ = clusters.RemoveEventHandler(onCluster)
	_ = works.RemoveEventHandler(onWork)
	c.runners.stop()
	return nil
}

// requeueAffected enqueues the Works with objects of kinds whose rules changed.
func (c *Controller) requeueAffected(affects func(schema.GroupVersionKind) bool) {
	c.revisions.advance(affects)
	for _, r := range c.runners.all() {
		r.queue.addLow(r.informers.Works(affects)...)
	}
}

func (c *Controller) workHandler(ctx context.Context) toolscache.ResourceEventHandler {
	enqueue := func(work *workv1alpha1.Work, initial bool) {
		cluster, err := names.ClusterOfExecutionNamespace(work.Namespace)
		switch {
		case err != nil:
		case initial:
			c.runner(ctx, cluster).queue.addLow(work.Name)
		default:
			c.runner(ctx, cluster).queue.add(work.Name)
		}
	}
	return controllers.Handler[*workv1alpha1.Work]{
		Added: enqueue,
		Updated: func(before, work *workv1alpha1.Work) {
			if workChanged(before, work) {
				enqueue(work, false)
			}
			c.relay.workChanged(ctx, before, work)
		},
		Deleted: func(work *workv1alpha1.Work) { enqueue(work, false) },
	}
}

// workChanged reports whether more than the status of a Work changed. After a restore of
// the control plane from a backup, the status is an older one too, and a generation may
// have other manifests than before.
func workChanged(before, now *workv1alpha1.Work) bool {
	return before.Generation != now.Generation || before.UID != now.UID ||
		!before.DeletionTimestamp.Equal(now.DeletionTimestamp) ||
		!slices.Equal(before.Finalizers, now.Finalizers) ||
		status.Newer(before.ResourceVersion, now.ResourceVersion) ||
		!sameManifests(before.Spec.Workload.Manifests, now.Spec.Workload.Manifests)
}

func sameManifests(a, b []workv1alpha1.Manifest) bool {
	return slices.EqualFunc(a, b, func(a, b workv1alpha1.Manifest) bool { return bytes.Equal(a.Raw, b.Raw) })
}

func (c *Controller) clusterHandler(ctx context.Context) toolscache.ResourceEventHandler {
	return controllers.Handler[*clusterv1alpha1.Cluster]{
		Added:   func(cluster *clusterv1alpha1.Cluster, _ bool) { c.clusterChanged(ctx, nil, cluster) },
		Updated: func(before, cluster *clusterv1alpha1.Cluster) { c.clusterChanged(ctx, before, cluster) },
		Deleted: func(cluster *clusterv1alpha1.Cluster) { c.clusterDeleted(ctx, cluster.Name) },
	}
}

// clusterChanged enqueues the Works of a cluster: all of them when it becomes Ready, is
// being deleted or its spec changed; those that failed when it serves other types.
func (c *Controller) clusterChanged(ctx context.Context, before, now *clusterv1alpha1.Cluster) {
	r := c.runners.get(now.Name)
	if before == nil {
		c.enqueueWorks(ctx, now.Name)
		return
	}
	becameReady := now.Ready() && !before.Ready()
	if becameReady || before.UID != now.UID || before.Generation != now.Generation || !before.DeletionTimestamp.Equal(now.DeletionTimestamp) {
		if r != nil && becameReady {
			r.informers.Retry()
		}
		c.enqueueWorks(ctx, now.Name)
		return
	}
	if r != nil && !equality.Semantic.DeepEqual(before.Status.APIEnablements, now.Status.APIEnablements) {
		r.informers.Retry()
		r.queue.addLow(r.works.failing()...)
	}
}

// clusterDeleted enqueues the Works of a cluster, and stops its runner if there are none.
func (c *Controller) clusterDeleted(ctx context.Context, cluster string) {
	c.relay.forget(cluster)
	r := c.runners.get(cluster)
	if c.enqueueWorks(ctx, cluster) == 0 && r != nil {
		c.retire(ctx, r)
	}
}

// enqueueWorks enqueues all Works of a cluster and returns their number; -1 if that is
// unknown.
func (c *Controller) enqueueWorks(ctx context.Context, cluster string) int {
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
	c.runner(ctx, cluster).queue.addLow(keys...)
	return len(keys)
}

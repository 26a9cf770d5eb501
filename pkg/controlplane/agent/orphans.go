package agent

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/karmada-toolkit/karmada/internal/controllers"
	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
	workv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha1"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/orphans"
)

// orphanInterval is the time between searches while there are no such objects, and
// orphanAgain while there are some.
const orphanInterval, orphanAgain = 10 * time.Minute, 30 * time.Second

// orphanSearch finds the objects that lost their Work, as after a control plane was
// restored from a backup, reports them, and deletes them when a user
// confirms it: nothing in the member is deleted because something is missing.
type orphanSearch struct {
	*orphans.Tracker
	agent *agent
	controllers.Trigger
}

// run searches at the start, when a Work is gone, when a user confirms, and from
// time to time.
func (o *orphanSearch) run(ctx context.Context) error {
	if err := o.watch(ctx); err != nil {
		return ended(ctx, err)
	}
	for {
		wait, err := o.searchOnce(ctx)
		if err != nil && ctx.Err() == nil {
			o.agent.log.Info("Searching for objects without a work failed, trying again", "err", err.Error(), "after", wait.String())
		}
		select {
		case <-ctx.Done():
			return nil
		case <-o.Trigger:
		case <-o.agent.clock.After(wait):
		}
	}
}

// watch starts a search when a Work disappears without a deletion timestamp, or when a
// user confirms.
func (o *orphanSearch) watch(ctx context.Context) error {
	works, err := o.agent.mgr.GetCache().GetInformer(ctx, &workv1alpha1.Work{})
	if err != nil {
		return fmt.Errorf("watching works: %w", err)
	}
	_, err = works.AddEventHandler(controllers.Handler[*workv1alpha1.Work]{Deleted: func(work *workv1alpha1.Work) {
		if work.DeletionTimestamp.IsZero() {
			o.Fire()
		}
	}})
	if err != nil {
		return fmt.Errorf("watching works: %w", err)
	}
	clusters, err := o.agent.mgr.GetCache().GetInformer(ctx, &clusterv1alpha1.Cluster{})
	if err != nil {
		return fmt.Errorf("watching the cluster: %w", err)
	}
	_, err = clusters.AddEventHandler(controllers.Handler[*clusterv1alpha1.Cluster]{Updated: func(before, after *clusterv1alpha1.Cluster) {
		if before.Annotations[clusterv1alpha1.DeleteOrphansAnnotation] != after.Annotations[clusterv1alpha1.DeleteOrphansAnnotation] {
			o.Fire()
		}
	}})
	if err != nil {
		return fmt.Errorf("watching the cluster: %w", err)
	}
	return nil
}

// searchOnce searches, reports what it found, deletes what a user confirmed, and
// returns when to search again.
func (o *orphanSearch) searchOnce(ctx context.Context) (time.Duration, error) {
	cluster := &clusterv1alpha1.Cluster{}
	err := o.agent.mgr.GetClient().Get(ctx, client.ObjectKey{Name: o.agent.options.ClusterName}, cluster)
	if apierrors.IsNotFound(err) {
		return orphanAgain, nil // there is no condition to write
	}
	if err != nil {
		return orphanAgain, fmt.Errorf("reading the cluster: %w", err)
	}
	if !cluster.DeletionTimestamp.IsZero() || !o.agent.membership.serves(cluster) {
		return orphanAgain, nil
	}
	member, err := o.agent.Member(ctx, cluster)
	if err != nil {
		return orphanAgain, err
	}
	if restored := o.Open(member, o.Fire); restored != "" {
		o.agent.recorder.Event(cluster, corev1.EventTypeWarning, clusterv1alpha1.ClusterConditionStoreRestored, restored)
	}
	objects, err := orphans.Search(ctx, o.agent.mgr.GetClient(), member, o.agent.options.ClusterName, true)
	if err != nil {
		return orphanAgain, err
	}
	found, fresh := o.Observe(objects)
	if len(found) > 0 && cluster.Annotations[clusterv1alpha1.DeleteOrphansAnnotation] == orphans.Token(found) {
		err := o.remove(ctx, member, cluster, found)
		return orphans.Grace, err
	}
	if o.Publish(cluster.Name, found, fresh) {
		o.report(cluster, found)
	}
	switch {
	case fresh:
		return orphans.Grace, nil
	case len(found) > 0:
		return orphanAgain, nil
	}
	return orphanInterval, nil
}

// report records an event for objects that users have to confirm.
func (o *orphanSearch) report(cluster *clusterv1alpha1.Cluster, found []orphans.Object) {
	o.agent.log.Info("The cluster has objects whose works the control plane lost; they stay until a user confirms their deletion",
		"count", len(found), "objects", orphans.Summary(found), "token", orphans.Token(found))
	o.agent.recorder.Event(cluster, corev1.EventTypeWarning, clusterv1alpha1.ClusterConditionOrphanedObjects,
		fmt.Sprintf("%d objects in the cluster belong to works that the control plane does not have, and stay: %s. The condition of the cluster describes how to delete them", len(found), orphans.Summary(found)))
}

// remove deletes what a user confirmed.
func (o *orphanSearch) remove(ctx context.Context, member orphans.API, cluster *clusterv1alpha1.Cluster, found []orphans.Object) error {
	o.agent.log.Info("Deleting the objects without a work, as a user confirmed", "count", len(found), "objects", orphans.Summary(found))
	if err := orphans.Delete(ctx, member, found); err != nil {
		return err
	}
	o.agent.recorder.Event(cluster, corev1.EventTypeNormal, orphans.ReasonDeleted, fmt.Sprintf("%d objects without a work were deleted from the cluster: %s", len(found), orphans.Summary(found)))
	return nil
}

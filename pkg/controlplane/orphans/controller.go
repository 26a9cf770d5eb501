package orphans

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/time/rate"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/record"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/karmada-toolkit/karmada/internal/controllers"
	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
	"github.com/karmada-toolkit/karmada/pkg/apis/names"
	workv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha1"
	"github.com/karmada-toolkit/karmada/pkg/member/lifetime"
)

// Name is the name of the controller and the source of its events.
const Name = "orphaned-objects-controller"

const (
	// searchInterval is the time between searches while there are such objects.
	searchInterval = time.Minute
	// searchTimeout bounds one search.
	searchTimeout = 3 * time.Minute
	// concurrent is the number of clusters that are searched at a time.
	concurrent = 20
	// completeRate and completeBurst limit the complete searches of all clusters together, in searches a second: each takes
	// a request for every type of a cluster.
	completeRate, completeBurst = 1, 20
	// searches is the number of clusters that wait for a search at most.
	searches = 1000
)

// Deps are the dependencies of the controller.
type Deps struct {
	// Member opens a cluster.
	Member func(ctx context.Context, cluster *clusterv1alpha1.Cluster) (API, error)
	// Clock defaults to the real one.
	Clock clock.PassiveClock
}

// Controller reports the objects without a Work in the clusters in Push mode. It searches
// a cluster when it joins or becomes Ready, when a Work disappears without a deletion
// timestamp, when it was restored from an older copy, and while there are such objects.
// The first search of a process, and those after a restore or a lost Work, are complete
// and limited to completeRate; the others list the types of the Works and of the objects
// that were found. The agents of clusters in Pull mode do the same in theirs.
type Controller struct {
	deps   Deps
	client client.Client
	events record.EventRecorder
	// search has the clusters that are to be searched.
	search   chan event.TypedGenericEvent[*clusterv1alpha1.Cluster]
	trackers *lifetime.Registry[*Tracker]
	complete *rate.Limiter
}

// New returns a controller.
func New(c client.Client, events record.EventRecorder, d Deps) *Controller {
	d.Clock = cmp.Or[clock.PassiveClock](d.Clock, clock.RealClock{})
	return &Controller{
		deps: d, client: c, events: events, trackers: lifetime.New[*Tracker](c, nil), complete: rate.NewLimiter(completeRate, completeBurst),
		search: make(chan event.TypedGenericEvent[*clusterv1alpha1.Cluster], searches),
	}
}

// Setup adds a new controller to the manager and returns it.
func Setup(mgr manager.Manager, d Deps) (*Controller, error) {
	c := New(mgr.GetClient(), mgr.GetEventRecorderFor(Name), d)
	err := builder.ControllerManagedBy(mgr).Named("orphanedObjects").
		WithOptions(controller.Options{MaxConcurrentReconciles: concurrent}).
		For(&clusterv1alpha1.Cluster{}, builder.WithPredicates(relevant())).
		Watches(&workv1alpha1.Work{}, controllers.EnqueueKey(c.lostBy), builder.WithPredicates(lost())).
		WatchesRawSource(source.Channel(c.search, &handler.TypedEnqueueRequestForObject[*clusterv1alpha1.Cluster]{})).
		Complete(c)
	if err = errors.Join(err, controllers.Follow(mgr, &clusterv1alpha1.Cluster{}, c.trackers)); err != nil {
		return nil, fmt.Errorf("adding the %s: %w", Name, err)
	}
	return c, nil
}

// relevant passes clusters that are new, become Ready or have another confirmation.
func relevant() predicate.Predicate {
	return controllers.Filter[*clusterv1alpha1.Cluster]{Updated: func(before, now *clusterv1alpha1.Cluster) bool {
		return before.Ready() != now.Ready() || before.Spec.SyncMode != now.Spec.SyncMode || before.UID != now.UID ||
			before.Annotations[clusterv1alpha1.DeleteOrphansAnnotation] != now.Annotations[clusterv1alpha1.DeleteOrphansAnnotation]
	}}
}

// lost passes Works that disappeared without a deletion timestamp.
func lost() predicate.Predicate {
	return controllers.Filter[*workv1alpha1.Work]{
		Created: controllers.Never[*workv1alpha1.Work], Updated: controllers.NoUpdate[*workv1alpha1.Work],
		Deleted: func(work *workv1alpha1.Work) bool { return work.DeletionTimestamp.IsZero() },
	}
}

// lostBy returns the cluster of a lost Work, whose next search is complete.
func (c *Controller) lostBy(work *workv1alpha1.Work) types.NamespacedName {
	cluster, _ := names.ClusterOfExecutionNamespace(work.Namespace) // empty for other namespaces
	if tracker, ok := c.trackers.Get(cluster); ok {
		tracker.Restart()
	}
	return types.NamespacedName{Name: cluster}
}

// Reconcile searches one cluster.
func (c *Controller) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	cluster := &clusterv1alpha1.Cluster{}
	err := c.client.Get(ctx, req.NamespacedName, cluster)
	if err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if cluster.Spec.SyncMode != clusterv1alpha1.Push || cluster.Spec.SecretRef == nil || !cluster.DeletionTimestamp.IsZero() || !cluster.Ready() {
		return reconcile.Result{}, nil // becoming Ready triggers a search
	}
	ctx, cancel := context.WithTimeout(ctx, searchTimeout)
	defer cancel()
	member, err := c.deps.Member(ctx, cluster)
	if err != nil {
		return reconcile.Result{}, fmt.Errorf("connecting to cluster %s: %w", cluster.Name, err)
	}
	tracker := c.tracker(ctx, cluster)
	c.open(tracker, member, cluster)
	objects, wait, err := c.find(ctx, tracker, member, cluster.Name)
	if err != nil {
		log.FromContext(ctx).V(2).Info("Searching for objects without a work failed, trying again", "Cluster", cluster.Name, "err", err.Error())
		return reconcile.Result{RequeueAfter: searchInterval}, nil
	}
	found, fresh := tracker.Observe(objects)
	if len(found) > 0 && cluster.Annotations[clusterv1alpha1.DeleteOrphansAnnotation] == Token(found) {
		if err := c.remove(ctx, member, cluster, found); err != nil {
			return reconcile.Result{}, err
		}
		return reconcile.Result{RequeueAfter: Grace}, nil
	}
	if tracker.Publish(cluster.Name, found, fresh) {
		c.events.Event(cluster, corev1.EventTypeWarning, clusterv1alpha1.ClusterConditionOrphanedObjects, Message(cluster.Name, found))
	}
	switch {
	case fresh:
		wait = controllers.Earliest(wait, Grace)
	case len(found) > 0:
		wait = controllers.Earliest(wait, searchInterval)
	}
	return reconcile.Result{RequeueAfter: wait}, nil
}

// open records the member, and publishes that it was restored.
func (c *Controller) open(tracker *Tracker, member API, cluster *clusterv1alpha1.Cluster) {
	restored := tracker.Open(member, func() {
		select {
		case c.search <- event.TypedGenericEvent[*clusterv1alpha1.Cluster]{Object: cluster}:
		default:
		}
	})
	if restored != "" {
		c.events.Event(cluster, corev1.EventTypeWarning, clusterv1alpha1.ClusterConditionStoreRestored, restored)
	}
}

// find searches one cluster, completely if that is needed and its turn has come. It returns how long a complete search has
// to wait, else 0.
func (c *Controller) find(ctx context.Context, tracker *Tracker, member API, cluster string) (objects []Object, wait time.Duration, err error) {
	wait, needed := tracker.NextComplete(func(now time.Time) time.Time { return now.Add(c.complete.ReserveN(now, 1).DelayFrom(now)) })
	complete := needed && wait == 0
	if complete {
		tracker.Searching()
	}
	objects, err = Search(ctx, c.client, member, cluster, complete, tracker.Kinds()...)
	if err != nil && complete {
		tracker.Restart()
	}
	return objects, wait, err
}

// tracker returns the Tracker of a cluster, a new one if it was deleted.
func (c *Controller) tracker(ctx context.Context, cluster *clusterv1alpha1.Cluster) *Tracker {
	fresh := func() *Tracker { return NewTracker(c.deps.Clock) }
	tracker, ok := c.trackers.Open(ctx, cluster, nil, fresh)
	if !ok {
		return fresh()
	}
	return tracker
}

// remove deletes the objects whose deletion a user confirmed.
func (c *Controller) remove(ctx context.Context, member API, cluster *clusterv1alpha1.Cluster, found []Object) error {
	if err := Delete(ctx, member, found); err != nil {
		return fmt.Errorf("deleting the objects without a work in cluster %s: %w", cluster.Name, err)
	}
	c.events.Event(cluster, corev1.EventTypeNormal, ReasonDeleted,
		fmt.Sprintf("%d objects without a work were deleted from the cluster: %s", len(found), Summary(found)))
	return nil
}

// Conditions returns the current conditions OrphanedObjects and StoreRestored of a
// cluster. There are none until such objects, or a restore, were found.
func (c *Controller) Conditions(cluster *clusterv1alpha1.Cluster) []metav1.Condition {
	return c.tracker(context.Background(), cluster).Conditions(cluster)
}

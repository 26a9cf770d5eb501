package metricsadapter

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/karmada-toolkit/karmada/internal/controllers"
	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
	"github.com/karmada-toolkit/karmada/pkg/member/access"
	"github.com/karmada-toolkit/karmada/pkg/member/lifetime"
)

const (
	// component is the name of the controller.
	component = "metrics-adapter"
	// openWorkers is the number of clusters that are opened at the same time.
	openWorkers = 8
	// reopenInterval is how often the credentials of a cluster are compared with those of its connections.
	reopenInterval = time.Minute
	// maxClosed is the number of clusters that wait until they are opened again.
	maxClosed = 1000
	// maxRetryDelay is the longest delay before another attempt to open a cluster.
	maxRetryDelay = 30 * time.Second
)

// Reasons why no request can be sent to a cluster.
const (
	reasonNotReady    = "it is not ready"
	reasonUnreachable = "it cannot be opened with its endpoint and Secret"
)

// members are the clusters that requests are sent to, and those that they cannot be sent to.
type members struct {
	ctx      context.Context //nolint:containedctx // the life of the watches
	clock    clock.PassiveClock
	pool     *access.Pool
	client   client.Reader
	clusters *lifetime.Registry[*cluster]
	// closed has the clusters whose connections were closed: others are opened.
	closed chan event.TypedGenericEvent[*clusterv1alpha1.Cluster]
}

// newMembers returns no members. Their watches end with ctx. reader is the cache of Clusters; with nil any may be opened.
func newMembers(ctx context.Context, clk clock.PassiveClock, pool *access.Pool, reader client.Reader) *members {
	return &members{ctx: ctx, clock: clk, pool: pool, client: reader, clusters: lifetime.New(reader, (*cluster).stop), closed: make(chan event.TypedGenericEvent[*clusterv1alpha1.Cluster], maxClosed)}
}

// setup adds the controller that opens and closes the clusters.
func (m *members) setup(mgr manager.Manager) error {
	options := controllers.Options(openWorkers, openWorkers, controllers.Retry{BaseDelay: time.Second, MaxDelay: maxRetryDelay})
	options.NeedLeaderElection = new(bool)
	err := ctrl.NewControllerManagedBy(mgr).Named(component).
		For(&clusterv1alpha1.Cluster{}, builder.WithPredicates(controllers.Changed(lifetime.Changed))).
		WatchesRawSource(source.Channel(m.closed, &handler.TypedEnqueueRequestForObject[*clusterv1alpha1.Cluster]{})).
		WithOptions(options).Complete(m)
	for _, f := range []controllers.Follower{m.pool, m.clusters} {
		err = errors.Join(err, controllers.Follow(mgr, &clusterv1alpha1.Cluster{}, f))
	}
	if err != nil {
		return fmt.Errorf("adding %s: %w", component, err)
	}
	return nil
}

// Reconcile opens a cluster that is ready and closes one that is not.
func (m *members) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	object := &clusterv1alpha1.Cluster{}
	if err := m.client.Get(ctx, req.NamespacedName, object); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	switch {
	case object.DeletionTimestamp != nil:
		m.clusters.Close(object)
		m.pool.Close(object)
		return reconcile.Result{}, nil
	case !object.Ready():
		m.close(ctx, object, reasonNotReady)
		return reconcile.Result{}, nil
	}
	member, err := m.pool.Member(ctx, object)
	if err != nil {
		m.close(ctx, object, reasonUnreachable)
		return reconcile.Result{}, fmt.Errorf("opening cluster %s: %w", req.Name, err)
	}
	m.open(ctx, object, member)
	return reconcile.Result{RequeueAfter: reopenInterval}, nil
}

// open opens a cluster, with other connections than before if it has others, and ends watches that nobody needs.
func (m *members) open(ctx context.Context, object *clusterv1alpha1.Cluster, member *access.Member) {
	c, ok := m.clusters.Open(ctx, object, member, func() *cluster {
		log.FromContext(ctx).Info("Opened cluster", "Cluster", object.Name)
		member.OnClose(func() {
			select {
			case m.closed <- event.TypedGenericEvent[*clusterv1alpha1.Cluster]{Object: object}:
			default: // it is opened again after reopenInterval
			}
		})
		return m.cluster(member)
	})
	if ok {
		c.release()
	}
}

// cluster returns a cluster, whose watches outlive the request.
func (m *members) cluster(member *access.Member) *cluster { return newCluster(m.ctx, m.clock, member) }

// close ends the watches of a cluster that no request can be sent to, and its connections.
func (m *members) close(ctx context.Context, object *clusterv1alpha1.Cluster, reason string) {
	m.clusters.Open(ctx, object, reason, func() *cluster { return &cluster{absent: &absence{object.Name, reason}, cancel: func() {}} })
	m.pool.Close(object)
}

// snapshot returns the clusters that requests can be sent to, sorted, and the reasons for the others.
func (m *members) snapshot() (opened []*cluster, closed []absence) {
	for _, c := range m.clusters.All() {
		if c.absent != nil {
			closed = append(closed, *c.absent)
		} else {
			opened = append(opened, c)
		}
	}
	return opened, closed
}

// absence is a cluster that is missing in a response.
type absence struct{ cluster, reason string }

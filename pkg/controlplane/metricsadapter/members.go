package metricsadapter

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/karmada-toolkit/karmada/internal/controllers"
	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
	"github.com/karmada-toolkit/karmada/pkg/member/access"
)

const (
	// component is the name of the controller.
	component = "metrics-adapter"
	// openWorkers is the number of clusters that are opened at the same time.
	openWorkers = 8
	// reopenInterval is how often the credentials of a cluster are compared with those of its connections.
	reopenInterval = time.Minute
	// maxRetryDelay is the longest delay before another attempt to open a cluster.
	maxRetryDelay = 30 * time.Second
)

// Reasons why no request can be sent to a cluster.
const (
	reasonNotReady    = "it is not ready"
	reasonUnreachable = "it cannot be opened with its endpoint and Secret"
)

// members are the clusters that requests are sent to.
type members struct {
	ctx    context.Context //nolint:containedctx // the life of the watches
	clock  clock.PassiveClock
	pool   *access.Pool
	client client.Reader

	mu     sync.RWMutex
	opened map[string]*cluster
	// closed are the clusters that no request can be sent to, with the reason.
	closed map[string]string
}

// newMembers returns no members. Their watches end with ctx.
func newMembers(ctx context.Context, clk clock.PassiveClock, pool *access.Pool) *members {
	return &members{ctx: ctx, clock: clk, pool: pool, opened: map[string]*cluster{}, closed: map[string]string{}}
}

// setup adds the controller that opens and closes the clusters.
func (m *members) setup(mgr manager.Manager) error {
	m.client = mgr.GetClient()
	options := controllers.Options(openWorkers, openWorkers, controllers.Retry{BaseDelay: time.Second, MaxDelay: maxRetryDelay})
	options.NeedLeaderElection = new(bool)
	err := ctrl.NewControllerManagedBy(mgr).Named(component).
		For(&clusterv1alpha1.Cluster{}, builder.WithPredicates(predicate.Or(controllers.Changed(connectionChanged), controllers.Deleted()))).
		WithOptions(options).Complete(m)
	if err != nil {
		return fmt.Errorf("adding %s: %w", component, err)
	}
	return nil
}

// connectionChanged reports whether an update concerns the connection to a cluster.
func connectionChanged(before, after *clusterv1alpha1.Cluster) bool {
	return before.Generation != after.Generation || isReady(before) != isReady(after) || (before.DeletionTimestamp == nil) != (after.DeletionTimestamp == nil)
}

func isReady(c *clusterv1alpha1.Cluster) bool {
	return meta.IsStatusConditionTrue(c.Status.Conditions, clusterv1alpha1.ClusterConditionReady)
}

// Reconcile opens a cluster that is ready and closes one that is not.
func (m *members) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	object := &clusterv1alpha1.Cluster{}
	err := m.client.Get(ctx, req.NamespacedName, object)
	notFound := apierrors.IsNotFound(err)
	switch {
	case err != nil && !notFound:
		return reconcile.Result{}, err
	case notFound, object.DeletionTimestamp != nil:
		m.close(req.Name, "")
		return reconcile.Result{}, nil
	case !isReady(object):
		m.close(req.Name, reasonNotReady)
		return reconcile.Result{}, nil
	}
	member, err := m.pool.Member(ctx, object)
	if err != nil {
		m.close(req.Name, reasonUnreachable)
		return reconcile.Result{}, fmt.Errorf("opening cluster %s: %w", req.Name, err)
	}
	if m.open(member) {
		log.FromContext(ctx).Info("Opened cluster", "Cluster", req.Name)
	}
	return reconcile.Result{RequeueAfter: reopenInterval}, nil
}

// open starts to watch a cluster, unless it is watched through the same connections. It reports whether it started.
func (m *members) open(member *access.Member) bool {
	m.mu.RLock()
	current := m.opened[member.Name()]
	m.mu.RUnlock()
	if current != nil && current.member == member {
		return false
	}
	fresh := newCluster(m.ctx, m.clock, member)
	m.mu.Lock()
	m.opened[member.Name()] = fresh
	delete(m.closed, member.Name())
	m.mu.Unlock()
	if current != nil {
		current.stop()
	}
	return true
}

// close ends the watches of a cluster. An empty reason means that the cluster was deleted.
func (m *members) close(name, reason string) {
	m.mu.Lock()
	current := m.opened[name]
	delete(m.opened, name)
	delete(m.closed, name)
	if reason != "" {
		m.closed[name] = reason
	}
	m.mu.Unlock()
	if current != nil {
		current.stop()
	}
	if current != nil || reason == "" {
		m.pool.Close(name)
	}
}

// snapshot returns the clusters that requests can be sent to, sorted, and the reasons for the others.
func (m *members) snapshot() ([]*cluster, []absence) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	opened := make([]*cluster, 0, len(m.opened))
	for _, c := range m.opened {
		opened = append(opened, c)
	}
	closed := make([]absence, 0, len(m.closed))
	for name, reason := range m.closed {
		closed = append(closed, absence{name, reason})
	}
	slices.SortFunc(opened, func(a, b *cluster) int { return cmp.Compare(a.member.Name(), b.member.Name()) })
	return opened, closed
}

// absence is a cluster that is missing in a response.
type absence struct{ cluster, reason string }

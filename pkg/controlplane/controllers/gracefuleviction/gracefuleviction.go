// Package gracefuleviction ends the eviction tasks of bindings: when the workload is healthy elsewhere, when a user
// releases them, or when their time is over. It cancels evictions from clusters that are back before.
package gracefuleviction

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/karmada-toolkit/karmada/internal/controllers"
	"github.com/karmada-toolkit/karmada/internal/events"
	"github.com/karmada-toolkit/karmada/internal/patch"
	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
	workv1alpha2 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha2"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/env"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/evictions"
	"github.com/karmada-toolkit/karmada/pkg/domain/eviction"
	"github.com/karmada-toolkit/karmada/pkg/domain/scope"
)

const (
	defaultTimeout = 10 * time.Minute
	// minRequeue is the delay for a task whose time is over already.
	minRequeue = time.Millisecond
)

type reconciler struct {
	scope   *scope.Binding
	client  client.Client
	events  *events.Recorder
	clock   clock.PassiveClock
	timeout time.Duration
}

// Setup adds a controller for each kind of binding to the manager. The timeout limits the time of a task without a grace period.
// Default 10 min.
func Setup(_ context.Context, e *env.Env, timeout time.Duration) error {
	timeout = cmp.Or(max(timeout, 0), defaultTimeout)
	for _, s := range scope.Bindings() {
		name := eviction.GracefulController(s)
		r := &reconciler{scope: s, client: e.Client, events: e.Recorder(name), clock: e.Clock, timeout: timeout}
		err := e.Controller(name, scope.Pick(s.Namespaced, e.BindingSyncs, e.ClusterBindingSyncs), 5).For(s.New(), builder.WithPredicates(withTasks())).
			Watches(&clusterv1alpha1.Cluster{}, controllers.Enqueue(r.leaving), builder.WithPredicates(maybeBack())).Complete(r)
		if err != nil {
			return fmt.Errorf("adding %s: %w", name, err)
		}
	}
	return nil
}

// withTasks passes bindings with eviction tasks.
func withTasks() predicate.Predicate {
	has := func(b workv1alpha2.Binding) bool { return len(b.GetSpec().GracefulEvictionTasks) > 0 }
	return controllers.Filter[workv1alpha2.Binding]{
		Created: has, Updated: func(_, now workv1alpha2.Binding) bool { return has(now) }, Deleted: controllers.Never[workv1alpha2.Binding],
	}
}

// maybeBack passes clusters whose condition Ready, taints or labels changed.
func maybeBack() predicate.Predicate {
	return controllers.Changed(func(before, after *clusterv1alpha1.Cluster) bool {
		return after.Ready() && (!before.Ready() || !equality.Semantic.DeepEqual(before.Spec.Taints, after.Spec.Taints) || !maps.Equal(before.Labels, after.Labels))
	})
}

// leaving returns the bindings that are being evicted from a cluster.
func (r *reconciler) leaving(ctx context.Context, cluster *clusterv1alpha1.Cluster) []reconcile.Request {
	var out []reconcile.Request
	for _, b := range controllers.Listed(ctx, r.client, r.scope.NewList()).Bindings() {
		if slices.ContainsFunc(b.GetSpec().GracefulEvictionTasks, func(t workv1alpha2.GracefulEvictionTask) bool { return t.FromCluster == cluster.Name }) {
			out = append(out, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(b)})
		}
	}
	return out
}

// returnable returns the clusters to which a binding may return.
func (r *reconciler) returnable(ctx context.Context, b workv1alpha2.Binding) ([]string, error) {
	clusters := map[string]*clusterv1alpha1.Cluster{}
	for i := range b.GetSpec().GracefulEvictionTasks {
		name := b.GetSpec().GracefulEvictionTasks[i].FromCluster
		cluster := &clusterv1alpha1.Cluster{}
		if err := r.client.Get(ctx, client.ObjectKey{Name: name}, cluster); apierrors.IsNotFound(err) {
			continue
		} else if err != nil {
			return nil, fmt.Errorf("reading cluster %q: %w", name, err)
		}
		clusters[name] = cluster
	}
	return eviction.Returnable(b, clusters, r.clock.Now()), nil
}

// Reconcile ends the tasks of one binding that are due.
func (r *reconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	b := r.scope.New()
	if ok, err := controllers.Load(ctx, r.client, req.NamespacedName, b); !ok {
		return reconcile.Result{}, err
	}
	returnable, err := r.returnable(ctx, b)
	if err != nil {
		return reconcile.Result{}, err
	}
	verdict := eviction.Graceful(eviction.GracefulFacts{
		Now: r.clock.Now(), Timeout: r.timeout, Terminating: b.GetDeletionTimestamp() != nil,
		Generation: b.GetGeneration(), Spec: b.GetSpec(), Status: b.GetStatus(), Returnable: returnable,
	})
	if verdict.Changed {
		locked := patch.Locked(b)
		b.GetSpec().GracefulEvictionTasks = verdict.Keep
		if len(verdict.Cancelled) > 0 {
			b.GetSpec().Clusters = verdict.Clusters
		}
		if err := r.client.Patch(ctx, b, locked); err != nil {
			return reconcile.Result{}, fmt.Errorf("writing the eviction tasks of %s %q: %w", r.scope.Kind, req, err)
		}
		for _, cluster := range verdict.Ended {
			evictions.Succeeded(r.events, b, cluster)
		}
		for _, cluster := range verdict.Cancelled {
			evictions.Cancelled(r.events, b, cluster)
		}
	}
	if verdict.Requeue {
		return reconcile.Result{RequeueAfter: max(verdict.RequeueAfter, minRequeue)}, nil
	}
	return reconcile.Result{}, nil
}

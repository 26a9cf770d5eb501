// Package taintmanager evicts workloads from clusters with NoExecute taints that they do not tolerate.
package taintmanager

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/karmada-toolkit/karmada/internal/controllers"
	"github.com/karmada-toolkit/karmada/internal/events"
	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
	policyv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/policy/v1alpha1"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/scope"
)

// Component is the name of the controller and the source of its events.
const Component = "taint-manager"

// resync is the time between two searches for the bindings of a tainted cluster.
const resync = 10 * time.Second

// Deps are the dependencies of the controller beside a manager.
type Deps struct {
	// Evict turns evictions on. Without it, NoExecute taints have no effect.
	Evict bool
	// PurgeMode is the purge mode of bindings without a cluster failover behavior. Default Gracefully.
	PurgeMode policyv1alpha1.PurgeMode
	// Rate is the number of evictions per second of each of the three workers per kind of binding. With 0, a worker
	// waits for 30 min after an eviction.
	Rate float32
	// PreserveState is the feature gate StatefulFailoverInjection.
	PreserveState bool
	// Workers is the number of clusters that are reconciled at a time. Default 5.
	Workers int
	// Retry bounds the delay between attempts.
	Retry controllers.Retry
	// Clock is the real clock by default.
	Clock clock.WithTicker
}

// reconciler enqueues the bindings of tainted clusters.
type reconciler struct {
	client client.Client
	queues []*queue
}

// Setup adds the controller to the manager.
func Setup(_ context.Context, mgr manager.Manager, d Deps) error {
	if d.Clock == nil {
		d.Clock = clock.RealClock{}
	}
	if d.PurgeMode == "" {
		d.PurgeMode = policyv1alpha1.PurgeModeGracefully
	}
	r := &reconciler{client: mgr.GetClient()}
	recorder := events.ForManager(mgr, Component, events.Transitions)
	measured := newMetrics(metrics.Registry)
	for _, s := range scope.Bindings() {
		q := newQueue(s, mgr.GetClient(), recorder, measured, d)
		r.queues = append(r.queues, q)
		if err := mgr.Add(q); err != nil {
			return fmt.Errorf("adding the eviction queue of %s: %w", s.Kind, err)
		}
	}
	err := builder.ControllerManagedBy(mgr).Named(Component).
		For(&clusterv1alpha1.Cluster{}, builder.WithPredicates(taintsChanged())).
		WithOptions(controllers.Options(d.Workers, 5, d.Retry)).
		Complete(r)
	if err != nil {
		return fmt.Errorf("adding %s: %w", Component, err)
	}
	return nil
}

// taintsChanged passes new clusters and those whose taints changed.
func taintsChanged() predicate.Predicate {
	return controllers.Changed(func(before, after *clusterv1alpha1.Cluster) bool {
		return !equality.Semantic.DeepEqual(before.Spec.Taints, after.Spec.Taints)
	})
}

// Reconcile enqueues the bindings of one cluster while it has NoExecute taints.
func (r *reconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	cluster := &clusterv1alpha1.Cluster{}
	if err := r.client.Get(ctx, req.NamespacedName, cluster); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if !slices.ContainsFunc(cluster.Spec.Taints, func(t corev1.Taint) bool { return t.Effect == corev1.TaintEffectNoExecute }) {
		return reconcile.Result{}, nil
	}
	for _, q := range r.queues {
		if err := q.enqueue(ctx, cluster.Name); err != nil {
			return reconcile.Result{}, err
		}
	}
	return reconcile.Result{RequeueAfter: resync}, nil
}

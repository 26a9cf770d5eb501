package scheduler

import (
	"context"
	"fmt"
	"sync"
	"time"

	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/karmada-toolkit/karmada/internal/gates"
	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
	policyv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/policy/v1alpha1"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/estimator/client/managed"
	"github.com/karmada-toolkit/karmada/pkg/domain/schedule/core"
	"github.com/karmada-toolkit/karmada/pkg/domain/schedule/framework"
	"github.com/karmada-toolkit/karmada/pkg/domain/scope"
)

// Setup adds the role to a manager.
func Setup(_ context.Context, mgr manager.Manager, o *Options) error {
	if err := o.Validate(); err != nil {
		return fmt.Errorf("options of the scheduler: %w", err)
	}
	for _, f := range o.Gates.Changed(gates.SchedulerWithoutEffect()...) {
		mgr.GetLogger().Info("Setting has no effect in this version", "setting", fmt.Sprintf("--feature-gates=%s=%v", f, o.Gates.Enabled(f)))
	}
	s, err := newScheduler(o, deps{
		client: mgr.GetClient(), live: mgr.GetAPIReader(), events: mgr.GetEventRecorderFor(o.SchedulerName),
		clock: clock.RealClock{}, metrics: newMetrics(ctrlmetrics.Registry), registry: ctrlmetrics.Registry,
	})
	if err != nil {
		return err
	}
	if o.Estimator.Enabled {
		if s.decider.estimates, s.observer.forget, err = newEstimates(mgr, &o.Estimator); err != nil {
			return err
		}
	}
	registerQueue(ctrlmetrics.Registry, s.queue)
	r := &runner{scheduler: s, direct: o.Direct, workers: o.Workers, informers: mgr.GetCache(), watches: []watch{
		// Clusters come first: bindings are decided on them.
		{&clusterv1alpha1.Cluster{}, s.observer.clusterHandler()},
	}}
	for _, b := range scope.Bindings() {
		r.watches = append(r.watches, watch{b.New(), s.observer.bindingHandler(b)})
	}
	if s.committer.quotas {
		r.watches = append(r.watches, watch{&policyv1alpha1.FederatedResourceQuota{}, s.observer.quotaHandler()})
	}
	if err := mgr.Add(r); err != nil {
		return fmt.Errorf("adding the scheduler: %w", err)
	}
	return nil
}

// runner runs a scheduler once it leads.
type runner struct {
	scheduler *scheduler
	direct    *Direct // may be nil
	workers   int
	informers cache.Informers
	watches   []watch
}

type watch struct {
	of      client.Object
	handler toolscache.ResourceEventHandler
}

var _ manager.LeaderElectionRunnable = &runner{}

// NeedLeaderElection implements manager.LeaderElectionRunnable.
func (r *runner) NeedLeaderElection() bool { return true }

// sweepPeriod is the time between two sweeps, and between two passes of the prober.
const sweepPeriod = 5 * time.Second

// Start implements manager.Runnable.
func (r *runner) Start(ctx context.Context) error {
	ctx = log.IntoContext(ctx, log.FromContext(ctx).WithName("scheduler"))
	synced := make([]toolscache.InformerSynced, 0, len(r.watches))
	for _, w := range r.watches {
		// Not before: the API server may not serve the kinds when roles are set up.
		informer, err := r.informers.GetInformer(ctx, w.of, cache.BlockUntilSynced(false))
		if err != nil {
			return fmt.Errorf("watching %T for the scheduler: %w", w.of, err)
		}
		registration, err := informer.AddEventHandler(w.handler)
		if err != nil {
			return fmt.Errorf("watching %T for the scheduler: %w", w.of, err)
		}
		synced = append(synced, registration.HasSynced)
		defer func() { _ = informer.RemoveEventHandler(registration) }()
	}
	if !toolscache.WaitForCacheSync(ctx.Done(), synced...) {
		return nil // stopped before everything was seen
	}
	var wg sync.WaitGroup
	context.AfterFunc(ctx, r.scheduler.queue.ShutDown)
	wg.Go(func() { r.repeat(ctx, sweepPeriod, r.scheduler.observer.sweep) })
	wg.Go(func() { r.repeat(ctx, sweepPeriod, func() { r.scheduler.prober.pass(ctx) }) })
	if r.direct != nil {
		r.direct.running.Store(r.scheduler)
		defer r.direct.running.Store(nil)
	}
	for range r.workers {
		wg.Go(func() { r.scheduler.work(ctx) })
	}
	wg.Wait()
	return nil
}

// repeat calls a function that handles what changes with time.
func (r *runner) repeat(ctx context.Context, period time.Duration, do func()) {
	ticker := r.scheduler.clock.NewTicker(period)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C():
			do()
		}
	}
}

// newEstimates returns the answers of the accurate estimators of clusters, over
// connections that end with the manager, and what ends the connection to a cluster
// that was deleted.
func newEstimates(mgr manager.Manager, e *EstimatorOptions) (estimates Estimates, forget func(cluster string), err error) {
	pool, err := managed.NewPool(mgr, e.Options)
	if err != nil {
		return nil, nil, err
	}
	return func(ctx context.Context, request *core.Request, clusters []*framework.Cluster) map[string]core.Estimate {
		return pool.Estimates(ctx, request, clusters, e.DisabledInPullMode)
	}, pool.Forget, nil
}

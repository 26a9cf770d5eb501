package taintmanager

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/karmada-toolkit/karmada/internal/controllers"
	"github.com/karmada-toolkit/karmada/internal/events"
	"github.com/karmada-toolkit/karmada/internal/gates"
	"github.com/karmada-toolkit/karmada/internal/patch"
	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
	policyv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/policy/v1alpha1"
	workv1alpha2 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha2"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/env"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/evictions"
	"github.com/karmada-toolkit/karmada/pkg/domain/eviction"
	"github.com/karmada-toolkit/karmada/pkg/domain/scope"
)

const (
	// workers is the number of workers, each of which evicts at the rate.
	workers = 3
	// fastRate is the rate from which fastWorkers share the pace of the others: one eviction after the other would
	// take the time of the API server's answers.
	fastRate    = 20
	fastWorkers = 32
	// pause is the time between two evictions of a worker when the rate is 0.
	pause = 30 * time.Minute
)

// item is a binding in a tainted cluster.
type item struct {
	cluster string
	binding types.NamespacedName
}

// outcome is what became of an item.
type outcome struct {
	// evicted reports whether the binding was evicted.
	evicted bool
	// after is the time until the binding may be evicted; 0 means that only a change makes it due.
	after time.Duration
	// exhausted is the time until there is another eviction in the budget; 0 if the item did not need one.
	exhausted time.Duration
}

// queue evicts the bindings of one kind, those of higher priority first.
type queue struct {
	scope   *scope.Binding
	client  client.Client
	events  *events.Recorder
	metrics *queueMetrics
	env     *env.Env
	options Options
	items   priorityqueue.PriorityQueue[item]
}

func newQueue(e *env.Env, s *scope.Binding, recorder *events.Recorder, m *evictionMetrics, o Options) *queue {
	name := scope.Pick(s.Namespaced, "binding-eviction", "cluster-binding-eviction")
	q := &queue{scope: s, client: e.Client, events: recorder, env: e, options: o}
	q.options.PurgeMode = cmp.Or(o.PurgeMode, policyv1alpha1.PurgeModeGracefully)
	q.items = controllers.NewQueue(controllers.QueueOptions[item]{
		Name: name, Workers: q.workers(), Tenant: func(i item) string { return i.binding.Namespace },
		RateLimiter: controllers.RateLimiter[item](e.Retry),
	})
	q.metrics = m.queue(name, s.Kind)
	return q
}

// enqueue adds the bindings that target a cluster.
func (q *queue) enqueue(ctx context.Context, cluster string) error {
	list := q.scope.NewList()
	if err := q.client.List(ctx, list, client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("listing %ss: %w", q.scope.Kind, err)
	}
	type entry struct {
		item
		priority int
	}
	var entries []entry
	for _, b := range list.Bindings() {
		spec := b.GetSpec()
		if !slices.ContainsFunc(spec.Clusters, func(c workv1alpha2.TargetCluster) bool { return c.Name == cluster }) {
			continue
		}
		priority := 0
		if spec.SchedulePriority != nil {
			priority = int(spec.SchedulePriority.Priority)
		}
		entries = append(entries, entry{item{cluster, client.ObjectKeyFromObject(b)}, priority})
	}
	// The workers take what is there already while the rest is added.
	slices.SortStableFunc(entries, func(a, b entry) int { return cmp.Compare(b.priority, a.priority) })
	for _, e := range entries {
		q.items.AddWithOpts(priorityqueue.AddOpts{Priority: &e.priority}, e.item)
	}
	q.metrics.enqueued(cluster, len(entries), q.items.Len())
	return nil
}

// Start evicts until ctx ends.
func (q *queue) Start(ctx context.Context) error {
	controllers.Run(ctx, q.items, q.workers(), q.handle)
	return nil
}

// handle handles one item. It returns when that is due again.
func (q *queue) handle(ctx context.Context, next item) (time.Duration, error) {
	begin := q.env.Clock.Now()
	result, err := q.process(ctx, next)
	q.metrics.processed(q.env.Clock.Since(begin), err, q.items.Len())
	switch {
	case err != nil:
		if !apierrors.IsConflict(err) {
			log.FromContext(ctx).Error(err, "Evicting a workload", "cluster", next.cluster, q.scope.Kind, next.binding)
		}
		return 0, err
	case result.evicted:
		q.wait(ctx, q.interval())
	case result.exhausted > 0: // the next eviction is that of the highest priority by then
		q.wait(ctx, result.exhausted)
		return 1, nil
	}
	return result.after, nil
}

func (q *queue) workers() int {
	if q.options.Rate >= fastRate {
		return fastWorkers
	}
	return workers
}

// interval returns the time between two evictions of a worker.
func (q *queue) interval() time.Duration {
	if q.options.Rate > 0 {
		return time.Duration(float64(time.Second) / float64(q.options.Rate) * float64(q.workers()) / workers)
	}
	return pause
}

func (q *queue) wait(ctx context.Context, interval time.Duration) {
	timer := q.env.Clock.NewTimer(interval)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C():
	}
}

// process evicts a binding from a cluster if that is due.
func (q *queue) process(ctx context.Context, i item) (outcome, error) {
	b := q.scope.New()
	if err := q.client.Get(ctx, i.binding, b); err != nil {
		return outcome{}, client.IgnoreNotFound(err)
	}
	verdict, err := q.decide(ctx, b, i.cluster)
	if verdict.Unclaimed {
		evictions.Skipped(q.events, b, i.cluster)
	}
	if err != nil || !verdict.Evict {
		return outcome{after: verdict.After}, err
	}
	// The reconciler enqueues the bindings of a cluster that is held again.
	if held, err := q.options.Held(ctx, i.cluster); err != nil || held {
		return outcome{}, err
	}
	if after, err := q.options.Take(ctx); err != nil || after > 0 {
		return outcome{exhausted: after}, err
	}
	return q.evict(ctx, b, i, q.alsoFromOthers(ctx, b, verdict.Spec))
}

// decide returns whether a binding leaves a cluster.
func (q *queue) decide(ctx context.Context, b workv1alpha2.Binding, name string) (eviction.TaintVerdict, error) {
	cluster := &clusterv1alpha1.Cluster{}
	if err := q.client.Get(ctx, types.NamespacedName{Name: name}, cluster); apierrors.IsNotFound(err) {
		cluster = nil
	} else if err != nil {
		return eviction.TaintVerdict{}, fmt.Errorf("reading cluster %q: %w", name, err)
	}
	return eviction.Taint(eviction.TaintFacts{
		Now: q.env.Clock.Now(), ClusterName: name, Cluster: cluster, Binding: b,
		Enabled: q.options.Evict, PurgeMode: q.options.PurgeMode, PreserveState: q.env.Gates.Enabled(gates.StatefulFailoverInjection), KeepUnclaimed: true,
	})
}

// alsoFromOthers returns the spec of a binding that leaves a cluster, and with it all other targets that it has to leave
// now: the scheduler would give them the replicas of the first. Those that fail are left to their own items.
func (q *queue) alsoFromOthers(ctx context.Context, b workv1alpha2.Binding, spec *workv1alpha2.ResourceBindingSpec) *workv1alpha2.ResourceBindingSpec {
	left := b.DeepCopyObject().(workv1alpha2.Binding)
	for _, target := range spec.Clusters {
		*left.GetSpec() = *spec
		verdict, err := q.decide(ctx, left, target.Name)
		if err != nil || !verdict.Evict {
			continue
		}
		if held, err := q.options.Held(ctx, target.Name); err == nil && !held {
			spec = verdict.Spec
		}
	}
	return spec
}

// evict writes the task of an eviction.
func (q *queue) evict(ctx context.Context, b workv1alpha2.Binding, i item, spec *workv1alpha2.ResourceBindingSpec) (outcome, error) {
	eviction.Stamp(spec.GracefulEvictionTasks, q.env.Clock.Now())
	if err := q.write(ctx, b, spec); err != nil {
		q.options.Return()
		if !apierrors.IsConflict(err) {
			evictions.Failed(q.events, b, i.cluster, err)
		}
		return outcome{}, fmt.Errorf("writing the eviction task of %s %q: %w", q.scope.Kind, i.binding, err)
	}
	return outcome{evicted: true}, nil
}

// write writes the spec of a binding, with new targets if it can be scheduled here.
func (q *queue) write(ctx context.Context, b workv1alpha2.Binding, spec *workv1alpha2.ResourceBindingSpec) error {
	if q.env.Scheduler != nil {
		if done, err := q.env.Scheduler.Evict(ctx, q.scope, b, spec); done || err != nil {
			return err
		}
	}
	after := b.DeepCopyObject().(workv1alpha2.Binding)
	return patch.ChangeLocked(ctx, q.client, after, func() { *after.GetSpec() = *spec })
}

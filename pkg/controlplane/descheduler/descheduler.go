// Package descheduler takes replicas that stay unschedulable in a cluster from that cluster, so that the scheduler
// finds them another place.
package descheduler

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/pflag"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/util/retry"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/karmada-toolkit/karmada/internal/events"
	"github.com/karmada-toolkit/karmada/internal/limit"
	"github.com/karmada-toolkit/karmada/internal/metrics"
	workv1alpha2 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha2"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/delivery"
	estimator "github.com/karmada-toolkit/karmada/pkg/controlplane/estimator/client"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/estimator/client/managed"
	"github.com/karmada-toolkit/karmada/pkg/domain/deschedule"
)

// estimates returns the unschedulable replicas of a workload in clusters.
type estimates func(ctx context.Context, ref *workv1alpha2.ObjectReference, clusters []string, threshold time.Duration) []estimator.Unschedulable

// runner makes a pass over all bindings at each interval.
type runner struct {
	options   *Options
	client    client.Client
	live      client.Reader
	estimates estimates
	// keep ends the connections to the estimators of other clusters.
	keep   func(clusters sets.Set[string])
	events *events.Recorder
	clock  clock.WithTicker
	queue  *metrics.WorkQueue
}

var _ manager.LeaderElectionRunnable = &runner{}

// Setup adds the role to a manager.
func Setup(_ context.Context, mgr manager.Manager, o *Options) error {
	if err := o.Validate(); err != nil {
		return fmt.Errorf("options of the descheduler: %w", err)
	}
	pool, err := managed.NewPool(mgr, o.Estimator)
	if err != nil {
		return err
	}
	r := &runner{
		options: o, client: mgr.GetClient(), live: mgr.GetAPIReader(), estimates: pool.Unschedulable, keep: pool.Keep,
		events: events.ForManager(mgr, Component, o.Events), clock: clock.RealClock{},
		queue: metrics.NewWorkQueue(ctrlmetrics.Registry, Component, clock.RealClock{}),
	}
	if err := mgr.Add(r); err != nil {
		return fmt.Errorf("adding the descheduler: %w", err)
	}
	return nil
}

// NeedLeaderElection implements manager.LeaderElectionRunnable.
func (r *runner) NeedLeaderElection() bool { return true }

// Start implements manager.Runnable.
func (r *runner) Start(ctx context.Context) error {
	ctx = log.IntoContext(ctx, log.FromContext(ctx).WithName("descheduler"))
	ticker := r.clock.NewTicker(r.options.Interval)
	defer ticker.Stop()
	for {
		r.pass(ctx)
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C():
		}
	}
}

// pass handles every binding, one after the other, so that estimators are not called for many at once.
func (r *runner) pass(ctx context.Context) {
	list := &workv1alpha2.ResourceBindingList{}
	if err := r.client.List(ctx, list, client.UnsafeDisableDeepCopy); err != nil {
		log.FromContext(ctx).Error(err, "Listing the bindings")
		return
	}
	targets := sets.New[string]()
	for i := range list.Items {
		for _, target := range list.Items[i].Spec.Clusters {
			targets.Insert(target.Name)
		}
	}
	r.keep(targets)
	for i := range list.Items {
		b := &list.Items[i]
		if ctx.Err() != nil {
			return
		}
		if !deschedule.Considered(b) {
			continue
		}
		key := client.ObjectKeyFromObject(b)
		r.queue.Added(key)
		r.queue.Started(key)
		if err := r.deschedule(ctx, b); err != nil {
			log.FromContext(ctx).Error(err, "Descheduling a binding", "ResourceBinding", klog.KObj(b))
		}
		r.queue.Done(key)
	}
}

// deschedule takes back what is unschedulable of one binding. The binding is read-only.
func (r *runner) deschedule(ctx context.Context, cached *workv1alpha2.ResourceBinding) error {
	clusters := deschedule.Undesired(cached)
	if len(clusters) == 0 {
		return nil
	}
	answers := make(map[string]deschedule.Answer, len(clusters))
	for _, a := range r.estimates(ctx, &cached.Spec.Resource, clusters, r.options.Threshold) {
		answers[a.Cluster] = deschedule.Answer{Replicas: a.Replicas, Err: a.Err}
	}
	b := cached.DeepCopy()
	var v deschedule.Verdict
	err := retry.RetryOnConflict(retry.DefaultRetry, func() error {
		if v = decide(b, answers); v.Clusters == nil || r.options.DryRun {
			return nil
		}
		next := b.DeepCopy()
		next.Spec.Clusters = v.Clusters
		err := r.client.Update(ctx, next)
		if !apierrors.IsConflict(err) {
			return err
		}
		// Another client changed it: the decision is made again on what is stored.
		b = &workv1alpha2.ResourceBinding{}
		return errors.Join(err, r.live.Get(ctx, client.ObjectKeyFromObject(cached), b))
	})
	switch {
	case apierrors.IsNotFound(err):
		return nil
	case err != nil:
		publishFailed(r.events, b, err)
		return err
	case v.Err != nil:
		return fmt.Errorf("calling the estimators: %w", v.Err)
	case v.Clusters == nil:
		return nil
	case r.options.DryRun:
		log.FromContext(ctx).Info("Would deschedule replicas", "ResourceBinding", klog.KObj(b), "reductions", v.Reductions)
		return nil
	}
	log.FromContext(ctx).Info("Descheduled replicas", "ResourceBinding", klog.KObj(b), "reductions", v.Reductions)
	for _, obj := range delivery.EventObjects(b) {
		r.events.Normal(obj, ReasonSucceed, v.Message())
	}
	return nil
}

// decide decides on what is stored. A cluster whose estimator was not called because it had enough ready replicas
// before counts as one without an answer.
func decide(b *workv1alpha2.ResourceBinding, answers map[string]deschedule.Answer) deschedule.Verdict {
	if !deschedule.Considered(b) {
		return deschedule.Verdict{}
	}
	for _, cluster := range deschedule.Undesired(b) {
		if _, ok := answers[cluster]; !ok {
			return deschedule.Verdict{} // the next pass calls it
		}
	}
	return deschedule.Decide(b, answers)
}

// Options are the settings of the role.
type Options struct {
	// Interval is the time between two passes over all bindings. Default: 2 minutes.
	Interval time.Duration
	// Threshold is how long a replica must have been unschedulable before it is taken back. Default: 5 minutes.
	Threshold time.Duration
	// DryRun logs what would be taken back, and writes nothing.
	DryRun bool
	// Estimator configures the connections to estimators.
	Estimator estimator.Options
	// Events selects which successes are recorded. Default: events.Transitions.
	Events events.Mode
}

// NewOptions returns the defaults.
func NewOptions() *Options {
	return &Options{Interval: 2 * time.Minute, Threshold: 5 * time.Minute, Estimator: estimator.NewOptions()}
}

// AddFlags adds the flags of the role.
func (o *Options) AddFlags(fs *pflag.FlagSet) {
	fs.DurationVar(&o.Interval, "descheduling-interval", o.Interval, "Time between two passes over all workloads.")
	fs.DurationVar(&o.Threshold, "unschedulable-threshold", o.Threshold, "How long a replica must have been unschedulable before it is taken from its cluster.")
	fs.BoolVar(&o.DryRun, "dry-run", o.DryRun, "Log what would be taken from clusters, and change nothing.")
	o.Estimator.AddFlags(fs)
	o.Events.AddFlag(fs)
}

// Validate reports settings that cannot work.
func (o *Options) Validate() error {
	var errs limit.Checks
	errs.Require(o.Interval > 0, "--descheduling-interval is %s, must be greater than 0", o.Interval)
	errs.Require(o.Threshold >= 0, "--unschedulable-threshold is %s, must not be negative", o.Threshold)
	return errors.Join(append(errs, o.Estimator.Validate())...)
}

// Component is the source of the events.
const Component = "karmada-descheduler"

// Reasons of the events.
const (
	ReasonSucceed = "DescheduleBindingSucceed"
	ReasonFailed  = "DescheduleBindingFailed"
)

// publishFailed records why the targets could not be written.
func publishFailed(r *events.Recorder, b *workv1alpha2.ResourceBinding, err error) {
	for _, obj := range delivery.EventObjects(b) {
		r.Warning(obj, ReasonFailed, fmt.Sprintf("Failed to deschedule the binding: %v", err))
	}
}

// Package cronfederatedhpa scales workloads, and sets the bounds of FederatedHPAs, at times of day.
package cronfederatedhpa

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/retry"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/karmada-toolkit/karmada/internal/controllers"
	"github.com/karmada-toolkit/karmada/internal/events"
	"github.com/karmada-toolkit/karmada/internal/metrics"
	"github.com/karmada-toolkit/karmada/internal/patch"
	"github.com/karmada-toolkit/karmada/internal/status"
	autoscalingv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/autoscaling/v1alpha1"
	"github.com/karmada-toolkit/karmada/pkg/apis/validation"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/env"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/templates"
	"github.com/karmada-toolkit/karmada/pkg/domain/autoscaling"
)

// Component is the name of the controller in events and metrics.
const Component = "cronfederatedhpa-controller"

const (
	// workers is the number of objects that are reconciled at a time.
	workers = 5
	// recheck is the longest time between two reads of the clock, which may be set.
	recheck = time.Minute
	// retryInterval is the time until a status is written again that could not be. Rules run at their times nevertheless.
	retryInterval = 5 * time.Second
)

type reconciler struct {
	client   client.Client
	live     client.Reader
	status   *status.Writer[*autoscalingv1alpha1.CronFederatedHPA, *autoscalingv1alpha1.CronFederatedHPAStatus]
	events   *events.Recorder
	passes   *prometheus.HistogramVec
	runs     *prometheus.HistogramVec
	deadline time.Duration
	clock    clock.PassiveClock

	mu     sync.Mutex
	states map[types.NamespacedName]*state
}

// state is what is kept of an object. It has one user at a time.
type state struct {
	uid     types.UID
	table   *autoscaling.Timetable
	written status.Written[*autoscalingv1alpha1.CronFederatedHPAStatus]
	// executed are executions that are not in the status yet, as many as it has room for.
	executed []execution
}

// execution is a finished execution of a rule.
type execution struct {
	autoscaling.Due
	at  time.Time
	err error
}

// Setup adds the controller to the manager. A rule that was missed while no controller ran runs up to the deadline later.
func Setup(_ context.Context, e *env.Env, deadline time.Duration) error {
	return controllers.Add(e.Manager, Component, &autoscalingv1alpha1.CronFederatedHPA{}, predicate.GenerationChangedPredicate{},
		e.Options(workers, workers), newReconciler(e, events.ForManager(e.Manager, Component, events.Transitions), deadline))
}

func newReconciler(e *env.Env, recorder *events.Recorder, deadline time.Duration) *reconciler {
	buckets := prometheus.ExponentialBuckets(0.001, 2, 12)
	return &reconciler{
		client: e.Client, live: e.Live, events: recorder, deadline: deadline, clock: e.Clock, states: map[types.NamespacedName]*state{},
		passes: metrics.Histogram(e.Metrics, "cronfederatedhpa_process_duration_seconds", "Time of a pass over a CronFederatedHPA.", buckets, "result"),
		runs:   metrics.Histogram(e.Metrics, "cronfederatedhpa_rule_process_duration_seconds", "Time of an execution of a rule.", buckets, "result"),
		status: status.For(e.Client, e.Live, e.Clock, func(c *autoscalingv1alpha1.CronFederatedHPA) *autoscalingv1alpha1.CronFederatedHPAStatus {
			return &c.Status
		}),
	}
}

// Reconcile runs the rules that are due and writes when each runs next.
func (r *reconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	obj := &autoscalingv1alpha1.CronFederatedHPA{}
	if err := r.client.Get(ctx, req.NamespacedName, obj); err != nil || obj.DeletionTimestamp != nil {
		if client.IgnoreNotFound(err) == nil {
			r.forget(req.NamespacedName)
		}
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	began := r.clock.Now()
	s := r.stateOf(obj, began)
	invalid, err := r.pass(ctx, obj, s, began)
	r.passes.WithLabelValues(metrics.Result(errors.Join(invalid, err))).Observe(r.clock.Since(began).Seconds())
	limit := recheck
	if err != nil {
		log.FromContext(ctx).Error(err, "Cannot write status", "CronFederatedHPA", klog.KObj(obj))
		limit = retryInterval
	}
	// A rule that cannot start waits for a change of the object; the others go on.
	return reconcile.Result{RequeueAfter: max(s.table.Wait(r.clock.Now(), limit), time.Millisecond)}, nil
}

func (r *reconciler) stateOf(obj *autoscalingv1alpha1.CronFederatedHPA, now time.Time) *state {
	r.mu.Lock()
	defer r.mu.Unlock()
	key := client.ObjectKeyFromObject(obj)
	s := r.states[key]
	if s == nil || s.uid != obj.UID {
		s = &state{uid: obj.UID, table: autoscaling.NewTimetable(obj, now, r.deadline)}
		r.states[key] = s
	}
	return s
}

func (r *reconciler) forget(key types.NamespacedName) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.states, key)
}

// pass returns the error of a rule that cannot start, and that of the pass.
func (r *reconciler) pass(ctx context.Context, obj *autoscalingv1alpha1.CronFederatedHPA, s *state, now time.Time) (invalid, err error) {
	_, invalid = s.table.Sync(obj, nil, now)
	if invalid != nil {
		r.events.Warning(obj, "StartRuleFailed", invalid.Error())
	}
	reason := "UpdateCronFederatedHPAFailed"
	if due := s.table.Take(obj, now); len(due) > 0 {
		reason = "UpdateStatusFailed"
		s.executed = append(s.executed, r.executeAll(ctx, obj, due, now)...)
	}
	s.executed = recordable(s.executed, obj.Spec.Rules)
	_, err = r.status.Write(ctx, obj, &s.written, func(status *autoscalingv1alpha1.CronFederatedHPAStatus) {
		status.ExecutionHistories, _ = s.table.Sync(obj, status.ExecutionHistories, now)
		for _, e := range s.executed {
			autoscaling.Record(status.ExecutionHistories, &e.Rule, e.Scheduled, e.at, s.table.Next(e.Rule.Name), e.err)
		}
	})
	if err != nil {
		r.events.Warning(obj, reason, err.Error())
		return invalid, err
	}
	s.executed = nil
	// Objects that are older than the limits go on.
	if exceeded := validation.ValidateCronLimits(obj, nil); len(exceeded) > 0 {
		r.events.PartWarning(obj, "limits", "LimitExceeded", exceeded[0].Error()+"; the rules still run, and change only within the limits")
	}
	if invalid == nil {
		r.events.Recovered(obj)
	}
	return invalid, nil
}

// recordable returns the executions for which the history has room, so that their number is limited while no status can be
// written.
func recordable(executions []execution, rules []autoscalingv1alpha1.CronFederatedHPARule) []execution {
	type list struct {
		rule   string
		failed bool
	}
	room := map[list]int{}
	for i := range rules {
		for _, failed := range []bool{false, true} {
			room[list{rules[i].Name, failed}] = autoscaling.HistoryLimit(&rules[i], failed)
		}
	}
	kept := 0
	for i, e := range slices.Backward(executions) {
		if l := (list{e.Rule.Name, e.err != nil}); room[l] > 0 {
			room[l]--
			kept++
			executions[len(executions)-kept] = executions[i]
		}
	}
	return executions[len(executions)-kept:]
}

// executeAll runs the rules that are due together. Of those that set the replicas of a workload only the last one does it,
// and its result is that of all: what the others set would be replaced at once, and each costs a read and a write of the
// workload.
func (r *reconciler) executeAll(ctx context.Context, obj *autoscalingv1alpha1.CronFederatedHPA, due []autoscaling.Due, now time.Time) []execution {
	target, err := autoscaling.CronTarget(obj)
	scales := func(d *autoscaling.Due) bool { return err == nil && !target.Bounds && d.Rule.TargetReplicas != nil }
	last := -1
	for i := range due {
		if scales(&due[i]) {
			last = i
		}
	}
	out := make([]execution, len(due))
	for i := range due {
		out[i] = execution{Due: due[i], at: now}
		if i == last || !scales(&due[i]) {
			out[i].err = r.execute(ctx, obj, &due[i].Rule)
		}
	}
	for i := range out[:max(last, 0)] {
		if scales(&due[i]) {
			out[i].err = out[last].err
		}
	}
	return out
}

// execute runs a rule.
func (r *reconciler) execute(ctx context.Context, obj *autoscalingv1alpha1.CronFederatedHPA, rule *autoscalingv1alpha1.CronFederatedHPARule) error {
	began := r.clock.Now()
	err := r.scale(ctx, obj, rule)
	r.runs.WithLabelValues(metrics.Result(err)).Observe(r.clock.Since(began).Seconds())
	logger := log.FromContext(ctx).WithValues("CronFederatedHPA", klog.KObj(obj), "rule", rule.Name)
	if err != nil {
		// Each execution is recorded, even if the last one failed for the same reason.
		r.events.Recovered(obj)
		r.events.Warning(obj, "ScaleFailed", err.Error())
		logger.Info("Rule failed", "problem", err.Error())
		return err
	}
	logger.Info("Rule ran")
	return nil
}

func (r *reconciler) scale(ctx context.Context, obj *autoscalingv1alpha1.CronFederatedHPA, rule *autoscalingv1alpha1.CronFederatedHPARule) error {
	target, err := autoscaling.CronTarget(obj)
	if err != nil {
		return err
	}
	key := types.NamespacedName{Namespace: obj.Namespace, Name: obj.Spec.ScaleTargetRef.Name}
	if target.Bounds {
		return retry.RetryOnConflict(retry.DefaultRetry, func() error { return r.rebound(ctx, key, rule) })
	}
	if rule.TargetReplicas == nil {
		return fmt.Errorf("rule %q has no targetReplicas: set it to scale %s %q", rule.Name, target.Kind, key.Name)
	}
	workload := &unstructured.Unstructured{}
	workload.SetGroupVersionKind(target.GroupVersionKind)
	workload.SetNamespace(key.Namespace)
	workload.SetName(key.Name)
	return retry.RetryOnConflict(retry.DefaultRetry, func() error {
		scale, err := templates.Scale(ctx, r.client, workload)
		if err != nil || scale.Spec.Replicas == *rule.TargetReplicas {
			return err
		}
		return templates.SetReplicas(ctx, r.client, workload, scale, *rule.TargetReplicas)
	})
}

// rebound sets the bounds of a FederatedHPA.
func (r *reconciler) rebound(ctx context.Context, key types.NamespacedName, rule *autoscalingv1alpha1.CronFederatedHPARule) error {
	hpa := &autoscalingv1alpha1.FederatedHPA{}
	if err := r.live.Get(ctx, key, hpa); err != nil {
		return err
	}
	locked := patch.Locked(hpa)
	changed, err := autoscaling.Rebound(hpa, rule)
	if err != nil || !changed {
		return err
	}
	return r.client.Patch(ctx, hpa, locked)
}

// Package detector finds the policy of each template, writes the claim on the
// template, and writes the binding that the policy describes.
package detector

import (
	"context"
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/karmada-toolkit/karmada/internal/controllers"
	"github.com/karmada-toolkit/karmada/internal/events"
	"github.com/karmada-toolkit/karmada/internal/gates"
	sharedmetrics "github.com/karmada-toolkit/karmada/internal/metrics"
	"github.com/karmada-toolkit/karmada/internal/status"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/env"
	"github.com/karmada-toolkit/karmada/pkg/domain/scope"
)

// Component is the source of the events.
const Component = "resource-detector"

// detector holds the reconcilers of templates and of both kinds of policy.
type detector struct {
	source    *templateSource
	restorer  *restorer
	templates *templateReconciler
	policies  []*policyReconciler
}

// Setup adds the detector to the manager.
func Setup(ctx context.Context, e *env.Env) error {
	if err := index(ctx, e); err != nil {
		return err
	}
	det := newDetector(e, e.Recorder(Component))
	options := controllers.OptionsOf(e.TemplateSyncs, 5, e.Retry, func(k templateKey) string { return k.namespace })
	options.Reconciler = det.templates
	c, err := controller.NewTyped(Component, e.Manager, options)
	if err != nil {
		return err
	}
	if err := c.Watch(det.source); err != nil {
		return fmt.Errorf("watching templates: %w", err)
	}
	for _, s := range scope.Bindings() {
		var kind client.Object = s.New()
		if err := c.Watch(source.TypedKind(e.Manager.GetCache(), kind, det.restorer.handler())); err != nil {
			return fmt.Errorf("watching bindings: %w", err)
		}
	}
	for _, r := range det.policies {
		if err := r.register(e); err != nil {
			return err
		}
	}
	return nil
}

func newDetector(e *env.Env, recorded *events.Recorder) *detector {
	c, live := e.Client, e.Live
	rec, m := &recorder{recorded}, newMetrics(e.Metrics, e.Clock)
	waiting, queue := newWaiting(), newQueue()
	policies := &policyReader{client: c, live: live}
	bindings := &bindings{
		scheduler: e.Scheduler,
		client:    c, live: live, records: status.NewMemory[objectKey, propagated](0),
		removed: status.NewMemory[objectKey, predecessor](0),
		specs:   &specBuilder{store: e.Store, interpreter: e.Interpreter, gates: e.Gates, events: rec},
	}
	claims := &claims{client: c, live: live, store: e.Store, bindings: bindings}
	out := &detector{
		source: &templateSource{
			client: c, store: e.Store, interpreter: e.Interpreter, queue: queue, waiting: waiting, bindings: bindings,
		},
		templates: &templateReconciler{
			store: e.Store, policies: policies, bindings: bindings, claims: claims, waiting: waiting, events: rec, metrics: m,
			unmatched: &unmatchedReporter{live: live, bindings: bindings, waiting: waiting, queue: queue, events: rec, clock: e.Clock},
		},
	}
	out.restorer = &restorer{bindings: bindings}
	started := e.Clock.Now()
	for _, s := range scope.Policies() {
		preemptor := &preemptor{
			enabled: e.Gates.Enabled(gates.PropagationPolicyPreemption), scope: s, client: c, store: e.Store, policies: policies, claims: claims, events: rec, metrics: m,
			priorities: newMemory[int32](),
		}
		out.policies = append(out.policies, &policyReconciler{
			scope: s, client: c, store: e.Store, queue: queue, waiting: waiting, claims: claims, preemptor: preemptor,
			held: &heldReporter{store: e.Store, preemptor: preemptor, events: rec, started: started, reported: newMemory[int64]()},
		})
	}
	return out
}

// metrics are the metrics of the detector.
type metrics struct {
	clock       clock.PassiveClock
	match       prometheus.Histogram
	apply       *prometheus.HistogramVec
	attempts    *prometheus.CounterVec
	preemptions *prometheus.CounterVec
}

// newMetrics registers the metrics; those that are registered already are shared.
func newMetrics(r prometheus.Registerer, c clock.PassiveClock) *metrics {
	buckets := prometheus.ExponentialBuckets(0.001, 2, 12)
	return &metrics{
		clock: c,
		match: sharedmetrics.Register(r, prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "resource_match_policy_duration_seconds", Help: "Time to find the policy of a template.", Buckets: buckets,
		})),
		apply:       sharedmetrics.Histogram(r, "resource_apply_policy_duration_seconds", "Time to apply a policy to a template.", buckets, "result"),
		attempts:    sharedmetrics.Counter(r, "policy_apply_attempts_total", "Attempts to apply a policy to a template.", "result"),
		preemptions: sharedmetrics.Counter(r, "policy_preemption_total", "Attempts of a policy to take a template over.", "result"),
	}
}

func (m *metrics) matched(since time.Time) { m.match.Observe(m.clock.Since(since).Seconds()) }

func (m *metrics) applied(since time.Time, err error) {
	m.apply.WithLabelValues(sharedmetrics.Result(err)).Observe(m.clock.Since(since).Seconds())
	m.attempts.WithLabelValues(sharedmetrics.Result(err)).Inc()
}

func (m *metrics) preempted(err error) {
	m.preemptions.WithLabelValues(sharedmetrics.Result(err)).Inc()
}

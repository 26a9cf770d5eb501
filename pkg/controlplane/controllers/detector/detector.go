// Package detector finds the policy of each template, writes the claim on the
// template, and writes the binding that the policy describes.
package detector

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/karmada-toolkit/karmada/internal/controllers"
	"github.com/karmada-toolkit/karmada/internal/events"
	sharedmetrics "github.com/karmada-toolkit/karmada/internal/metrics"
	"github.com/karmada-toolkit/karmada/internal/status"
	configv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/config/v1alpha1"
	workv1alpha2 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha2"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/templates"
	"github.com/karmada-toolkit/karmada/pkg/domain/scope"
)

// Component is the source of the events.
const Component = "resource-detector"

// Interpreter interprets templates. It only reads the objects that it gets.
type Interpreter interface {
	HookEnabled(gvk schema.GroupVersionKind, op configv1alpha1.InterpreterOperation) bool
	GetReplicas(obj *unstructured.Unstructured) (int32, *workv1alpha2.ReplicaRequirements, error)
	GetComponents(obj *unstructured.Unstructured) ([]workv1alpha2.Component, error)
}

// Gates are the feature gates that affect the detector.
type Gates struct {
	// Preemption is PropagationPolicyPreemption.
	Preemption bool
	// Priority is PriorityBasedScheduling.
	Priority bool
	// Components is MultiplePodTemplatesScheduling.
	Components bool
	// WorkloadAffinity is the gate of that name.
	WorkloadAffinity bool
	// Quota is ResourceQuotaEstimate.
	Quota bool
}

// Deps are the dependencies of the detector beside a manager.
type Deps struct {
	Store       *templates.Store
	Interpreter Interpreter
	Gates       Gates
	// TemplateWorkers is the number of templates reconciled at the same time.
	// Default: 5.
	TemplateWorkers int
	// PolicyWorkers and ClusterPolicyWorkers are the numbers of policies reconciled at
	// the same time. Default: 1.
	PolicyWorkers, ClusterPolicyWorkers int
	// Retry bounds the delay between attempts.
	Retry controllers.Retry
	// Events selects the successes that are recorded. Default: events.Transitions.
	Events events.Mode
	// Registerer receives the metrics. Default: that of controller-runtime.
	Registerer prometheus.Registerer
	// Clock returns the time. Default: the real one.
	Clock clock.PassiveClock
}

// detector holds the reconcilers of templates and of both kinds of policy.
type detector struct {
	source    *templateSource
	restorer  *restorer
	templates *templateReconciler
	policies  []*policyReconciler
}

// Setup adds the detector to the manager.
func Setup(ctx context.Context, mgr manager.Manager, d Deps) error {
	if err := index(ctx, mgr.GetFieldIndexer()); err != nil {
		return err
	}
	det := newDetector(mgr.GetClient(), mgr.GetAPIReader(), d, events.ForManager(mgr, Component, d.Events))
	options := controllers.OptionsOf(d.TemplateWorkers, 5, d.Retry, func(k templateKey) string { return k.namespace })
	options.Reconciler = det.templates
	c, err := controller.NewTyped(Component, mgr, options)
	if err != nil {
		return err
	}
	if err := c.Watch(det.source); err != nil {
		return fmt.Errorf("watching templates: %w", err)
	}
	for _, s := range scope.Bindings() {
		var kind client.Object = s.New()
		if err := c.Watch(source.TypedKind(mgr.GetCache(), kind, det.restorer.handler())); err != nil {
			return fmt.Errorf("watching bindings: %w", err)
		}
	}
	for _, r := range det.policies {
		if err := r.register(mgr, d); err != nil {
			return err
		}
	}
	return nil
}

func newDetector(c client.Client, live client.Reader, d Deps, recorded *events.Recorder) *detector {
	if d.Registerer == nil {
		d.Registerer = ctrlmetrics.Registry
	}
	d.Clock = cmp.Or[clock.PassiveClock](d.Clock, clock.RealClock{})
	rec, m := &recorder{recorded}, newMetrics(d.Registerer, d.Clock)
	waiting, queue := newWaiting(), newQueue()
	policies := &policyReader{client: c, live: live}
	bindings := &bindings{
		client: c, live: live, records: status.NewMemory[objectKey, propagated](0),
		removed: status.NewMemory[objectKey, predecessor](0),
		specs:   &specBuilder{store: d.Store, interpreter: d.Interpreter, gates: d.Gates, events: rec},
	}
	claims := &claims{client: c, live: live, store: d.Store, bindings: bindings}
	out := &detector{
		source: &templateSource{
			client: c, store: d.Store, interpreter: d.Interpreter, queue: queue, waiting: waiting, bindings: bindings,
		},
		templates: &templateReconciler{
			store: d.Store, policies: policies, bindings: bindings, claims: claims, waiting: waiting, events: rec, metrics: m,
			unmatched: &unmatchedReporter{live: live, bindings: bindings, waiting: waiting, queue: queue, events: rec, clock: d.Clock},
		},
	}
	out.restorer = &restorer{bindings: bindings}
	started := d.Clock.Now()
	for _, s := range scope.Policies() {
		preemptor := &preemptor{
			enabled: d.Gates.Preemption, scope: s, client: c, store: d.Store, policies: policies, claims: claims, events: rec, metrics: m,
			priorities: newMemory[int32](),
		}
		out.policies = append(out.policies, &policyReconciler{
			scope: s, client: c, store: d.Store, queue: queue, waiting: waiting, claims: claims, preemptor: preemptor,
			held: &heldReporter{store: d.Store, preemptor: preemptor, events: rec, started: started, reported: newMemory[int64]()},
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

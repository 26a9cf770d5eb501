package scheduler

import (
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/utils/clock"

	sharedmetrics "github.com/karmada-toolkit/karmada/internal/metrics"
	"github.com/karmada-toolkit/karmada/pkg/domain/schedule/core"
	"github.com/karmada-toolkit/karmada/pkg/domain/schedule/framework"
)

// The events that enqueue bindings.
const (
	eventBindingAdd    = "BindingAdd"
	eventBindingUpdate = "BindingUpdate"
	eventCluster       = "ClusterChanged"
	eventFailure       = "ScheduleAttemptFailure"
)

// metrics are those of the role.
type metrics struct {
	attempts  *prometheus.CounterVec
	e2e       *prometheus.HistogramVec
	algorithm *prometheus.HistogramVec
	incoming  *prometheus.CounterVec
	extension *prometheus.HistogramVec
	plugin    *prometheus.HistogramVec
}

// newMetrics registers the metrics; those that are registered already are shared.
func newMetrics(r prometheus.Registerer) *metrics {
	return &metrics{
		attempts: sharedmetrics.Counter(r, "karmada_scheduler_schedule_attempts_total", "Attempts to schedule a binding.", "result", "schedule_type"),
		e2e: sharedmetrics.Histogram(r, "karmada_scheduler_e2e_scheduling_duration_seconds", "Time from taking a binding off the queue to the last write.",
			prometheus.ExponentialBuckets(0.001, 2, 15), "result", "schedule_type"),
		algorithm: sharedmetrics.Histogram(r, "karmada_scheduler_scheduling_algorithm_duration_seconds", "Time that a step of a decision takes.",
			prometheus.ExponentialBuckets(0.001, 2, 15), "schedule_step"),
		incoming: sharedmetrics.Counter(r, "karmada_scheduler_queue_incoming_bindings_total", "Bindings that came into the queue.", "event"),
		extension: sharedmetrics.Histogram(r, "karmada_scheduler_framework_extension_point_duration_seconds", "Time that all plugins of an extension point take for a decision.",
			prometheus.ExponentialBuckets(0.0001, 2, 12), "extension_point", "result"),
		plugin: sharedmetrics.Histogram(r, "karmada_scheduler_plugin_execution_duration_seconds", "Time that one call of a plugin takes; a part of the calls is measured.",
			prometheus.ExponentialBuckets(0.00001, 1.5, 20), "plugin", "extension_point", "result"),
	}
}

// registerQueue adds the metrics of a queue, before it is used.
func registerQueue(r prometheus.Registerer, q *queue) {
	gauge := func(name string, of func(active, backoff, unschedulable int) int) {
		g := prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Subsystem: "scheduler", Name: "pending_bindings", Help: "Bindings that wait, by queue.",
			ConstLabels: prometheus.Labels{"queue": name},
		}, func() float64 { return float64(of(q.Pending())) })
		if err := r.Register(g); err != nil {
			r.Unregister(g)
			_ = r.Register(g)
		}
	}
	gauge("active", func(a, _, _ int) int { return a })
	gauge("backoff", func(_, b, _ int) int { return b })
	gauge("unschedulable", func(_, _, u int) int { return u })
}

// watch observes the durations of the steps of one decision.
func (m *metrics) watch(c clock.PassiveClock) *stepWatch {
	return &stepWatch{metrics: m, clock: c, last: c.Now()}
}

type stepWatch struct {
	metrics *metrics
	clock   clock.PassiveClock
	last    time.Time
	filter  time.Duration
}

func (w *stepWatch) step(s core.Step) {
	now := w.clock.Now()
	took := now.Sub(w.last)
	w.last = now
	w.metrics.algorithm.WithLabelValues(string(s)).Observe(took.Seconds())
	switch s {
	case core.StepFilter:
		w.filter += took
	case core.StepScore:
		w.metrics.extension.WithLabelValues("Score", "Success").Observe(took.Seconds())
	}
}

func (w *stepWatch) done(err error) {
	result := "Success"
	if err != nil && core.ClassOf(err) == core.NoClusterFit {
		result = "Unschedulable"
	}
	w.metrics.extension.WithLabelValues("Filter", result).Observe(w.filter.Seconds())
}

// sampleEvery is the number of decisions per decision whose plugin calls are
// measured.
const sampleEvery = 32

// profiles returns the plugins; every sampleEvery-th time a set that measures each
// call.
type profiles struct {
	plain, timed *core.Profile
	count        atomic.Uint64
}

func newProfiles(plugins []framework.Plugin, m *metrics, c clock.PassiveClock) (*profiles, error) {
	plain, err := core.NewProfile(plugins...)
	if err != nil {
		return nil, err
	}
	wrapped := make([]framework.Plugin, 0, len(plugins))
	for _, p := range plugins {
		if f, ok := p.(framework.Filter); ok {
			wrapped = append(wrapped, timedFilter{f, m, c})
		}
		if n, ok := p.(framework.Normalizer); ok {
			wrapped = append(wrapped, timedNormalizer{timedScore{n, m, c}, n})
		} else if s, ok := p.(framework.Score); ok {
			wrapped = append(wrapped, timedScore{s, m, c})
		}
	}
	timed, err := core.NewProfile(wrapped...)
	return &profiles{plain: plain, timed: timed}, err
}

func (p *profiles) next() *core.Profile {
	if p.count.Add(1)%sampleEvery == 1 {
		return p.timed
	}
	return p.plain
}

type timedFilter struct {
	plugin  framework.Filter
	metrics *metrics
	clock   clock.PassiveClock
}

// Name implements framework.Plugin.
func (t timedFilter) Name() string { return t.plugin.Name() }

// Filter implements framework.Filter.
func (t timedFilter) Filter(pass *framework.Pass, cluster *framework.ClusterInfo) framework.Verdict {
	start := t.clock.Now()
	verdict := t.plugin.Filter(pass, cluster)
	result := "Success"
	switch {
	case verdict.Failed:
		result = "Error"
	case !verdict.Fits():
		result = "Unschedulable"
	}
	t.metrics.plugin.WithLabelValues(t.Name(), "Filter", result).Observe(t.clock.Since(start).Seconds())
	return verdict
}

type timedScore struct {
	plugin  framework.Score
	metrics *metrics
	clock   clock.PassiveClock
}

// Name implements framework.Plugin.
func (t timedScore) Name() string { return t.plugin.Name() }

// Score implements framework.Score.
func (t timedScore) Score(pass *framework.Pass, cluster *framework.ClusterInfo) (int64, error) {
	start := t.clock.Now()
	score, err := t.plugin.Score(pass, cluster)
	t.metrics.plugin.WithLabelValues(t.Name(), "Score", resultLabel(err)).Observe(t.clock.Since(start).Seconds())
	return score, err
}

type timedNormalizer struct {
	timedScore
	plugin framework.Normalizer
}

// Normalize implements framework.Normalizer.
func (t timedNormalizer) Normalize(pass *framework.Pass, scores []int64) error {
	start := t.clock.Now()
	err := t.plugin.Normalize(pass, scores)
	t.metrics.plugin.WithLabelValues(t.Name(), "ScoreExtensionNormalize", resultLabel(err)).Observe(t.clock.Since(start).Seconds())
	return err
}

func resultLabel(err error) string {
	if err != nil {
		return "Error"
	}
	return "Success"
}

package detector

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/utils/clock"

	"github.com/karmada-toolkit/karmada/internal/metrics"
)

// measures are what the detector measures of itself.
type measures struct {
	clock       clock.PassiveClock
	match       prometheus.Histogram
	apply       *prometheus.HistogramVec
	attempts    *prometheus.CounterVec
	preemptions *prometheus.CounterVec
}

// newMeasures registers the metrics; those that are there already are shared.
func newMeasures(r prometheus.Registerer, c clock.PassiveClock) *measures {
	buckets := prometheus.ExponentialBuckets(0.001, 2, 12)
	return &measures{
		clock: c,
		match: metrics.Register(r, prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "resource_match_policy_duration_seconds", Help: "Time to find the policy of a template.", Buckets: buckets,
		})),
		apply: metrics.Register(r, prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "resource_apply_policy_duration_seconds", Help: "Time to apply a policy to a template.", Buckets: buckets,
		}, []string{"result"})),
		attempts: metrics.Register(r, prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "policy_apply_attempts_total", Help: "Attempts to apply a policy to a template.",
		}, []string{"result"})),
		preemptions: metrics.Register(r, prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "policy_preemption_total", Help: "Attempts of a policy to take a template over.",
		}, []string{"result"})),
	}
}

func (m *measures) matched(since time.Time) { m.match.Observe(m.clock.Since(since).Seconds()) }

func (m *measures) applied(since time.Time, err error) {
	m.apply.WithLabelValues(metrics.Result(err)).Observe(m.clock.Since(since).Seconds())
	m.attempts.WithLabelValues(metrics.Result(err)).Inc()
}

func (m *measures) preempted(err error) { m.preemptions.WithLabelValues(metrics.Result(err)).Inc() }

package detector

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/utils/clock"

	sharedmetrics "github.com/karmada-toolkit/karmada/internal/metrics"
)

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
		apply: sharedmetrics.Register(r, prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "resource_apply_policy_duration_seconds", Help: "Time to apply a policy to a template.", Buckets: buckets,
		}, []string{"result"})),
		attempts: sharedmetrics.Register(r, prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "policy_apply_attempts_total", Help: "Attempts to apply a policy to a template.",
		}, []string{"result"})),
		preemptions: sharedmetrics.Register(r, prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "policy_preemption_total", Help: "Attempts of a policy to take a template over.",
		}, []string{"result"})),
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

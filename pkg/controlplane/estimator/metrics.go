package estimator

import (
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/utils/clock"

	sharedmetrics "github.com/karmada-toolkit/karmada/internal/metrics"
)

// The steps of a request.
const (
	stepTotal = "Total"
	stepCache = "GetObjectFromCache"
	stepPods  = "GetWorkloadUnschedulablePods"
)

// metrics are those of the role.
type metrics struct {
	requests  *prometheus.CounterVec
	algorithm *prometheus.HistogramVec
	extension *prometheus.HistogramVec
	plugins   *prometheus.HistogramVec
}

// newMetrics registers the metrics; those that are registered already are shared.
func newMetrics(r prometheus.Registerer) *metrics {
	return &metrics{
		requests: sharedmetrics.Counter(r, "karmada_scheduler_estimator_estimating_request_total", "Requests, by method.", "result", "type"),
		algorithm: sharedmetrics.Histogram(r, "karmada_scheduler_estimator_estimating_algorithm_duration_seconds", "Time that a step of a request takes.",
			prometheus.ExponentialBuckets(0.001, 2, 10), "result", "type", "step"),
		extension: sharedmetrics.Histogram(r, "karmada_scheduler_estimator_estimating_plugin_extension_point_duration_seconds", "Time that all plugins take for a request.",
			prometheus.ExponentialBuckets(0.0001, 2, 12), "estimating_plugin_extension_point"),
		plugins: sharedmetrics.Histogram(r, "karmada_scheduler_estimator_estimating_plugin_execution_duration_seconds", "Time that a plugin takes for a request.",
			prometheus.ExponentialBuckets(0.00001, 1.5, 20), "estimating_plugin", "estimating_plugin_extension_point"),
	}
}

func (m *metrics) requested(method string, err error) {
	m.requests.WithLabelValues(sharedmetrics.Result(err), method).Inc()
}

// observe measures a step of a request until the returned function is called.
func (m *metrics) observe(c clock.PassiveClock, method, step string) (done func(err error)) {
	start := c.Now()
	return func(err error) {
		m.algorithm.WithLabelValues(sharedmetrics.Result(err), method, step).Observe(c.Since(start).Seconds())
	}
}

// around returns what measures the plugins of a request and, once the returned function done is called, all of them.
func (m *metrics) around(c clock.PassiveClock, method string) (around func(plugin string, run func()), done func()) {
	point := map[string]string{methodReplicas: "estimate_replicas", methodSets: "estimate_components"}[method]
	all := c.Now()
	around = func(plugin string, run func()) {
		start := c.Now()
		run()
		m.plugins.WithLabelValues(plugin, point).Observe(c.Since(start).Seconds())
	}
	return around, func() { m.extension.WithLabelValues(point).Observe(c.Since(all).Seconds()) }
}

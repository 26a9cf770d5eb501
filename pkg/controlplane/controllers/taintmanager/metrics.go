package taintmanager

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/karmada-toolkit/karmada/internal/metrics"
)

// evictionMetrics are the metrics of both queues.
type evictionMetrics struct {
	depth   *prometheus.GaugeVec
	kinds   *prometheus.GaugeVec
	latency *prometheus.HistogramVec
	total   *prometheus.CounterVec
}

func newMetrics(r prometheus.Registerer) *evictionMetrics {
	return &evictionMetrics{
		depth: metrics.Register(r, prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "eviction_queue_depth", Help: "Number of bindings that wait for a decision about their eviction.",
		}, []string{"name"})),
		kinds: metrics.Register(r, prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "eviction_kind_total", Help: "Number of bindings in a cluster with NoExecute taints.",
		}, []string{"member_cluster", "resource_kind"})),
		latency: metrics.Register(r, prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "eviction_processing_latency_seconds", Help: "Duration of a decision about an eviction and its write.",
			Buckets: prometheus.ExponentialBuckets(0.001, 2, 15),
		}, []string{"name"})),
		total: metrics.Register(r, prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "eviction_processing_total", Help: "Number of decisions about evictions.",
		}, []string{"name", "result"})),
	}
}

func (m *evictionMetrics) queue(name, kind string) *queueMetrics {
	return &queueMetrics{all: m, name: name, kind: kind}
}

// queueMetrics are the metrics of one queue.
type queueMetrics struct {
	all        *evictionMetrics
	name, kind string
}

func (m *queueMetrics) enqueued(cluster string, bindings, depth int) {
	m.all.kinds.WithLabelValues(cluster, m.kind).Set(float64(bindings))
	m.all.depth.WithLabelValues(m.name).Set(float64(depth))
}

// untainted removes what was counted of a cluster that has no NoExecute taint any longer.
func (m *queueMetrics) untainted(cluster string) { m.all.kinds.DeleteLabelValues(cluster, m.kind) }

func (m *queueMetrics) processed(took time.Duration, err error, depth int) {
	m.all.latency.WithLabelValues(m.name).Observe(took.Seconds())
	m.all.total.WithLabelValues(m.name, metrics.Result(err)).Inc()
	m.all.depth.WithLabelValues(m.name).Set(float64(depth))
}

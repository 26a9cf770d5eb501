package federatedhpa

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/karmada-toolkit/karmada/internal/metrics"
)

// The values of the label metricType.
const (
	typeResource = "ResourceMetric"
	typeRaw      = "RawMetric"
	typeObject   = "ObjectMetric"
)

// metricsSet are the metrics of the controller.
type metricsSet struct {
	passes, pulls *prometheus.HistogramVec
	omissions     *prometheus.CounterVec
}

func newMetrics(registry prometheus.Registerer) *metricsSet {
	buckets := prometheus.ExponentialBuckets(0.01, 2, 12)
	return &metricsSet{
		passes: metrics.Register(registry, prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "federatedhpa_process_duration_seconds", Help: "Time of a pass over a FederatedHPA.", Buckets: buckets,
		}, []string{"result"})),
		pulls: metrics.Register(registry, prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "federatedhpa_pull_metrics_duration_seconds", Help: "Time to read metrics for a FederatedHPA.", Buckets: buckets,
		}, []string{"result", "metricType"})),
		omissions: metrics.Register(registry, prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "federatedhpa_clusters_left_out_total", Help: "Passes over FederatedHPAs that left out a target cluster, because it is not ready or did not answer.",
		}, []string{"member_cluster"})),
	}
}

func (m *metricsSet) pass(took time.Duration, err error) {
	m.passes.WithLabelValues(metrics.Result(err)).Observe(took.Seconds())
}

func (m *metricsSet) pull(kind string, took time.Duration, err error) {
	m.pulls.WithLabelValues(metrics.Result(err), kind).Observe(took.Seconds())
}

func (m *metricsSet) leftOut(cluster string) { m.omissions.WithLabelValues(cluster).Inc() }

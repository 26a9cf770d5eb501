package massfailure

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/karmada-toolkit/karmada/internal/metrics"
)

// guardMetrics are the metrics of a Guard.
type guardMetrics struct {
	stopped prometheus.Gauge
	held    prometheus.Gauge
}

func newMetrics(r prometheus.Registerer) *guardMetrics {
	return &guardMetrics{
		stopped: metrics.Register(r, prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "eviction_stopped", Help: "1 while evictions from clusters that are not Ready are stopped because many failed at once.",
		})),
		held: metrics.Register(r, prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "eviction_held_clusters", Help: "Number of clusters that are not evicted because many failed at once.",
		})),
	}
}

func (m *guardMetrics) set(stopped bool, held int) {
	value := 0.0
	if stopped {
		value = 1
	}
	m.stopped.Set(value)
	m.held.Set(float64(held))
}

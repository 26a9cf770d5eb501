package dynamic

import (
	"github.com/prometheus/client_golang/prometheus"

	sharedmetrics "github.com/karmada-toolkit/karmada/internal/metrics"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/interpreter/lua"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/interpreter/webhook"
)

// metrics are those of the interpreter.
type metrics struct {
	calls *prometheus.HistogramVec
}

// newMetrics registers the metrics. Those that are there already are shared; the
// counts of virtual machines are then those of the first engine.
func newMetrics(registry prometheus.Registerer, engine *lua.Engine) *metrics {
	m := &metrics{calls: sharedmetrics.Register(registry, prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name: "karmada_interpreter_webhook_duration_seconds", Help: "Time that interpreter webhooks take to answer.",
		Buckets: prometheus.ExponentialBuckets(0.002, 2, 14),
	}, []string{"webhook", "operation", "result"}))}
	const get, put = "pool_get_operation_total", "pool_put_operation_total"
	const getHelp, putHelp = "Virtual machines taken, from the pool or new.", "Virtual machines given back, to the pool or destroyed."
	for _, c := range []struct {
		name, help, label, value string
		count                    func(lua.PoolStats) uint64
	}{
		{get, getHelp, "from", "pool", func(s lua.PoolStats) uint64 { return s.Reused }},
		{get, getHelp, "from", "new", func(s lua.PoolStats) uint64 { return s.Created }},
		{put, putHelp, "to", "pool", func(s lua.PoolStats) uint64 { return s.Kept }},
		{put, putHelp, "to", "destroyed", func(s lua.PoolStats) uint64 { return s.Dropped }},
	} {
		_ = registry.Register(prometheus.NewCounterFunc(prometheus.CounterOpts{
			Name: c.name, Help: c.help, ConstLabels: prometheus.Labels{"name": "luavm", c.label: c.value},
		}, func() float64 { return float64(c.count(engine.PoolStats())) })) // of the first engine, should there be two
	}
	return m
}

// observe records a call of a webhook.
func (m *metrics) observe(c webhook.Call) {
	m.calls.WithLabelValues(c.Webhook, string(c.Operation), sharedmetrics.Result(c.Err)).Observe(c.Duration.Seconds())
}

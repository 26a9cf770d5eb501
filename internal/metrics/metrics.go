// Package metrics registers the metrics of components that may run several times
// in one process.
package metrics

import (
	"crypto/x509"
	"errors"
	"strconv"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/component-base/metrics/legacyregistry"
	"k8s.io/utils/clock"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"
)

// Register adds a collector and returns it, or the equal one that is registered
// already. A collector whose name is that of a different metric is returned too:
// it counts, but is not served.
func Register[C prometheus.Collector](r prometheus.Registerer, c C) C {
	if already, ok := errors.AsType[prometheus.AlreadyRegisteredError](r.Register(c)); ok {
		if existing, ok := already.ExistingCollector.(C); ok {
			return existing
		}
	}
	return c
}

// Histogram registers a histogram with labels, see Register.
func Histogram(r prometheus.Registerer, name, help string, buckets []float64, labels ...string) *prometheus.HistogramVec {
	return Register(r, prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: name, Help: help, Buckets: buckets}, labels))
}

// Counter registers a counter with labels, see Register.
func Counter(r prometheus.Registerer, name, help string, labels ...string) *prometheus.CounterVec {
	return Register(r, prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels))
}

// Result returns the value of a label that distinguishes success and error.
func Result(err error) string {
	if err != nil {
		return "error"
	}
	return "success"
}

// Certificate registers the gauge karmada_certificate_not_after_seconds of a certificate that a role uses: "client" or "serving". current
// returns it at the time of a scrape, nil if there is none. The aggregated API servers serve the registry of Kubernetes, the
// other roles that of controller-runtime.
func Certificate(name, role string, current func() *x509.Certificate) {
	c := &certificate{current: current, desc: prometheus.NewDesc("karmada_certificate_not_after_seconds",
		"The end of the validity of a certificate in use, in seconds since 1970-01-01 UTC.",
		[]string{"serial"}, prometheus.Labels{"certificate": name, "role": role})}
	Register(ctrlmetrics.Registry, c)
	Register(legacyregistry.Registerer(), c)
}

// certificate is the collector of Certificate.
type certificate struct {
	desc    *prometheus.Desc
	current func() *x509.Certificate
}

// Describe implements prometheus.Collector.
func (c *certificate) Describe(ch chan<- *prometheus.Desc) { ch <- c.desc }

// Collect implements prometheus.Collector.
func (c *certificate) Collect(ch chan<- prometheus.Metric) {
	if now := c.current(); now != nil {
		ch <- prometheus.MustNewConstMetric(c.desc, prometheus.GaugeValue, float64(now.NotAfter.Unix()), now.SerialNumber.Text(16))
	}
}

// maxPriorities is the number of priorities that are distinguished in the depth of a queue.
const maxPriorities = 25

// WorkQueue has the metrics workqueue_* of a queue that is none of client-go, with the labels that controller-runtime
// gives its queues. Its methods may be called at the same time, and do nothing on nil.
type WorkQueue struct {
	clock                       clock.PassiveClock
	name                        string
	depth                       *prometheus.GaugeVec
	unfinished, longest         prometheus.Gauge
	adds, retries               prometheus.Counter
	queueDuration, workDuration prometheus.Observer
	mu                          sync.Mutex
	added                       map[any]addedItem
	started                     map[any]time.Time
	priorities                  map[string]bool
}

// addedItem is an item that waits.
type addedItem struct {
	at    time.Time
	depth prometheus.Gauge
}

// NewWorkQueue registers the metrics of the queue called name; families that are registered already are shared.
func NewWorkQueue(r prometheus.Registerer, name string, c clock.PassiveClock) *WorkQueue {
	labels := []string{"name", "controller"}
	gauge := func(key, help string, labels ...string) *prometheus.GaugeVec {
		return Register(r, prometheus.NewGaugeVec(prometheus.GaugeOpts{Subsystem: ctrlmetrics.WorkQueueSubsystem, Name: key, Help: help}, labels))
	}
	counter := func(key, help string) prometheus.Counter {
		return Register(r, prometheus.NewCounterVec(prometheus.CounterOpts{Subsystem: ctrlmetrics.WorkQueueSubsystem, Name: key, Help: help}, labels)).
			WithLabelValues(name, name)
	}
	histogram := func(key, help string) prometheus.Observer {
		return Register(r, prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Subsystem: ctrlmetrics.WorkQueueSubsystem, Name: key, Help: help, Buckets: prometheus.ExponentialBuckets(10e-9, 10, 12),
		}, labels)).WithLabelValues(name, name)
	}
	// The texts are those of controller-runtime: a family has one text.
	depth := gauge(ctrlmetrics.DepthKey, "Current depth of workqueue by workqueue and priority", "name", "controller", "priority")
	depth.WithLabelValues(name, name, "") // served before the first item
	return &WorkQueue{
		clock: c, name: name, added: map[any]addedItem{}, started: map[any]time.Time{}, priorities: map[string]bool{}, depth: depth,
		unfinished: gauge(ctrlmetrics.UnfinishedWorkKey, "How many seconds of work has been done that "+
			"is in progress and hasn't been observed by work_duration. Large "+
			"values indicate stuck threads. One can deduce the number of stuck "+
			"threads by observing the rate at which this increases.", labels...).WithLabelValues(name, name),
		longest: gauge(ctrlmetrics.LongestRunningProcessorKey, "How many seconds has the longest running "+
			"processor for workqueue been running.", labels...).WithLabelValues(name, name),
		adds: counter(ctrlmetrics.AddsKey, "Total number of adds handled by workqueue"),
		retries: counter(ctrlmetrics.RetriesKey, "Total number of items added to the workqueue with a non-zero delay "+
			"(rate-limited requeues, explicit RequeueAfter or AddAfter calls)"),
		queueDuration: histogram(ctrlmetrics.QueueLatencyKey, "How long in seconds an item stays in workqueue before being requested"),
		workDuration:  histogram(ctrlmetrics.WorkDurationKey, "How long in seconds processing an item from workqueue takes."),
	}
}

// Added records that an item came into a queue without priorities.
func (q *WorkQueue) Added(key any) { q.add(key, "") }

// AddedWith records that an item came into the queue with a priority, or has it now.
func (q *WorkQueue) AddedWith(key any, priority int) { q.add(key, strconv.Itoa(priority)) }

func (q *WorkQueue) add(key any, priority string) {
	if q == nil {
		return
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.priorities) >= maxPriorities && !q.priorities[priority] {
		priority = "exceeded_cardinality_limit" // as controller-runtime
	} else {
		q.priorities[priority] = true
	}
	item, waits := q.added[key]
	if waits {
		item.depth.Dec()
	} else {
		q.adds.Inc()
		item.at = q.clock.Now()
	}
	item.depth = q.depth.WithLabelValues(q.name, q.name, priority)
	item.depth.Inc()
	q.added[key] = item
}

// Started records that work on an item of the queue began.
func (q *WorkQueue) Started(key any) {
	if q == nil {
		return
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	now := q.clock.Now()
	if item, ok := q.added[key]; ok {
		item.depth.Dec()
		q.queueDuration.Observe(now.Sub(item.at).Seconds())
		delete(q.added, key)
	}
	q.started[key] = now
}

// Done records that work on an item ended.
func (q *WorkQueue) Done(key any) {
	if q == nil {
		return
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if at, ok := q.started[key]; ok {
		q.workDuration.Observe(q.clock.Since(at).Seconds())
		delete(q.started, key)
	}
}

// Retried records that an item waits for a while before it comes into the queue.
func (q *WorkQueue) Retried() {
	if q != nil {
		q.retries.Inc()
	}
}

// Refresh sets the gauges of work that has not ended. A queue calls it about once a second.
func (q *WorkQueue) Refresh() {
	if q == nil {
		return
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	var total, longest time.Duration
	for _, at := range q.started {
		age := q.clock.Since(at)
		total += age
		longest = max(longest, age)
	}
	q.unfinished.Set(total.Seconds())
	q.longest.Set(longest.Seconds())
}

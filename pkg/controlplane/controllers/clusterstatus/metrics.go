package clusterstatus

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/karmada-toolkit/karmada/internal/metrics"
	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
)

// clusterMetrics are the metrics of clusters.
type clusterMetrics struct {
	ready, nodes, readyNodes                          *prometheus.GaugeVec
	memoryAllocatable, cpuAllocatable, podAllocatable *prometheus.GaugeVec
	memoryAllocated, cpuAllocated, podAllocated       *prometheus.GaugeVec
	duration                                          prometheus.Histogram
}

func newMetrics(registry prometheus.Registerer) *clusterMetrics {
	m := &clusterMetrics{}
	for _, g := range []struct {
		into       **prometheus.GaugeVec
		name, help string
	}{
		{&m.ready, "cluster_ready_state", "1 if the cluster is Ready, else 0."},
		{&m.nodes, "cluster_node_number", "Nodes of the cluster."},
		{&m.readyNodes, "cluster_ready_node_number", "Nodes of the cluster that are ready."},
		{&m.memoryAllocatable, "cluster_memory_allocatable_bytes", "Allocatable memory of the cluster."},
		{&m.cpuAllocatable, "cluster_cpu_allocatable_number", "Allocatable CPUs of the cluster."},
		{&m.podAllocatable, "cluster_pod_allocatable_number", "Allocatable pods of the cluster."},
		{&m.memoryAllocated, "cluster_memory_allocated_bytes", "Memory that pods of the cluster request."},
		{&m.cpuAllocated, "cluster_cpu_allocated_number", "CPUs that pods of the cluster request."},
		{&m.podAllocated, "cluster_pod_allocated_number", "Pods on nodes of the cluster."},
	} {
		*g.into = metrics.Register(registry, prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: g.name, Help: g.help}, []string{"member_cluster"}))
	}
	// Its buckets would be most of the series of a cluster.
	m.duration = metrics.Register(registry, prometheus.NewHistogram(prometheus.HistogramOpts{
		Name: "cluster_sync_status_duration_seconds", Help: "Time to collect the status of a cluster, for all clusters together.",
	}))
	return m
}

func (m *clusterMetrics) observe(cluster string, status *clusterv1alpha1.ClusterStatus, took time.Duration) {
	ready := 0.0
	if meta.IsStatusConditionTrue(status.Conditions, clusterv1alpha1.ClusterConditionReady) {
		ready = 1
	}
	m.ready.WithLabelValues(cluster).Set(ready)
	m.duration.Observe(took.Seconds())
	if n := status.NodeSummary; n != nil {
		m.nodes.WithLabelValues(cluster).Set(float64(n.TotalNum))
		m.readyNodes.WithLabelValues(cluster).Set(float64(n.ReadyNum))
	}
	if r := status.ResourceSummary; r != nil {
		set := func(memory, cpu, pods *prometheus.GaugeVec, list corev1.ResourceList) {
			memory.WithLabelValues(cluster).Set(list.Memory().AsApproximateFloat64())
			cpu.WithLabelValues(cluster).Set(list.Cpu().AsApproximateFloat64())
			pods.WithLabelValues(cluster).Set(list.Pods().AsApproximateFloat64())
		}
		set(m.memoryAllocatable, m.cpuAllocatable, m.podAllocatable, r.Allocatable)
		set(m.memoryAllocated, m.cpuAllocated, m.podAllocated, r.Allocated)
	}
}

// forget removes the metrics of a deleted cluster.
func (m *clusterMetrics) forget(cluster string) {
	for _, g := range []*prometheus.GaugeVec{
		m.ready, m.nodes, m.readyNodes, m.memoryAllocatable, m.cpuAllocatable, m.podAllocatable,
		m.memoryAllocated, m.cpuAllocated, m.podAllocated,
	} {
		g.DeleteLabelValues(cluster)
	}
}

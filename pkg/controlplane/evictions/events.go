package evictions

import (
	"fmt"

	"github.com/karmada-toolkit/karmada/internal/events"
	workv1alpha2 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha2"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/delivery"
)

// Reasons of the events.
const (
	ReasonSucceed = "EvictWorkloadFromClusterSucceed"
	ReasonFailed  = "EvictWorkloadFromClusterFailed"
	// ReasonSkipped and ReasonCancelled are not part of the contract.
	ReasonSkipped   = "EvictWorkloadFromClusterSkipped"
	ReasonCancelled = "EvictWorkloadFromClusterCancelled"
)

// Succeeded records that a workload is evicted from a cluster: on the template and, if every success is recorded, on the
// binding.
func Succeeded(r *events.Recorder, b workv1alpha2.Binding, cluster string) {
	done(r, b, ReasonSucceed, fmt.Sprintf("Evict from cluster %s succeed.", cluster))
}

// Cancelled records that a workload returns to a cluster from which it was being evicted, where Succeeded does.
func Cancelled(r *events.Recorder, b workv1alpha2.Binding, cluster string) {
	done(r, b, ReasonCancelled, fmt.Sprintf("Evict from cluster %s cancelled: the cluster is back, and the workload is not healthy elsewhere.", cluster))
}

func done(r *events.Recorder, b workv1alpha2.Binding, reason, message string) {
	objects := delivery.EventObjects(b)
	for i, obj := range objects {
		if i == len(objects)-1 || r.All() {
			r.Normal(obj, reason, message)
		} else {
			r.Recovered(obj)
		}
	}
}

// Failed records why a workload could not be evicted from a cluster, once for each error text.
func Failed(r *events.Recorder, b workv1alpha2.Binding, cluster string, err error) {
	for _, obj := range delivery.EventObjects(b) {
		r.Warning(obj, ReasonFailed, fmt.Sprintf("Evict from cluster %s failed: %v", cluster, err))
	}
}

// Skipped records that a workload stays in a cluster that it does not tolerate, once for each cluster.
func Skipped(r *events.Recorder, b workv1alpha2.Binding, cluster string) {
	for _, obj := range delivery.EventObjects(b) {
		r.PartWarning(obj, cluster, ReasonSkipped, fmt.Sprintf("Evict from cluster %s skipped: no policy applies to the workload, so it would run nowhere.", cluster))
	}
}

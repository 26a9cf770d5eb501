// Package evictionevent records events about evictions, on bindings and on their templates.
package evictionevent

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
)

// Succeeded records that a workload is evicted from a cluster.
func Succeeded(r *events.Recorder, b workv1alpha2.Binding, cluster string) {
	for _, obj := range delivery.EventObjects(b) {
		r.Normal(obj, ReasonSucceed, fmt.Sprintf("Evict from cluster %s succeed.", cluster))
	}
}

// Failed records why a workload could not be evicted from a cluster, once for each error text.
func Failed(r *events.Recorder, b workv1alpha2.Binding, cluster string, err error) {
	for _, obj := range delivery.EventObjects(b) {
		r.Warning(obj, ReasonFailed, fmt.Sprintf("Evict from cluster %s failed: %v", cluster, err))
	}
}

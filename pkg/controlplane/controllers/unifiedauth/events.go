package unifiedauth

import (
	"fmt"

	"github.com/karmada-toolkit/karmada/internal/events"
	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
)

// Reasons of events on clusters.
const (
	ReasonSyncSucceed = "SyncImpersonationConfigSucceed"
	ReasonSyncFailed  = "SyncImpersonationConfigFailed"
)

func publishSynced(r *events.Recorder, cluster *clusterv1alpha1.Cluster) {
	r.Normal(cluster, ReasonSyncSucceed, "Sync impersonation config succeed.")
}

func publishSyncFailed(r *events.Recorder, cluster *clusterv1alpha1.Cluster, err error) {
	r.Warning(cluster, ReasonSyncFailed, fmt.Sprintf("Failed to sync impersonation config: %v", err))
}

package cluster

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/karmada-toolkit/karmada/internal/events"
	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/domain/clustercondition"
)

// The reasons of the events on clusters.
const (
	reasonCreateSucceed = "CreateExecutionSpaceSucceed"
	reasonCreateFailed  = "CreateExecutionSpaceFailed"
	reasonRemoveSucceed = "RemoveExecutionSpaceSucceed"
	reasonRemoveFailed  = "RemoveExecutionSpaceFailed"
	reasonRemoved       = "ExecutionSpaceDeleted"
	reasonTaintSucceed  = "TaintClusterSucceed"
	reasonTaintFailed   = "TaintClusterFailed"
)

func publishCreated(r *events.Recorder, cluster *clusterv1alpha1.Cluster, namespace string) {
	r.Normal(cluster, reasonCreateSucceed, fmt.Sprintf("Create execution space(%s) succeed.", namespace))
}

func publishCreateFailed(r *events.Recorder, cluster *clusterv1alpha1.Cluster, namespace string, err error) {
	r.Warning(cluster, reasonCreateFailed, fmt.Sprintf("Failed to create execution space(%s): %v", namespace, err))
}

func publishRemoved(r *events.Recorder, cluster *clusterv1alpha1.Cluster, namespace string) {
	r.Normal(cluster, reasonRemoveSucceed, fmt.Sprintf("Remove execution space(%s) succeed.", namespace))
}

func publishRemoveFailed(r *events.Recorder, cluster *clusterv1alpha1.Cluster, namespace string, err error) {
	r.Warning(cluster, reasonRemoveFailed, fmt.Sprintf("Failed to remove execution space(%s): %v", namespace, err))
}

func publishTerminating(r *events.Recorder, cluster *clusterv1alpha1.Cluster, namespace string) {
	r.Warning(cluster, reasonRemoved, fmt.Sprintf("Execution space(%s) was deleted; it is created again with all works.", namespace))
}

func publishTainted(r *events.Recorder, cluster *clusterv1alpha1.Cluster, taints []corev1.Taint) {
	r.Normal(cluster, reasonTaintSucceed, "Taint cluster succeed: "+clustercondition.Describe(taints)+".")
}

func publishTaintFailed(r *events.Recorder, cluster *clusterv1alpha1.Cluster, err error) {
	r.Warning(cluster, reasonTaintFailed, fmt.Sprintf("Taint cluster failed: %v.", err))
}

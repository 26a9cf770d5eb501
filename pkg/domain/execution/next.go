package execution

import (
	"slices"

	"k8s.io/utils/ptr"

	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
	workv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha1"
	workv1alpha2 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha2"
)

// Step is what a reconciliation of a Work does.
type Step int

// The steps.
const (
	StepNone            Step = iota // nothing, until the Work or its cluster changes
	StepAnswer                      // the agent of the cluster applies the Work: write whether it is wanted if it is being deleted
	StepReport                      // the cluster is not Ready: write the conditions
	StepObserve                     // dispatching is suspended: observe the objects and write the status
	StepAddFinalizer                // add the finalizer, which a Work that was written by hand lacks
	StepApply                       // apply the objects and write the status
	StepRemove                      // remove the objects, then the finalizer
	StepRemoveFinalizer             // remove the finalizer: the objects cannot be reached
)

// Next returns the step for a Work. cluster is nil if it does not exist. accepted reports whether this process serves the cluster, and stays
// whether the objects of the Work are not delivered.
func Next(work *workv1alpha1.Work, cluster *clusterv1alpha1.Cluster, accepted, stays bool) Step {
	deleted, held := !work.DeletionTimestamp.IsZero(), slices.Contains(work.Finalizers, workv1alpha2.ExecutionControllerFinalizer)
	switch ready := cluster != nil && cluster.Ready(); {
	case cluster != nil && !accepted:
		return StepAnswer
	case deleted && held && ready:
		return StepRemove
	case deleted && held && (cluster == nil || !cluster.DeletionTimestamp.IsZero()):
		return StepRemoveFinalizer
	case deleted, cluster == nil, stays:
		return StepNone
	case !ready:
		return StepReport
	case ptr.Deref(work.Spec.SuspendDispatching, false):
		return StepObserve
	case !held:
		return StepAddFinalizer
	}
	return StepApply
}

package core

import (
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	policyv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/policy/v1alpha1"
	workv1alpha2 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha2"
)

// ConfirmCreated adds to the status of a binding that was created with its targets what the scheduler reports of them: the condition
// Scheduled, and the generation and the time of the decision, which are those of the creation. It leaves a status alone that has the
// condition, and that of a binding which changed since: the scheduler has to decide about it.
func ConfirmCreated(b workv1alpha2.Binding, status *workv1alpha2.ResourceBindingStatus) {
	spec, at := b.GetSpec(), b.GetCreationTimestamp()
	if b.GetGeneration() != 1 || len(spec.Clusters) == 0 || spec.Placement == nil || len(spec.Placement.ClusterAffinities) > 0 ||
		b.GetAnnotations()[policyv1alpha1.AppliedPlacementAnnotation] == "" || meta.FindStatusCondition(status.Conditions, workv1alpha2.Scheduled) != nil {
		return
	}
	meta.SetStatusCondition(&status.Conditions, metav1.Condition{
		Type: workv1alpha2.Scheduled, Status: metav1.ConditionTrue, Reason: workv1alpha2.BindingReasonSuccess,
		Message: workv1alpha2.ScheduledSuccessMessage, LastTransitionTime: at,
	})
	status.SchedulerObservedGeneration, status.LastScheduledTime = b.GetGeneration(), &at
}

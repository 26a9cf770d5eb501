package scheduler

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"

	workv1alpha2 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha2"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/scheduler/core"
)

// The reasons of events.
const (
	reasonSucceed = "ScheduleBindingSucceed"
	reasonFailed  = "ScheduleBindingFailed"
)

// scheduled records the targets on the template and, if every success is
// recorded, on the binding.
func (s *scheduler) scheduled(b known, targets []workv1alpha2.TargetCluster) {
	message := workv1alpha2.ScheduledSuccessMessage + " Result" + b.scope.ResultSeparator + resultOf(targets)
	s.events.Event(templateOf(b), corev1.EventTypeNormal, reasonSucceed, message)
	if s.options.Events.All() {
		s.events.Event(b.scope.referenceTo(b), corev1.EventTypeNormal, reasonSucceed, message)
	}
}

// notScheduled tells why the binding could not be scheduled.
func (s *scheduler) notScheduled(b known, message string) {
	s.events.Event(b.scope.referenceTo(b), corev1.EventTypeWarning, reasonFailed, message)
	s.events.Event(templateOf(b), corev1.EventTypeWarning, reasonFailed, message)
}

// termsFailed tells which affinity terms could not be used.
func (s *scheduler) termsFailed(b known, d *core.Decision) {
	for _, f := range d.Failed {
		s.notScheduled(b, fmt.Sprintf("failed to schedule %s(%s) with clusterAffiliates index(%d): %s", b.scope.Kind, keyOf(b), f.Index, f.Err))
	}
}

// deleting tells that a binding which is being deleted is skipped.
func (s *scheduler) deleting(b known) {
	s.events.Event(b.scope.referenceTo(b), corev1.EventTypeWarning, reasonFailed,
		fmt.Sprintf("skip schedule deleting %s: %s", b.scope.lowerKind(), keyOf(b)))
}

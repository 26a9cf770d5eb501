package scheduler

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/record"

	"github.com/karmada-toolkit/karmada/internal/events"
	workv1alpha2 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha2"
	"github.com/karmada-toolkit/karmada/pkg/domain/schedule/core"
)

// The reasons of events.
const (
	reasonSucceed = "ScheduleBindingSucceed"
	reasonFailed  = "ScheduleBindingFailed"
)

// recorder records events about bindings.
type recorder struct {
	events record.EventRecorder
	mode   events.Mode
}

// scheduled records the targets on the template and, if every success is
// recorded, on the binding.
func (r *recorder) scheduled(b known, targets []workv1alpha2.TargetCluster) {
	message := workv1alpha2.ScheduledSuccessMessage + " Result" + b.scope.ResultSeparator + resultOf(targets)
	r.events.Event(templateOf(b), corev1.EventTypeNormal, reasonSucceed, message)
	if r.mode.All() {
		r.events.Event(referenceTo(b), corev1.EventTypeNormal, reasonSucceed, message)
	}
}

// notScheduled records why the binding could not be scheduled.
func (r *recorder) notScheduled(b known, message string) {
	r.events.Event(referenceTo(b), corev1.EventTypeWarning, reasonFailed, message)
	r.events.Event(templateOf(b), corev1.EventTypeWarning, reasonFailed, message)
}

// termsFailed records which affinity terms could not be used.
func (r *recorder) termsFailed(b known, d *core.Decision) {
	for _, f := range d.Failed {
		r.notScheduled(b, fmt.Sprintf("failed to schedule %s(%s) with clusterAffiliates index(%d): %s", b.scope.Kind, keyOf(b), f.Index, f.Err))
	}
}

// deleting records that a binding which is being deleted is skipped.
func (r *recorder) deleting(b known) {
	r.events.Event(referenceTo(b), corev1.EventTypeWarning, reasonFailed,
		fmt.Sprintf("skip schedule deleting %s: %s", strings.ToLower(b.scope.Kind[:1])+b.scope.Kind[1:], keyOf(b)))
}

// referenceTo returns what an event about the binding refers to.
func referenceTo(b known) *corev1.ObjectReference {
	return &corev1.ObjectReference{
		APIVersion: workv1alpha2.GroupVersion.String(), Kind: b.scope.Kind, Namespace: b.GetNamespace(), Name: b.GetName(),
		UID: b.GetUID(), ResourceVersion: b.GetResourceVersion(),
	}
}

// templateOf returns what an event about the template refers to.
func templateOf(b known) *corev1.ObjectReference {
	r := &b.GetSpec().Resource
	return &corev1.ObjectReference{
		APIVersion: r.APIVersion, Kind: r.Kind, Namespace: r.Namespace, Name: r.Name, UID: r.UID, ResourceVersion: r.ResourceVersion,
	}
}

// resultOf writes targets as events do: {m1:2, m2:1}.
func resultOf(targets []workv1alpha2.TargetCluster) string {
	var b strings.Builder
	for i := range targets {
		if i > 0 {
			b.WriteString(", ")
		}
		fmt.Fprintf(&b, "%s:%d", targets[i].Name, targets[i].Replicas)
	}
	return "{" + b.String() + "}"
}

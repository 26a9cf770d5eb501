package descheduler

import (
	"fmt"

	"github.com/karmada-toolkit/karmada/internal/events"
	workv1alpha2 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha2"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/delivery"
)

// Component is the source of the events.
const Component = "karmada-descheduler"

// Reasons of the events.
const (
	ReasonSucceed = "DescheduleBindingSucceed"
	ReasonFailed  = "DescheduleBindingFailed"
)

// publishSucceeded records what was taken back, on the binding and on its template.
func publishSucceeded(r *events.Recorder, b *workv1alpha2.ResourceBinding, v *Verdict) {
	for _, obj := range delivery.EventObjects(b) {
		r.Normal(obj, ReasonSucceed, v.Message())
	}
}

// publishFailed records why the targets could not be written.
func publishFailed(r *events.Recorder, b *workv1alpha2.ResourceBinding, err error) {
	for _, obj := range delivery.EventObjects(b) {
		r.Warning(obj, ReasonFailed, fmt.Sprintf("Failed to deschedule the binding: %v", err))
	}
}

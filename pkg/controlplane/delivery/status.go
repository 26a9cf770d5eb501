package delivery

import (
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/karmada-toolkit/karmada/internal/status"
	workv1alpha2 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha2"
)

// StatusWriter writes the status of bindings. The scheduler and two controllers have one, each for its own part: see docs/architecture.md.
type StatusWriter = status.Writer[workv1alpha2.Binding, *workv1alpha2.ResourceBindingStatus]

// NewStatusWriter returns a StatusWriter.
func NewStatusWriter(c client.Client, live client.Reader, clk clock.PassiveClock) *StatusWriter {
	return status.NewWriter(status.Options[workv1alpha2.Binding, *workv1alpha2.ResourceBindingStatus]{
		Get: workv1alpha2.Binding.GetStatus, Fields: statusFields,
		Shared: []string{"conditions", "schedulerObservedGeneration", "schedulerObservingAffinityName", "lastScheduledTime"},
		Client: c, Live: live, Clock: clk,
	})
}

// statusFields returns the fields of a status. An empty list differs from none: it is a list that had items.
func statusFields(s *workv1alpha2.ResourceBindingStatus) any {
	fields := map[string]any{"conditions": s.Conditions}
	if s.AggregatedStatus != nil {
		fields["aggregatedStatus"] = s.AggregatedStatus
	}
	if s.SchedulerObservedGeneration != 0 {
		fields["schedulerObservedGeneration"] = s.SchedulerObservedGeneration
	}
	if s.SchedulerObservedAffinityName != "" {
		fields["schedulerObservingAffinityName"] = s.SchedulerObservedAffinityName
	}
	if s.LastScheduledTime != nil {
		fields["lastScheduledTime"] = s.LastScheduledTime
	}
	return fields
}

package autoscaling

import (
	"errors"
	"fmt"
	"slices"
	"time"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/karmada-toolkit/karmada/pkg/apis/validation"
)

// Event is an event about a FederatedHPA.
type Event struct{ Type, Reason, Message string }

// Report is what a pass makes known about a FederatedHPA. Its status starts as that of the object.
type Report struct {
	Status autoscalingv2.HorizontalPodAutoscalerStatus
	Events []Event

	now time.Time
}

func (r *Report) event(kind, reason, message string) {
	r.Events = append(r.Events, Event{kind, reason, message})
}

// condition sets a condition. The time changes only with the status.
func (r *Report) condition(kind autoscalingv2.HorizontalPodAutoscalerConditionType, status corev1.ConditionStatus, reason, message string, args ...any) {
	if len(args) > 0 {
		message = fmt.Sprintf(message, args...)
	}
	list := r.Status.Conditions
	i := slices.IndexFunc(list, func(c autoscalingv2.HorizontalPodAutoscalerCondition) bool { return c.Type == kind })
	if i < 0 {
		list = append(list, autoscalingv2.HorizontalPodAutoscalerCondition{Type: kind})
		i = len(list) - 1
	}
	if c := &list[i]; c.Status != status {
		c.Status, c.LastTransitionTime = status, metav1.NewTime(r.now)
	}
	list[i].Reason, list[i].Message = reason, message
	r.Status.Conditions = list
}

// inactive reports that no replicas can be computed from metrics, with the reasons of the event and of the condition.
func (r *Report) inactive(event, reason string, err error, message string, args ...any) {
	r.event(corev1.EventTypeWarning, event, err.Error())
	r.condition(autoscalingv2.ScalingActive, corev1.ConditionFalse, reason, message, args...)
}

// parseSelector parses the selector of a Scale and reports one that is not usable.
func (r *Report) parseSelector(text string) (labels.Selector, error) {
	if text == "" {
		err := errors.New("selector is required")
		r.inactive("SelectorRequired", "InvalidSelector", err, "the HPA target's scale is missing a selector")
		return nil, err
	}
	selector, err := validation.ParseLabelSelector(text)
	if err != nil {
		err = fmt.Errorf("couldn't convert selector into a corresponding internal selector object: %w", err)
		r.inactive("InvalidSelector", "InvalidSelector", err, "%v", err)
		return nil, err
	}
	return selector, nil
}

// stabilized sets the condition about a proposal: whether earlier recommendations changed it, and if so, whether it was to
// scale up.
func (r *Report) stabilized(changed, up bool) {
	reason, message := "ReadyForNewScale", "recommended size matches current size"
	switch {
	case changed && up:
		reason, message = "ScaleUpStabilized", "recent recommendations were lower than current one, applying the lowest recent recommendation"
	case changed:
		reason, message = "ScaleDownStabilized", "recent recommendations were higher than current one, applying the highest recent recommendation"
	}
	r.condition(autoscalingv2.AbleToScale, corev1.ConditionTrue, reason, message)
}

// replicas writes the replicas and metrics into the status.
func (r *Report) replicas(current, desired int32, metrics []autoscalingv2.MetricStatus) {
	r.Status.CurrentReplicas, r.Status.DesiredReplicas, r.Status.CurrentMetrics = current, desired, metrics
}

// stamp returns a time as the API server stores it.
func stamp(t time.Time) *metav1.Time {
	return new(metav1.NewTime(t.Truncate(time.Second)))
}

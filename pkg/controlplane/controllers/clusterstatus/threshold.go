package clusterstatus

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// threshold delays changes of the Ready condition until the other state has lasted.
type threshold struct {
	success, failure time.Duration

	known   bool
	status  metav1.ConditionStatus
	changed time.Time
}

// adjust returns the condition to report at now, given the stored one and the one that
// a probe observed which began earlier: a probe that times out is part of a failure.
// One probe alone does not change the condition.
//
// The first observation after a start is reported without delay, unless a cluster
// that was Ready is not: requests that fail during a start are more likely than a
// cluster that fails at that moment.
func (t *threshold) adjust(stored *metav1.Condition, observed metav1.Condition, began, now time.Time) metav1.Condition {
	switch {
	case !t.known:
		t.known, t.status = true, observed.Status
		if stored != nil && stored.Status == metav1.ConditionTrue && observed.Status != metav1.ConditionTrue {
			t.changed = began
		}
	case t.status != observed.Status:
		t.status, t.changed = observed.Status, began
	}
	if stored == nil {
		return observed
	}
	wait := time.Duration(0)
	switch storedTrue, observedTrue := stored.Status == metav1.ConditionTrue, observed.Status == metav1.ConditionTrue; {
	case observedTrue && !storedTrue:
		wait = t.success
	case storedTrue && !observedTrue:
		wait = t.failure
	default:
		return observed
	}
	if !t.changed.IsZero() && (began.Equal(t.changed) || now.Before(t.changed.Add(wait))) {
		return *stored
	}
	return observed
}

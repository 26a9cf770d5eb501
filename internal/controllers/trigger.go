package controllers

// Trigger wakes a loop that receives from it. Calls of Fire before that count as one.
type Trigger chan struct{}

// NewTrigger returns a Trigger.
func NewTrigger() Trigger { return make(Trigger, 1) }

// Fire wakes the loop. It does not block.
func (t Trigger) Fire() {
	select {
	case t <- struct{}{}:
	default:
	}
}

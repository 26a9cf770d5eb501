package bindingstatus

import "time"

// Pace says how long the status of a binding waits for more of it before it is
// written. What is complete is written at once.
type Pace struct {
	// Failure is how long a failure must last. Default 150 ms.
	Failure time.Duration
	// Settle is how long objects may take to become healthy. Default 1 s.
	Settle time.Duration
	// Pending is how long clusters are waited for that did not report at all.
	// Default 3 s.
	Pending time.Duration
	// Interval is the least time between two writes. Default 250 ms.
	Interval time.Duration
}

func (p *Pace) complete() {
	for _, d := range []struct {
		value    *time.Duration
		standard time.Duration
	}{
		{&p.Failure, 150 * time.Millisecond},
		{&p.Settle, time.Second},
		{&p.Pending, 3 * time.Second},
		{&p.Interval, 250 * time.Millisecond},
	} {
		if *d.value <= 0 {
			*d.value = d.standard
		}
	}
}

// wait returns how long a status waits that differs since dirty from what was
// written at written. 0 means that it is written now.
func (p Pace) wait(c progress, now, dirty, written time.Time) time.Duration {
	due := dirty
	switch c {
	case failed:
		due = dirty.Add(p.Failure)
	case unsettled:
		due = dirty.Add(p.Settle)
	case pending, silent:
		due = dirty.Add(p.Pending)
	case settled:
	}
	if next := written.Add(p.Interval); next.After(due) {
		due = next
	}
	return max(0, due.Sub(now))
}

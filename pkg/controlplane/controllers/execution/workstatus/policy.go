package workstatus

import (
	"cmp"
	"time"

	"github.com/karmada-toolkit/karmada/internal/controllers"
)

// Policy bounds the delay of writes of the status of Works. Each of them causes others.
type Policy struct {
	// Failure is the time that a failure must last. Default 250 ms.
	Failure time.Duration
	// Stable is the time that objects have to become healthy: at least 1 s, up to 10 s
	// where they often need longer, and 80 ms up to 15 s more for each Work of the
	// cluster that waits too.
	Stable controllers.Debounce
	// Interval is the least time between two writes. Default 250 ms.
	Interval time.Duration
}

func (p Policy) complete() Policy {
	p.Failure = cmp.Or(max(p.Failure, 0), 250*time.Millisecond)
	p.Interval = cmp.Or(max(p.Interval, 0), 250*time.Millisecond)
	if p.Stable == (controllers.Debounce{}) {
		p.Stable = controllers.Debounce{
			Stable: time.Second, StableMax: 10 * time.Second,
			PerWaiting: 80 * time.Millisecond, PerWaitingMax: 15 * time.Second,
		}
	}
	return p
}

// Change is what a status is going to be.
type Change int

// The changes.
const (
	Stable   Change = iota // no further change is expected
	Failed                 // an object was not applied; a retry may succeed
	Unstable               // objects are not healthy yet
)

// delay returns the time until a status is written that differs since dirty from what
// was written at written. stable is the time that objects have to become healthy.
func (p Policy) delay(c Change, now, dirty, written time.Time, stable time.Duration) time.Duration {
	due := dirty
	switch c {
	case Failed:
		due = dirty.Add(p.Failure)
	case Unstable:
		due = dirty.Add(stable)
	case Stable:
	}
	if next := written.Add(p.Interval); next.After(due) {
		due = next
	}
	return max(0, due.Sub(now))
}

// Debouncer delays writes of the status of the Works of one cluster.
type Debouncer struct {
	policy  Policy
	backlog controllers.Backlog[string]
}

// NewDebouncer returns a Debouncer.
func NewDebouncer(p Policy) *Debouncer { return &Debouncer{policy: p.complete()} }

// Delay returns the time until the status of a Work is written that differs since dirty
// from what was written at written. 0 means that it is written now.
func (d *Debouncer) Delay(work string, c Change, now, dirty, written time.Time) time.Duration {
	var stable time.Duration
	switch c {
	case Unstable:
		stable = d.backlog.Wait(work, now, d.policy.Stable)
	case Stable:
		d.backlog.Done(work, now)
	case Failed:
		d.backlog.Forget(work)
	}
	return d.policy.delay(c, now, dirty, written, stable)
}

// Unchanged records that the status of a Work does not differ from what was written.
func (d *Debouncer) Unchanged(work string, c Change, now time.Time) {
	if c == Stable {
		d.backlog.Done(work, now)
	}
}

// Written records that the status of a Work was written.
func (d *Debouncer) Written(work string) { d.backlog.Publish(work) }

// Forget drops what is known of a Work.
func (d *Debouncer) Forget(work string) { d.backlog.Forget(work) }

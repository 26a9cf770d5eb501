package execution

import (
	"time"

	"github.com/karmada-toolkit/karmada/internal/debounce"
)

// Pace says how long the status of a Work waits for more of it before it is
// written, since every write of a Work causes others.
type Pace struct {
	// Failure is how long a failure must last. Default 250 ms.
	Failure time.Duration
	// Settle is how long objects may take to become healthy: at least 1 s, up to
	// 10 s where they often take longer, and 80 ms up to 15 s more for each Work of
	// the cluster that waits too.
	Settle debounce.Limits
	// Interval is the least time between two writes. Default 250 ms.
	Interval time.Duration
}

func (p *Pace) complete() {
	if p.Failure <= 0 {
		p.Failure = 250 * time.Millisecond
	}
	if p.Settle == (debounce.Limits{}) {
		p.Settle = debounce.Limits{
			Stable: time.Second, StableMax: 10 * time.Second,
			PerWaiting: 80 * time.Millisecond, PerWaitingMax: 15 * time.Second,
		}
	}
	if p.Interval <= 0 {
		p.Interval = 250 * time.Millisecond
	}
}

// change is what is new about a status.
type change int

const (
	settled   change = iota // nothing more is expected
	failed                  // an object could not be applied; a retry may mend it
	unsettled               // objects are not healthy yet; they may be soon
)

// wait returns how long a status waits that differs since dirty from what was
// written at written. settle is how long objects may take to become healthy. 0
// means that it is written now.
func (p Pace) wait(c change, now, dirty, written time.Time, settle time.Duration) time.Duration {
	due := dirty
	switch c {
	case failed:
		due = dirty.Add(p.Failure)
	case unsettled:
		due = dirty.Add(settle)
	case settled:
	}
	if next := written.Add(p.Interval); next.After(due) {
		due = next
	}
	return max(0, due.Sub(now))
}

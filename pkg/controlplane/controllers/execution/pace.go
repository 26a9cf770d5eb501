package execution

import (
	"sync"
	"time"
)

// Pace says how long the status of a Work waits for more of it before it is
// written, since every write of a Work causes others.
type Pace struct {
	// Failure is how long a failure must last. Default 250 ms.
	Failure time.Duration
	// Settle is how long objects may take to become healthy. Default 1 s.
	Settle time.Duration
	// Crowd is added to Settle for each Work of the cluster that waits too, up to
	// CrowdMax: objects that arrive together take longer. Default 80 ms and 15 s.
	Crowd, CrowdMax time.Duration
	// Interval is the least time between two writes. Default 250 ms.
	Interval time.Duration
}

func (p *Pace) complete() {
	if p.Failure <= 0 {
		p.Failure = 250 * time.Millisecond
	}
	if p.Settle <= 0 {
		p.Settle = time.Second
	}
	if p.Crowd <= 0 {
		p.Crowd = 80 * time.Millisecond
	}
	if p.CrowdMax <= 0 {
		p.CrowdMax = 15 * time.Second
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
// written at written, while others wait too. 0 means that it is written now.
func (p Pace) wait(c change, now, dirty, written time.Time, others int) time.Duration {
	due := dirty
	switch c {
	case failed:
		due = dirty.Add(p.Failure)
	case unsettled:
		due = dirty.Add(p.Settle + min(time.Duration(others)*p.Crowd, p.CrowdMax))
	case settled:
	}
	if next := written.Add(p.Interval); next.After(due) {
		due = next
	}
	return max(0, due.Sub(now))
}

// crowd is the set of Works whose status waits for objects to become healthy.
type crowd struct {
	mu    sync.Mutex
	names map[string]struct{}
}

// set adds or removes a Work and returns how many others there are.
func (c *crowd) set(name string, in bool) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !in {
		delete(c.names, name)
		return len(c.names)
	}
	if c.names == nil {
		c.names = map[string]struct{}{}
	}
	c.names[name] = struct{}{}
	return len(c.names) - 1
}

package bindingstatus

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

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
	// Crowd is added to Settle and Pending for each binding that waits too, up to
	// CrowdMax: what arrives together takes longer. Default 60 ms and 15 s.
	Crowd, CrowdMax time.Duration
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
		{&p.Crowd, 60 * time.Millisecond},
		{&p.CrowdMax, 15 * time.Second},
		{&p.Interval, 250 * time.Millisecond},
	} {
		if *d.value <= 0 {
			*d.value = d.standard
		}
	}
}

// wait returns how long a status waits that differs since dirty from what was
// written at written, while others wait too. 0 means that it is written now.
func (p Pace) wait(c progress, now, dirty, written time.Time, others int) time.Duration {
	due := dirty
	crowded := min(time.Duration(others)*p.Crowd, p.CrowdMax)
	switch c {
	case failed:
		due = dirty.Add(p.Failure)
	case unsettled:
		due = dirty.Add(p.Settle + crowded)
	case pending, silent:
		due = dirty.Add(p.Pending + crowded)
	case settled:
	}
	if next := written.Add(p.Interval); next.After(due) {
		due = next
	}
	return max(0, due.Sub(now))
}

// crowd is the set of bindings whose status waits for clusters to settle.
type crowd struct {
	mu   sync.Mutex
	keys map[types.NamespacedName]struct{}
}

// set adds or removes a binding and returns how many others there are.
func (c *crowd) set(key types.NamespacedName, in bool) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !in {
		delete(c.keys, key)
		return len(c.keys)
	}
	if c.keys == nil {
		c.keys = map[types.NamespacedName]struct{}{}
	}
	c.keys[key] = struct{}{}
	return len(c.keys) - 1
}

package clusterstatus

import (
	"context"
	"slices"
	"sync"
	"time"

	"k8s.io/utils/clock"
)

const (
	// delayInterval is the time between two measurements of the delay of the process.
	delayInterval = 100 * time.Millisecond
	// delaysKept is how long a delay is remembered. No probe takes longer.
	delaysKept = time.Minute
	// delayShare is the share of the time limit of a probe, as a divisor, by which the process may be delayed during a
	// probe that times out before the result does not count.
	delayShare = 4
)

// delays measures how much later than requested the process continues: it was stopped, or has too little CPU. Probes of
// such a process time out although the clusters answer.
type delays struct {
	clock clock.Clock

	mu sync.Mutex
	// last is the time of the last measurement.
	last  time.Time
	found []delay
}

// delay is a time by which the process continued too late.
type delay struct {
	at time.Time
	by time.Duration
}

// run measures until ctx ends.
func (d *delays) run(ctx context.Context) {
	for {
		d.measure()
		timer := d.clock.NewTimer(delayInterval)
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case <-timer.C():
		}
	}
}

// measure records the delay since the last measurement.
func (d *delays) measure() {
	d.mu.Lock()
	defer d.mu.Unlock()
	now := d.clock.Now()
	d.found = slices.DeleteFunc(d.found, func(f delay) bool { return now.Sub(f.at) > delaysKept })
	if by := d.currentLocked(now); by > delayInterval {
		d.found = append(d.found, delay{at: now, by: by})
	}
	d.last = now
}

// currentLocked returns the delay of a measurement that is due, 0 before the first.
func (d *delays) currentLocked(now time.Time) time.Duration {
	if d.last.IsZero() {
		return 0
	}
	return now.Sub(d.last) - delayInterval
}

// since returns the longest delay since a time.
func (d *delays) since(t time.Time) time.Duration {
	d.mu.Lock()
	defer d.mu.Unlock()
	longest := max(0, d.currentLocked(d.clock.Now()))
	for _, f := range d.found {
		if f.at.After(t) {
			longest = max(longest, f.by)
		}
	}
	return longest
}

// Package memory gives memory that is not needed any longer back to the system.
package memory

import (
	"context"
	"runtime/debug"
	"runtime/metrics"
	"time"
)

const (
	// settleTime is how long after becoming ready the memory of the start is given back.
	settleTime = 3 * time.Second
	// trimInterval is how often the process looks whether it has become idle.
	trimInterval = 20 * time.Second
	// busyCycles of garbage collection between two looks mean that the process has work. The one that Go makes
	// every two minutes in any case does not.
	busyCycles = 2

	metricGCCycles = "/gc/cycles/total:gc-cycles"
)

// Trim gives memory back to the system after the start and whenever the process becomes idle, until ctx ends.
// The garbage collector is tuned for work, where it lets much garbage gather; an idle process would keep that room.
func Trim(ctx context.Context) {
	var idle idleness
	for wait := settleTime; ; wait = trimInterval {
		select {
		case <-ctx.Done():
			return
		case <-time.After(wait):
		}
		if wait == settleTime || idle.begins(gcCycles()) {
			debug.FreeOSMemory()
			idle.last = gcCycles()
		}
	}
}

func gcCycles() uint64 {
	sample := []metrics.Sample{{Name: metricGCCycles}}
	metrics.Read(sample)
	return sample[0].Value.Uint64()
}

// idleness finds the moments at which work has ended.
type idleness struct {
	last uint64
	busy bool
}

// begins takes the count of garbage collections so far and reports whether a time with work is followed by one
// without.
func (i *idleness) begins(cycles uint64) bool {
	wasBusy := i.busy
	i.busy = cycles-i.last >= busyCycles
	i.last = cycles
	return wasBusy && !i.busy
}

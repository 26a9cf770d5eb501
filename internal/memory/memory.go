// Package memory returns unused memory to the operating system.
package memory

import (
	"context"
	"runtime/debug"
	"runtime/metrics"
	"time"

	"github.com/go-logr/logr"
)

const (
	// idleDelay is the time between becoming ready and the return of the memory
	// that the start used.
	idleDelay = 3 * time.Second
	// trimInterval is the interval between checks whether the process has become
	// idle.
	trimInterval = 20 * time.Second
	// dropInterval is the longest time between two releases of the pages of the program.
	dropInterval = 5 * time.Minute
	// busyCycles of garbage collection between two checks mean that the process is busy. The one that Go runs every two
	// minutes in any case does not.
	busyCycles = 2

	metricGCCycles = "/gc/cycles/total:gc-cycles"
)

// Trim returns memory to the operating system after the start and whenever the process becomes idle, and pages of the
// program every five minutes as well, until ctx ends. The garbage collector is tuned for a busy process, with a large
// heap; an idle process would keep that memory. A failure is logged by the logger of ctx and changes nothing else.
func Trim(ctx context.Context) {
	var idle idleness
	var sinceDrop time.Duration
	for wait := idleDelay; ; wait = trimInterval {
		select {
		case <-ctx.Done():
			return
		case <-time.After(wait):
		}
		sinceDrop += wait
		unused := wait == idleDelay || idle.begins(gcCycles())
		if unused {
			debug.FreeOSMemory()
			idle.last = gcCycles()
		}
		if !unused && sinceDrop < dropInterval {
			continue
		}
		sinceDrop = 0
		if err := dropProgram(); err != nil {
			logr.FromContextOrDiscard(ctx).V(2).Info("Releasing pages of the program failed", "err", err.Error())
		}
	}
}

func gcCycles() uint64 {
	sample := []metrics.Sample{{Name: metricGCCycles}}
	metrics.Read(sample)
	return sample[0].Value.Uint64()
}

// idleness detects transitions from busy to idle.
type idleness struct {
	last uint64
	busy bool
}

// begins takes the number of garbage collections so far and reports whether a busy interval is followed by an idle
// one.
func (i *idleness) begins(cycles uint64) bool {
	wasBusy := i.busy
	i.busy = cycles-i.last >= busyCycles
	i.last = cycles
	return wasBusy && !i.busy
}

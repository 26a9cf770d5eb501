package lua

import (
	"context"
	"errors"
	"time"

	glua "github.com/yuin/gopher-lua"
)

// ErrLimit is what stops a script that takes too long or too much memory.
var ErrLimit = errors.New("limit exceeded")

// Limits bound one call of a script.
type Limits struct {
	// Time is how long a call may run. The time that the process does not get
	// to run is not counted, up to ten times as much.
	Time time.Duration
	// Memory is how many bytes a call may take, by the most that each of its
	// steps can take.
	Memory int
}

// DefaultLimits returns 100 milliseconds and 32 MiB.
func DefaultLimits() Limits { return Limits{Time: 100 * time.Millisecond, Memory: 32 << 20} }

// What is charged. The library makes room for 32 entries as soon as a table has
// one.
const (
	costStep   = 8
	costSlot   = 32
	costTable  = 3 << 10
	costEntry  = 160
	costString = 16
)

const (
	// checkEvery is the number of steps between two checks of the clock.
	checkEvery = 256
	// busySteps are what a script has done at least when its time can be up.
	busySteps = 500_000
)

type limitError string

// Error implements error.
func (e limitError) Error() string { return string(e) }

// Is reports that it is an ErrLimit.
func (e limitError) Is(target error) bool { return target == ErrLimit }

// budget is what a call has left. The virtual machine calls Done before each
// instruction, which counts the steps.
type budget struct {
	context.Context //nolint:containedctx // a budget is a context: the machine checks it as one

	now      func() time.Time
	limits   Limits
	memory   int
	steps    int
	check    int
	started  time.Time
	exceeded error
	stop     chan struct{}
}

func newBudget(limits Limits, now func() time.Time) *budget {
	stop := make(chan struct{})
	close(stop)
	return &budget{Context: context.Background(), limits: limits, now: now, stop: stop}
}

// reset starts a call.
func (b *budget) reset() {
	b.memory, b.steps, b.check, b.exceeded = b.limits.Memory, 0, checkEvery, nil
	b.started = b.now()
}

// Done returns a channel that is closed once a limit is exceeded.
func (b *budget) Done() <-chan struct{} {
	b.spend(1, costStep)
	if b.exceeded != nil {
		return b.stop
	}
	return nil
}

// Err returns the limit that is exceeded.
func (b *budget) Err() error {
	if b.exceeded != nil {
		return b.exceeded
	}
	return context.Canceled
}

// spend takes steps and bytes from what is left.
func (b *budget) spend(steps, bytes int) {
	b.steps += steps
	if b.memory -= bytes; b.memory < 0 && b.exceeded == nil {
		b.exceeded = limitError("memory limit exceeded")
		if b.steps*costStep > b.limits.Memory/2 {
			b.exceeded = limitError("context deadline exceeded")
		}
	}
	if b.check -= steps; b.check <= 0 {
		b.check = checkEvery
		b.checkClock()
	}
}

// checkClock compares the clock with the limit.
func (b *budget) checkClock() {
	if b.limits.Time <= 0 || b.exceeded != nil {
		return
	}
	elapsed := b.now().Sub(b.started)
	if elapsed > b.limits.Time && b.steps >= busySteps || elapsed > 10*b.limits.Time {
		b.exceeded = limitError("context deadline exceeded")
	}
}

// charge takes steps and bytes from what is left and stops the script when that is
// used up.
func (b *budget) charge(l *glua.LState, steps, bytes int) {
	b.spend(steps, bytes)
	if b.exceeded != nil {
		l.RaiseError("%s", b.exceeded.Error())
	}
}

// chargeGrowth charges what a table of n elements grows by when the index is set.
func (b *budget) chargeGrowth(l *glua.LState, n, index int) {
	if index > n && index < glua.MaxArrayIndex {
		b.charge(l, (index-n)/16, (index-n)*costSlot)
		return
	}
	b.charge(l, 1, costEntry)
}

// counted returns a function of the library that charges what it makes, by size,
// before it does.
func (b *budget) counted(l *glua.LState, fn glua.LValue, size func(*glua.LState) int) *glua.LFunction {
	original, _ := fn.(*glua.LFunction)
	return l.NewFunction(func(l *glua.LState) int {
		n := size(l)
		b.charge(l, n/16, n+costString)
		return original.GFunction(l)
	})
}

package member

import (
	"context"
	"errors"
	"fmt"
	"time"
)

const (
	// reportDelay is the time after which a wait reports what it waits for.
	reportDelay = 2 * time.Second
	// The interval between two checks begins with firstInterval and doubles up to
	// lastInterval.
	firstInterval = 20 * time.Millisecond
	lastInterval  = 250 * time.Millisecond
)

var errTimeout = errors.New("timed out")

// WaitingFor is the prefix of the lines that name the object of a wait.
const WaitingFor = "waiting for "

// Reporter receives lines for the user: what a step waits for, and its results. It may
// be nil.
type Reporter func(line string)

func (r Reporter) say(format string, args ...any) {
	if r != nil {
		r(fmt.Sprintf(format, args...))
	}
}

// await calls done until it returns true or an error, for limit at most. After reportDelay
// it reports what it waits for.
func await(ctx context.Context, limit time.Duration, report Reporter, what func() string, done func(context.Context) (bool, error)) error {
	ctx, cancel := context.WithTimeoutCause(ctx, limit, errTimeout)
	defer cancel()
	delay := time.NewTimer(reportDelay)
	defer delay.Stop()
	for interval := firstInterval; ; interval = min(2*interval, lastInterval) {
		ok, err := done(ctx)
		switch {
		case ctx.Err() != nil && !ok:
			return fmt.Errorf("waiting for %s: %w", what(), context.Cause(ctx))
		case err != nil || ok:
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("waiting for %s: %w", what(), context.Cause(ctx))
		case <-delay.C:
			report.say("%s%s", WaitingFor, what())
		case <-time.After(interval):
		}
	}
}

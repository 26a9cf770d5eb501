package member

import (
	"context"
	"errors"
	"fmt"
	"time"
)

const (
	// patience is how long a wait stays silent.
	patience = 2 * time.Second
	// firstPause is between the first two looks; it grows up to lastPause.
	firstPause = 20 * time.Millisecond
	lastPause  = 250 * time.Millisecond
)

var errTooLong = errors.New("timed out")

// WaitingFor begins the lines about what is being waited for.
const WaitingFor = "waiting for "

// Reporter is told, in one line, what is being waited for and what a user ought
// to know. It may be nil.
type Reporter func(line string)

func (r Reporter) say(format string, args ...any) {
	if r != nil {
		r(fmt.Sprintf(format, args...))
	}
}

// await calls done at once and then again and again until it says so or fails, for
// limit at most. A wait of more than two seconds says what it waits for.
func await(ctx context.Context, limit time.Duration, report Reporter, what func() string, done func(context.Context) (bool, error)) error {
	ctx, cancel := context.WithTimeoutCause(ctx, limit, errTooLong)
	defer cancel()
	silence := time.NewTimer(patience)
	defer silence.Stop()
	for pause := firstPause; ; pause = min(2*pause, lastPause) {
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
		case <-silence.C:
			report.say("%s%s", WaitingFor, what())
		case <-time.After(pause):
		}
	}
}

package member

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/karmada-toolkit/karmada/internal/wait"
)

const (
	// The interval between two checks begins with firstInterval and doubles up to
	// lastInterval.
	firstInterval = 20 * time.Millisecond
	lastInterval  = 250 * time.Millisecond
)

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

// await calls done until it returns true or an error, for limit at most. While that takes long it reports what it waits
// for, each text once. The error of a timeout wraps wait.ErrTimeout.
func await(ctx context.Context, limit time.Duration, report Reporter, what func() string, done func(context.Context) (bool, error)) error {
	reported := ""
	err := wait.Until(ctx, wait.Options{
		Interval: firstInterval, MaxInterval: lastInterval, Timeout: limit,
		Publish: func(reason error) {
			if reason != nil && reason.Error() != reported {
				reported = reason.Error()
				report.say("%s", reported)
			}
		},
	}, func(ctx context.Context) error {
		ok, err := done(ctx)
		switch {
		case ok:
			return nil
		case err != nil && ctx.Err() == nil:
			return wait.Terminal(err)
		}
		return errors.New(WaitingFor + what())
	})
	return err
}

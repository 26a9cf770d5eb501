package agent

import (
	"context"
	"errors"
	"time"

	"github.com/go-logr/logr"

	"github.com/karmada-toolkit/karmada/internal/wait"
	"github.com/karmada-toolkit/karmada/pkg/member"
)

// The interval between two attempts begins with firstRetry and doubles up to lastRetry.
const (
	firstRetry = 250 * time.Millisecond
	lastRetry  = 5 * time.Second
)

// retrier repeats steps that fail until they succeed, and logs why they fail.
type retrier struct{ log logr.Logger }

// until calls fn until it succeeds, fails permanently or ctx ends.
func (r retrier) until(ctx context.Context, what string, fn func(context.Context) error) error {
	logged := ""
	return wait.Until(ctx, wait.Options{Interval: firstRetry, MaxInterval: lastRetry, Publish: func(reason error) {
		if reason != nil && reason.Error() != logged {
			logged = reason.Error()
			r.log.Info(what+" failed, trying again", "err", logged)
		}
	}}, func(ctx context.Context) error {
		err := fn(ctx)
		if errors.Is(err, member.ErrTaken) {
			return wait.Terminal(err)
		}
		return err
	})
}

package wait

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

var errPending = errors.New("0 of 1 pods of Deployment default/web are ready")

func TestUntil_ReturnsWhenTheCheckPasses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begin, checks := time.Now(), 0
		err := Until(t.Context(), Options{Interval: time.Second}, func(context.Context) error {
			if checks++; checks < 3 {
				return errPending
			}
			return nil
		})
		if took := time.Since(begin); err != nil || took != 2*time.Second {
			t.Errorf("after %s: %v", took, err)
		}
	})
}

func TestUntil_PublishesTheReasonEveryTwoSeconds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var published []string
		begin := time.Now()
		err := Until(t.Context(), Options{
			Interval: 1500 * time.Millisecond,
			Publish:  func(err error) { published = append(published, fmt.Sprint(time.Since(begin), " ", err)) },
		}, func(context.Context) error {
			if time.Since(begin) < 3*time.Second {
				return errPending
			}
			time.Sleep(4500 * time.Millisecond) // a request that takes long
			return nil
		})
		want := []string{"2s " + errPending.Error(), "4s " + errPending.Error(), "6s " + errPending.Error()}
		if err != nil || !slices.Equal(published, want) {
			t.Errorf("published %q, want %q; %v", published, want, err)
		}
	})
}

func TestUntil_TimeoutNamesTheReasonBeforeTheInterruptedCheck(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		checks := 0
		err := Until(t.Context(), Options{Interval: time.Second, Timeout: 10 * time.Second}, func(ctx context.Context) error {
			if checks++; checks < 5 {
				return errPending
			}
			<-ctx.Done()
			return ctx.Err()
		})
		want := "timed out after 10s: 0 of 1 pods of Deployment default/web are ready"
		if err == nil || err.Error() != want || !errors.Is(err, ErrTimeout) || !errors.Is(err, errPending) {
			t.Errorf("got %v, want %s", err, want)
		}
	})
}

func TestUntil_EndOfTheContext(t *testing.T) {
	cause := errors.New("interrupted")
	ctx, cancel := context.WithCancelCause(t.Context())
	err := Until(ctx, Options{Timeout: time.Hour}, func(context.Context) error {
		cancel(cause)
		return errPending
	})
	if !errors.Is(err, cause) || !errors.Is(err, errPending) || errors.Is(err, ErrTimeout) {
		t.Errorf("got %v", err)
	}
	err = Until(ctx, Options{}, func(ctx context.Context) error { return context.Cause(ctx) })
	if err == nil || err.Error() != "interrupted" {
		t.Errorf("got %v, want the cause once", err)
	}
	if err := Until(ctx, Options{}, func(context.Context) error { return nil }); err != nil {
		t.Errorf("a check that passes: %v", err)
	}
}

func TestUntil_TerminalError(t *testing.T) {
	checks := 0
	err := Until(t.Context(), Options{}, func(context.Context) error {
		checks++
		return fmt.Errorf("reading it: %w", Terminal(errPending))
	})
	if err == nil || err.Error() != errPending.Error() || !errors.Is(err, errPending) || checks != 1 {
		t.Errorf("after %d checks: %v", checks, err)
	}
	if Terminal(nil) != nil {
		t.Error("no error became one")
	}
}

func TestUntil_IntervalGrows(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begin, at := time.Now(), []time.Duration(nil)
		err := Until(t.Context(), Options{Interval: 20 * time.Millisecond, MaxInterval: 100 * time.Millisecond}, func(context.Context) error {
			if at = append(at, time.Since(begin)/time.Millisecond); len(at) < 7 {
				return errPending
			}
			return nil
		})
		if want := []time.Duration{0, 20, 60, 140, 240, 340, 440}; err != nil || !slices.Equal(at, want) {
			t.Errorf("checks at %d ms, want %d; %v", at, want, err)
		}
	})
}

func TestPublish_NotAfterStop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := 0
		stop := Publish(t.Context(), func() { n++ })
		time.Sleep(5 * time.Second)
		stop()
		time.Sleep(5 * time.Second)
		if n != 2 {
			t.Errorf("published %d times, want 2", n)
		}
	})
}

package env

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

// TestReading_Watch prints when the state is another one than before, until it is interrupted.
func TestReading_Watch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		states := []string{"", "a", "a", "b", "a"}
		var printed []string
		started, read := time.Now(), 0
		err := (&Reading{Watch: true}).Run(ctx, func() (string, func() error, error) {
			state := states[read]
			if read++; read == len(states) {
				cancel()
			}
			return state, func() error { printed = append(printed, state); return nil }, nil
		})
		if !errors.Is(err, ErrInterrupted) || !slices.Equal(printed, []string{"", "a", "b", "a"}) {
			t.Errorf("printed %q, %v", printed, err)
		}
		if took := time.Since(started); took != time.Duration(len(states)-1)*readingInterval {
			t.Errorf("it took %s", took)
		}
	})
}

func TestReading_Errors(t *testing.T) {
	failed := errors.New("failed")
	for name, r := range map[string]*Reading{"once": {}, "watch": {Watch: true}} {
		if err := r.Run(t.Context(), func() (string, func() error, error) { return "", nil, failed }); !errors.Is(err, failed) {
			t.Errorf("%s: reading: %v", name, err)
		}
		if err := r.Run(t.Context(), func() (string, func() error, error) { return "", func() error { return failed }, nil }); !errors.Is(err, failed) {
			t.Errorf("%s: printing: %v", name, err)
		}
	}
}

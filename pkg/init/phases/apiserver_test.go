package phases

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/karmada-toolkit/karmada/internal/progress"
	"github.com/karmada-toolkit/karmada/pkg/init/config"
)

func TestAwaitAnswer_WaitsForWhatIsNotReadyAfterAll(t *testing.T) {
	for name, tc := range map[string]struct {
		// unready is from when to when the host cluster takes it for not ready.
		from, to time.Duration
		// answers is from when on it answers; 0 is never.
		answers time.Duration
		fails   bool
	}{
		"at once":                                 {answers: time.Nanosecond},
		"ready, but not to be reached":            {fails: true},
		"it is found out that it is not ready":    {from: 20 * time.Second, to: 50 * time.Second, answers: 52 * time.Second},
		"not ready for ever":                      {to: time.Hour, fails: true},
		"ready again, and then not to be reached": {from: 5 * time.Second, to: 20 * time.Second, fails: true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				begun := time.Now()
				o := config.New()
				s := &State{Config: &o, Progress: progress.NewReminder(progress.Discard{}, time.Now), Now: time.Now}
				unready := func() string {
					if since := time.Since(begun); since >= tc.from && since < tc.to {
						return "karmada-apiserver: 0 of 1 pods ready"
					}
					return ""
				}
				err := awaitAnswer(t.Context(), s, "https://here", unready, func(context.Context) error {
					if tc.answers > 0 && time.Since(begun)+time.Nanosecond >= tc.answers {
						return nil
					}
					return errors.New("connection reset by peer")
				})
				if tc.fails != (err != nil) {
					t.Errorf("after %s: %v", time.Since(begun), err)
				}
				if took := time.Since(begun); took > o.Timeout() {
					t.Errorf("it took %s", took)
				}
			})
		})
	}
}

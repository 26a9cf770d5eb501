package progress

import (
	"bytes"
	"testing"
	"testing/synctest"
	"time"
)

func TestReminder_ReportsASilentStep(t *testing.T) {
	for name, tc := range map[string]struct {
		own  bool
		want string
	}{
		"a step that reports nothing":       {false, "  …   2.0s  a: an answer\n  …   4.0s  still waiting for a\n"},
		"a step that reports, and then not": {true, "  …   0.0s  a: pods\n"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var out bytes.Buffer
				r := NewReminder(NewPrinter(&out, time.Now, Timeline), time.Now)
				r.Begin("a")
				if tc.own {
					r.Waiting("a", "pods")
				}
				stop := r.Watch(t.Context(), "a", "an answer")
				time.Sleep(5 * time.Second)
				stop()
				time.Sleep(5 * time.Second)
				synctest.Wait()
				if out.String() != tc.want {
					t.Errorf("got:\n%swant:\n%s", out.String(), tc.want)
				}
			})
		})
	}
}

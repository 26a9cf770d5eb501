package execution

import (
	"testing"
	"time"

	"github.com/karmada-toolkit/karmada/pkg/domain/execution"
)

func TestPolicy_Delay(t *testing.T) {
	p := Policy{Failure: 250, Interval: 300}
	at := func(n int64) time.Time { return time.Unix(100, n) }
	for _, tc := range []struct {
		name                string
		change              execution.Change
		now, dirty, written time.Time
		stable              time.Duration
		want                time.Duration
	}{
		{"a stable status is written at once", execution.Stable, at(0), at(0), time.Time{}, 1000, 0},
		{"but not before the interval has passed", execution.Stable, at(100), at(100), at(0), 0, 200},
		{"a failure must last", execution.Failed, at(10), at(0), time.Time{}, 0, 240},
		{"a failure that lasted is written", execution.Failed, at(250), at(0), time.Time{}, 0, 0},
		{"objects have time to become healthy", execution.Unstable, at(400), at(0), time.Time{}, 1000, 600},
		{"an overdue status is written", execution.Unstable, at(5000), at(0), at(4000), 1000, 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if got := p.delay(tc.change, tc.now, tc.dirty, tc.written, tc.stable); got != tc.want {
				t.Errorf("got %d, want %d", got, tc.want)
			}
		})
	}
}

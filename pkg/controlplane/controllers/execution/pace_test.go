package execution

import (
	"testing"
	"time"
)

func TestPace_Wait(t *testing.T) {
	p := Pace{Failure: 250, Interval: 300}
	at := func(n int64) time.Time { return time.Unix(100, n) }
	for _, tc := range []struct {
		name                string
		change              change
		now, dirty, written time.Time
		settle              time.Duration
		want                time.Duration
	}{
		{"what is settled is written at once", settled, at(0), at(0), time.Time{}, 1000, 0},
		{"but not more often than the interval", settled, at(100), at(100), at(0), 0, 200},
		{"a failure must last", failed, at(10), at(0), time.Time{}, 0, 240},
		{"a failure that lasted is written", failed, at(250), at(0), time.Time{}, 0, 0},
		{"objects may become healthy", unsettled, at(400), at(0), time.Time{}, 1000, 600},
		{"what is overdue is written", unsettled, at(5000), at(0), at(4000), 1000, 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if got := p.wait(tc.change, tc.now, tc.dirty, tc.written, tc.settle); got != tc.want {
				t.Errorf("got %d, want %d", got, tc.want)
			}
		})
	}
}

package execution

import (
	"testing"
	"time"
)

func TestPace_Wait(t *testing.T) {
	p := Pace{Failure: 250, Settle: 1000, Interval: 300, Crowd: 10, CrowdMax: 500}
	at := func(n int64) time.Time { return time.Unix(100, n) }
	for _, tc := range []struct {
		name                string
		change              change
		now, dirty, written time.Time
		others              int
		want                time.Duration
	}{
		{"what is settled is written at once", settled, at(0), at(0), time.Time{}, 9, 0},
		{"but not more often than the interval", settled, at(100), at(100), at(0), 0, 200},
		{"a failure must last", failed, at(10), at(0), time.Time{}, 0, 240},
		{"a failure that lasted is written", failed, at(250), at(0), time.Time{}, 0, 0},
		{"objects may become healthy", unsettled, at(400), at(0), time.Time{}, 0, 600},
		{"they get more time in a crowd", unsettled, at(400), at(0), time.Time{}, 20, 800},
		{"up to a limit", unsettled, at(0), at(0), time.Time{}, 1000, 1500},
		{"what is overdue is written", unsettled, at(5000), at(0), at(4000), 0, 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if got := p.wait(tc.change, tc.now, tc.dirty, tc.written, tc.others); got != tc.want {
				t.Errorf("got %d, want %d", got, tc.want)
			}
		})
	}
}

func TestCrowd(t *testing.T) {
	var c crowd
	if n := c.set("a", true); n != 0 {
		t.Error(n)
	}
	if n := c.set("b", true); n != 1 {
		t.Error(n)
	}
	if n := c.set("b", true); n != 1 {
		t.Error(n)
	}
	if n := c.set("a", false); n != 1 {
		t.Error(n)
	}
}

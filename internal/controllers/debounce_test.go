package controllers

import (
	"testing"
	"time"
)

func TestBacklog_Wait(t *testing.T) {
	l := Debounce{Stable: time.Second, StableMax: 10 * time.Second, PerWaiting: 100 * time.Millisecond, PerWaitingMax: time.Second}
	at := func(s int) time.Time { return time.Unix(int64(s), 0) }
	b := &Backlog[string]{}
	want := func(name string, got, want time.Duration) {
		t.Helper()
		if got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
	want("alone", b.Wait("a", at(0), l), time.Second)
	want("again", b.Wait("a", at(1), l), time.Second)
	want("one of two", b.Wait("b", at(1), l), 1100*time.Millisecond)
	b.Done("a", at(12)) // needed 12 s: the average is 3 s
	b.Done("a", at(99)) // not in the backlog
	want("recent keys needed 3 s", b.Wait("b", at(12), l), 6*time.Second)
	b.Publish("b")
	b.Publish("b")
	want("published keys do not count", b.Wait("c", at(12), l), 6*time.Second)
	b.Forget("c")
	b.Forget("b")
	if b.Len() != 0 {
		t.Errorf("%d wait", b.Len())
	}
	for range 20 {
		b.Wait("slow", at(0), l)
		b.Done("slow", at(60))
	}
	want("recent keys needed longer than StableMax", b.Wait("a", at(60), l), time.Second)
	for i := range 50 {
		b.Wait(string(rune('A'+i)), at(60), l)
	}
	want("the sum of PerWaiting is bounded", b.Wait("a", at(60), l), 2*time.Second)
}

func TestDebouncer_Due(t *testing.T) {
	at := func(n int64) time.Time { return time.Unix(100, n) }
	for _, tc := range []struct {
		name                string
		change              Change
		now, dirty, written time.Time
		stable              time.Duration
		want                time.Duration
	}{
		{"a stable status is written at once", Stable, at(0), at(0), time.Time{}, 1000, 0},
		{"but not before the interval has passed", Stable, at(100), at(100), at(0), 0, 200},
		{"a failure must last", Failed, at(10), at(0), time.Time{}, 0, 240},
		{"a failure that lasted is written", Failed, at(250), at(0), time.Time{}, 0, 0},
		{"objects have time to become healthy", Unstable, at(400), at(0), time.Time{}, 1000, 600},
		{"an overdue status is written", Unstable, at(5000), at(0), at(4000), 1000, 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			d := &Debouncer[string]{Failure: 250, Interval: 300, Stable: Debounce{Stable: tc.stable}}
			if got := max(0, d.Due("a", tc.change, 0, tc.dirty, tc.written, tc.now).Sub(tc.now)); got != tc.want {
				t.Errorf("got %d, want %d", got, tc.want)
			}
		})
	}
}

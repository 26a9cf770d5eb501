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

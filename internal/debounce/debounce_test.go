package debounce

import (
	"testing"
	"time"
)

func TestCrowd(t *testing.T) {
	l := Limits{Settle: time.Second, StableMax: 10 * time.Second, Backlog: 100 * time.Millisecond, BacklogMax: time.Second}
	at := func(s int) time.Time { return time.Unix(int64(s), 0) }
	c := &Backlog[string]{}
	want := func(name string, got, want time.Duration) {
		t.Helper()
		if got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
	want("alone", c.Wait("a", at(0), l), time.Second)
	want("again", c.Wait("a", at(1), l), time.Second)
	want("one of two", c.Wait("b", at(1), l), 1100*time.Millisecond)
	c.Settled("a", at(12)) // took 12 s: typical is 3 s now
	c.Settled("a", at(99)) // no longer among them
	want("others took a while", c.Wait("b", at(12), l), 6*time.Second)
	c.Published("b")
	c.Published("b")
	want("those whose state is known do not count", c.Wait("c", at(12), l), 6*time.Second)
	c.Leave("c")
	c.Leave("b")
	if c.Len() != 0 {
		t.Errorf("%d wait", c.Len())
	}
	for range 20 {
		c.Wait("slow", at(0), l)
		c.Settled("slow", at(60))
	}
	want("others take too long", c.Wait("a", at(60), l), time.Second)
	for i := range 50 {
		c.Wait(string(rune('A'+i)), at(60), l)
	}
	want("a large crowd", c.Wait("a", at(60), l), 2*time.Second)
}

package scheduler

import (
	"slices"
	"strconv"
	"testing"
	"time"

	clocktesting "k8s.io/utils/clock/testing"
)

func named(n string) key { return key{Namespace: "ns", Name: n} }

func newTestQueue() (*queue, *clocktesting.FakeClock) {
	c := clocktesting.NewFakeClock(time.Unix(1000, 0))
	o := NewOptions()
	o.Workers = 20
	return newQueue(o, c, nil), c
}

func pop(t *testing.T, q *queue, want string) {
	t.Helper()
	if active, _, _ := q.Pending(); active == 0 {
		t.Fatalf("nothing to pop, want %s", want)
	}
	if got, shutdown := q.Get(); shutdown || got != named(want) {
		t.Fatalf("popped %v, want %s", got, want)
	}
}

func pending(t *testing.T, q *queue, active, backoff, unschedulable int) {
	t.Helper()
	if a, b, u := q.Pending(); a != active || b != backoff || u != unschedulable {
		t.Fatalf("%d active, %d in backoff, %d unschedulable; want %d, %d, %d", a, b, u, active, backoff, unschedulable)
	}
}

func TestQueue_HighestPriorityFirstThenLongestWaiting(t *testing.T) {
	q, c := newTestQueue()
	q.Push(named("a"), 0)
	q.Push(named("b"), 5)
	c.Step(time.Second)
	q.Push(named("c"), 5)
	q.Push(named("d"), 9)
	for _, want := range []string{"d", "b", "c", "a"} {
		pop(t, q, want)
	}
}

func TestQueue_PushAgainTakesTheNewPriority(t *testing.T) {
	q, _ := newTestQueue()
	q.Push(named("a"), 0)
	q.Push(named("b"), 5)
	q.Push(named("a"), 9)
	pending(t, q, 2, 0, 0)
	pop(t, q, "a")
	// A lower one, too: while it is queued, waits, or comes again.
	q.Push(named("c"), 9)
	q.Push(named("c"), 1)
	q.Push(named("a"), 9)
	q.Push(named("a"), 2)
	q.Finish(named("a"), finished)
	q.PushAfter(named("d"), 9, time.Second)
	q.Push(named("d"), 3)
	for _, want := range []string{"b", "d", "a", "c"} {
		pop(t, q, want)
	}
}

func TestQueue_PushedWhileWorkedOnComesAgain(t *testing.T) {
	q, _ := newTestQueue()
	q.Push(named("a"), 0)
	pop(t, q, "a")
	q.Push(named("a"), 0)
	pending(t, q, 0, 0, 0)
	if q.Claim(named("a")) {
		t.Error("it is handed out to two")
	}
	// It does not keep others from being scheduled at once.
	if !q.claimNew(named("new")) {
		t.Error("another one waits for it")
	}
	q.Finish(named("new"), finished)
	q.Finish(named("a"), parked)
	pending(t, q, 1, 0, 0)
	pop(t, q, "a")
	q.Finish(named("a"), finished)
	pending(t, q, 0, 0, 0)
}

func TestQueue_BackoffGrowsToTenSeconds(t *testing.T) {
	q, c := newTestQueue()
	q.Push(named("a"), 0)
	for _, seconds := range []int{1, 2, 4, 8, 10, 10} {
		pop(t, q, "a")
		q.Finish(named("a"), failed)
		c.Step(time.Duration(seconds)*time.Second - time.Millisecond)
		q.Sweep()
		pending(t, q, 0, 1, 0)
		c.Step(time.Millisecond)
		q.Sweep()
		pending(t, q, 1, 0, 0)
	}
}

func TestQueue_AFreshPushEndsTheWait(t *testing.T) {
	for _, o := range []outcome{failed, parked} {
		q, c := newTestQueue()
		q.Push(named("a"), 0)
		pop(t, q, "a")
		q.Finish(named("a"), o)
		q.Push(named("a"), 0)
		pending(t, q, 1, 0, 0)
		pop(t, q, "a")
		q.Finish(named("a"), failed)
		c.Step(time.Second)
		q.Sweep()
		pending(t, q, 1, 0, 0)
	}
}

func TestQueue_UnschedulableWaitsFiveMinutesOrForAChange(t *testing.T) {
	q, c := newTestQueue()
	for _, n := range []string{"a", "b"} {
		q.Push(named(n), 0)
		pop(t, q, n)
		q.Finish(named(n), parked)
	}
	pending(t, q, 0, 0, 2)
	q.Wake(func(k key) bool { return k == named("b") })
	pop(t, q, "b")
	c.Step(5*time.Minute - time.Millisecond)
	q.Sweep()
	pending(t, q, 0, 0, 1)
	c.Step(time.Millisecond)
	q.Sweep()
	pending(t, q, 1, 0, 0)
}

func TestQueue_NamespacesTakeTurns(t *testing.T) {
	o := NewOptions()
	o.Workers = 3
	q := newQueue(o, clocktesting.NewFakeClock(time.Unix(1000, 0)), nil)
	for i := range 100 {
		q.Push(key{"flood", strconv.Itoa(i)}, 1000)
	}
	q.Push(key{"other", "a"}, 0)
	var first []key
	for range 3 {
		k, _ := q.Get()
		first = append(first, k)
	}
	want := []key{{"flood", "0"}, {"flood", "1"}, {"other", "a"}}
	if !slices.Equal(first, want) {
		t.Errorf("the workers have %v, want %v", first, want)
	}
	q.Finish(key{"flood", "0"}, failed)
	if k, _ := q.Get(); k != (key{"flood", "2"}) {
		t.Errorf("the worker that is free has %v", k)
	}
}

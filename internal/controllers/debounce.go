package controllers

import (
	"sync"
	"time"
)

// Debounce bounds the delay until the state of a key that changes often is published.
type Debounce struct {
	// Stable is the minimum delay.
	Stable time.Duration
	// StableMax bounds the delay that follows from the time that recent keys needed.
	// When they need longer than that, a delay has no benefit and Stable applies.
	StableMax time.Duration
	// PerWaiting is added for each other key that waits, up to PerWaitingMax.
	PerWaiting, PerWaitingMax time.Duration
}

// Change is what a status is going to be.
type Change int

// The changes.
const (
	Stable   Change = iota // no further change is expected
	Failed                 // something failed; a retry may succeed
	Unstable               // objects are not healthy yet
)

// Debouncer decides how long statuses wait that are about to change again: each write causes others. It is safe for concurrent use.
type Debouncer[K comparable] struct {
	// Failure is how long a failure must last, and Interval the least time between two writes.
	Failure, Interval time.Duration
	// Stable is the time that objects have to become healthy.
	Stable Debounce
	// Backlog has the keys whose status is not stable: Publish is called when one was written.
	Backlog[K]
}

// Due returns when a status is written that differs since dirty from what was written at written. extra is added unless something failed.
func (d *Debouncer[K]) Due(key K, c Change, extra time.Duration, dirty, written, now time.Time) time.Time {
	due := dirty.Add(extra)
	switch c {
	case Stable:
		d.Done(key, now)
	case Failed:
		d.Forget(key)
		due = dirty.Add(d.Failure)
	case Unstable:
		due = due.Add(d.Wait(key, now, d.Stable))
	}
	if next := written.Add(d.Interval); next.After(due) {
		due = next
	}
	return due
}

// Unchanged records that a status does not differ from what was written.
func (d *Debouncer[K]) Unchanged(key K, c Change, now time.Time) {
	if c == Stable {
		d.Done(key, now)
	}
}

// Backlog is the set of keys whose state is not stable. The zero value is empty.
type Backlog[K comparable] struct {
	mu      sync.Mutex
	entries map[K]entry
	waiting int
	typical time.Duration // moving average of the time that keys needed
}

// entry is a key that is not stable. It waits until its state is published.
type entry struct {
	since   time.Time
	waiting bool
}

// maxSample bounds the weight of a single key in the moving average.
const maxSample = 20 * time.Second

// Wait adds key unless it is waiting already, and returns the total delay of its
// publication.
func (b *Backlog[K]) Wait(key K, now time.Time, l Debounce) time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.entries == nil {
		b.entries = map[K]entry{}
	}
	e, ok := b.entries[key]
	if !ok {
		e.since = now
	}
	if !e.waiting {
		e.waiting = true
		b.waiting++
	}
	b.entries[key] = e
	delay := l.Stable
	if expected := 2 * b.typical; expected > delay && expected <= l.StableMax {
		delay = expected
	}
	return delay + min(time.Duration(b.waiting-1)*l.PerWaiting, l.PerWaitingMax)
}

// Publish records that the unstable state of key was published: key no longer waits.
func (b *Backlog[K]) Publish(key K) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if e, ok := b.entries[key]; ok && e.waiting {
		e.waiting = false
		b.entries[key] = e
		b.waiting--
	}
}

// Done removes key, which is stable, and takes the time it needed into account.
func (b *Backlog[K]) Done(key K, now time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if e, ok := b.entries[key]; ok {
		b.removeLocked(key, e)
		b.typical += (min(now.Sub(e.since), maxSample) - b.typical) / 4
	}
}

// Forget removes key without taking the time it needed into account.
func (b *Backlog[K]) Forget(key K) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if e, ok := b.entries[key]; ok {
		b.removeLocked(key, e)
	}
}

func (b *Backlog[K]) removeLocked(key K, e entry) {
	delete(b.entries, key)
	if e.waiting {
		b.waiting--
	}
}

// Len returns the number of keys that are not stable.
func (b *Backlog[K]) Len() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.entries)
}

// Package debounce says how long it is worth waiting for something to settle
// before its intermediate state is published. What arrives in a crowd gets more
// time, and so does what has been seen to take longer of late.
package debounce

import (
	"sync"
	"time"
)

// Limits bound the wait.
type Limits struct {
	// Settle is the least that is waited.
	Settle time.Duration
	// StableMax bounds what is waited because others took long. When they take
	// longer still, waiting is of no use and Settle counts.
	StableMax time.Duration
	// Backlog is added for each other one that waits, up to BacklogMax.
	Backlog, BacklogMax time.Duration
}

// Backlog is the set of those that wait. Its zero value is an empty one.
type Backlog[K comparable] struct {
	mu      sync.Mutex
	members map[K]member
	waiting int
	typical time.Duration
}

// member is one that has not settled yet; it no longer waits once its state was
// published as it is.
type member struct {
	since   time.Time
	waiting bool
}

// longest is the most that one that took long counts for.
const longest = 20 * time.Second

// Wait adds key to those that wait, if it is not among them, and returns how
// long it may wait in all.
func (c *Backlog[K]) Wait(key K, now time.Time, l Limits) time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.members == nil {
		c.members = map[K]member{}
	}
	m, ok := c.members[key]
	if !ok {
		m.since = now
	}
	if !m.waiting {
		m.waiting = true
		c.waiting++
	}
	c.members[key] = m
	settle := l.Settle
	if often := 2 * c.typical; often > settle && often <= l.StableMax {
		settle = often
	}
	return settle + min(time.Duration(c.waiting-1)*l.Backlog, l.BacklogMax)
}

// Published says that the state of key was published though it has not settled.
func (c *Backlog[K]) Published(key K) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if m, ok := c.members[key]; ok && m.waiting {
		m.waiting = false
		c.members[key] = m
		c.waiting--
	}
}

// Settled takes key from those that wait and learns from how long it took.
func (c *Backlog[K]) Settled(key K, now time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if m, ok := c.members[key]; ok {
		c.removeLocked(key, m)
		c.typical += (min(now.Sub(m.since), longest) - c.typical) / 4
	}
}

// Leave takes key from those that wait.
func (c *Backlog[K]) Leave(key K) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if m, ok := c.members[key]; ok {
		c.removeLocked(key, m)
	}
}

func (c *Backlog[K]) removeLocked(key K, m member) {
	delete(c.members, key)
	if m.waiting {
		c.waiting--
	}
}

// Len returns how many have not settled.
func (c *Backlog[K]) Len() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.members)
}

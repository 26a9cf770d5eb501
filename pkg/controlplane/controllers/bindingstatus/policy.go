package bindingstatus

import (
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/karmada-toolkit/karmada/internal/controllers"
)

// Policy defines how long the status of a binding is delayed because it is about to
// change again. A status that is complete is written at once.
type Policy struct {
	// Failure is how long a failure must last. Default: 150 ms.
	Failure time.Duration
	// Stable limits how long objects may take to become healthy. Default: 1 s, up to
	// 10 s while other objects take that long, and 150 ms (15 s in total) for each
	// other binding that waits.
	Stable controllers.Debounce
	// Pending is added while clusters have not reported at all. Default: 2 s.
	Pending time.Duration
	// Moving is added while a workload that is evicted is not healthy in other clusters.
	// Default: 20 s.
	Moving time.Duration
	// Interval is the minimum time between two writes. Default: 250 ms.
	Interval time.Duration
	// Wide delays the status of bindings with many targets more, since each write contains all of them.
	Wide Wide
}

// Wide are the delays of bindings with many targets.
type Wide struct {
	// Targets is the number of targets above which a binding is wide. Default: 16.
	Targets int
	// PerTarget is added to Policy.Interval for each target above Targets, at most Max. Default: 15 ms, at most 15 s.
	PerTarget, Max time.Duration
	// Quiet is how long nothing must change, for each target above Targets, until a stable or failed status is written
	// before that time, at most QuietMax: the last status of a rollout comes soon. Default: 1 ms, at most 500 ms.
	Quiet, QuietMax time.Duration
}

// DefaultPolicy returns the Policy of a controller without another.
func DefaultPolicy() Policy {
	return Policy{
		Failure: 150 * time.Millisecond, Pending: 2 * time.Second, Moving: 20 * time.Second, Interval: 250 * time.Millisecond,
		Stable: controllers.Debounce{
			Stable: time.Second, StableMax: 10 * time.Second,
			PerWaiting: 150 * time.Millisecond, PerWaitingMax: 15 * time.Second,
		},
		Wide: Wide{
			Targets: 16, PerTarget: 15 * time.Millisecond, Max: 15 * time.Second,
			Quiet: time.Millisecond, QuietMax: 500 * time.Millisecond,
		},
	}
}

// spacing returns the least time between two summaries of the Works of a binding: each reads all of them.
func (p Policy) spacing(targets int) time.Duration {
	return min(time.Duration(max(0, targets-p.Wide.Targets))*p.Wide.Quiet, p.Wide.QuietMax) / 2
}

// times are when what a delay depends on happened.
type times struct {
	// dirty is when the status first differed from the written one, changed when a Work of the binding last changed, and
	// written when a status was last written.
	dirty, changed, written time.Time
}

// debouncer returns what decides about bindings with few targets.
func (p Policy) debouncer() *controllers.Debouncer[types.NamespacedName] {
	return &controllers.Debouncer[types.NamespacedName]{Failure: p.Failure, Stable: p.Stable, Interval: p.Interval}
}

// change returns what a status is going to be, and how much longer it waits than an unstable one.
func (p Policy) change(s *summary) (c controllers.Change, extra time.Duration) {
	switch s.progress {
	case stable:
	case failed:
		return controllers.Failed, 0
	case unstable:
		c = controllers.Unstable
	case pending, unreported:
		c, extra = controllers.Unstable, p.Pending
	}
	if s.moving {
		extra = max(p.Pending, p.Moving)
	}
	return c, extra
}

// delay returns how long a status waits.
func (p Policy) delay(d *controllers.Debouncer[types.NamespacedName], key types.NamespacedName, s *summary, now time.Time, t times) time.Duration {
	c, extra := p.change(s)
	return max(0, p.wide(s, d.Due(key, c, extra, t.dirty, t.written, now), t).Sub(now))
}

// wide returns when a status is due that is due at that time if its binding has few targets.
func (p Policy) wide(s *summary, due time.Time, t times) time.Time {
	more := max(0, max(s.want.Len(), len(s.items))-p.Wide.Targets)
	next := t.written.Add(p.Interval + min(time.Duration(more)*p.Wide.PerTarget, p.Wide.Max))
	if more == 0 || t.written.IsZero() || !next.After(due) {
		return due
	}
	quiet := t.changed.Add(min(time.Duration(more)*p.Wide.Quiet, p.Wide.QuietMax))
	if (s.progress == stable || s.progress == failed) && quiet.Before(next) {
		next = quiet
	}
	if next.Before(due) {
		return due
	}
	return next
}

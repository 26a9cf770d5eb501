package clustercondition

import (
	"slices"
	"time"
)

// maxReadyChanges is the number of changes of the Ready condition within the window that is not flapping yet.
const maxReadyChanges = 3

// FlapFacts are what decides whether the Ready condition of a cluster changes often.
type FlapFacts struct {
	// Now is the current time, and Window the time that counts.
	Now    time.Time
	Window time.Duration
	// Changes are when the condition changed, as far as is known; they are not changed. Last is its last change, zero if
	// there is no condition.
	Changes []time.Time
	Last    time.Time
	// Flapping reports whether the cluster was flapping before.
	Flapping bool
}

// Flapping returns the changes that still count, whether the cluster is flapping, and the time after which it may not be
// any longer; 0 if it is not. A cluster flaps after more than three changes within the window, until there was none for
// as long.
func Flapping(f FlapFacts) (changes []time.Time, flapping bool, after time.Duration) {
	changes = slices.Clone(f.Changes)
	if !f.Last.IsZero() {
		changes = append(changes, f.Last)
	}
	slices.SortFunc(changes, time.Time.Compare)
	changes = slices.CompactFunc(changes, time.Time.Equal)
	changes = slices.DeleteFunc(changes, func(at time.Time) bool { return at.After(f.Now) || f.Now.Sub(at) >= f.Window })
	if n := len(changes); n > maxReadyChanges+1 {
		changes = changes[n-maxReadyChanges-1:]
	}
	if n := len(changes); n > maxReadyChanges || n > 0 && f.Flapping {
		return changes, true, changes[n-1].Add(f.Window).Sub(f.Now)
	}
	return changes, false, 0
}

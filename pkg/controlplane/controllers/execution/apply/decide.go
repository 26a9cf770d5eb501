package apply

import (
	"time"

	"github.com/karmada-toolkit/karmada/internal/status"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/controllers/execution/member"
)

const (
	// ConfirmAfter is the time after which an object that was written, but not
	// observed, is read from the member.
	ConfirmAfter = 5 * time.Second
	// CatchUp is the time within which an informer observes a write. A version that is
	// older after that is what the member has.
	CatchUp = 10 * time.Second
	// SyncTimeout is how long an object that may exist since before the start waits
	// for the informer to sync.
	SyncTimeout = 10 * time.Second
)

// Action is what has to be done for an object.
type Action int

// The actions.
const (
	ActionNone    Action = iota // the object is as desired, as far as is known
	ActionWait                  // it may exist: wait until the informer has synced
	ActionRead                  // it may exist: read it from the member, then create or update it
	ActionCreate                // it does not exist
	ActionCompare               // it exists: update it if it differs from what is desired
)

// Facts are what is known about an object.
type Facts struct {
	Applied Applied
	View    member.View
	// Deleted reports that the deletion of the object that was written last was
	// observed.
	Deleted bool
	// Preexisting reports that an earlier process may have created the object.
	Preexisting bool
	Now         time.Time
}

// Decide returns the action for an object, and when to decide again if nothing happens
// until then: never if 0.
func Decide(f Facts) (Action, time.Duration) {
	action, wait := decide(f)
	due, contested := f.Applied.contest.due(f.Now)
	if !contested || action != ActionNone || f.View.Snapshot == nil {
		return action, wait
	}
	if due == 0 {
		return ActionCompare, ConfirmAfter
	}
	if wait == 0 || due < wait {
		wait = due
	}
	return ActionNone, wait
}

func decide(f Facts) (Action, time.Duration) {
	a, s := f.Applied, f.View.Snapshot
	if s == nil {
		return decideUnobserved(f)
	}
	behind := a.uid != "" && !status.Newer(s.Version, a.version)
	switch {
	case behind && s.Version != a.version:
		if wait := CatchUp - f.Now.Sub(a.at); a.current && wait > 0 {
			return ActionNone, wait
		}
		return ActionRead, ConfirmAfter
	case a.current && (behind || s.UID == a.uid && s.Hash == a.hash):
		return ActionNone, 0
	}
	return ActionCompare, ConfirmAfter
}

// decideUnobserved decides for an object that the informer does not have.
func decideUnobserved(f Facts) (Action, time.Duration) {
	a := f.Applied
	switch {
	case a.uid == "" && f.Preexisting && !f.View.Synced:
		if wait := SyncTimeout - f.Now.Sub(f.View.Started); wait > 0 {
			return ActionWait, wait
		}
		return ActionRead, ConfirmAfter
	case f.Deleted || a.uid == "" && !a.exists:
		return ActionCreate, ConfirmAfter
	case !a.current:
		return ActionRead, ConfirmAfter
	case !f.View.Synced:
		return ActionNone, 0
	}
	if wait := ConfirmAfter - f.Now.Sub(a.at); wait > 0 {
		return ActionNone, wait
	}
	return ActionRead, ConfirmAfter
}

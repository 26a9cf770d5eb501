// Package apply decides what has to be done so that an object of a Work is in the
// member as desired, and does it.
package apply

import (
	"time"

	"k8s.io/apimachinery/pkg/types"

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

// Applied is what is known of an object from its last write. The zero value is that of
// an object that was never written. Only this package changes it.
type Applied struct {
	// exists reports that the object exists in the member, though not as desired.
	exists bool
	// current reports that the member had the object as desired by the manifest and
	// revision; uid, version and hash are those of the object at that time.
	current  bool
	uid      types.UID
	version  string
	hash     uint64
	at       time.Time
	revision uint64
	// contest has the fields that are changed in the member; nil if none was.
	contest *contest
	// nodePorts has a line for each node port of the manifest instead of which the member has another one.
	nodePorts []string
	// response is the object as the member returned it, until it is observed.
	response *member.Snapshot
}

// Unknown returns the value of an object that was not written. exists reports that it
// may exist, as applying it failed before.
func Unknown(exists bool) Applied { return Applied{exists: exists} }

// UID returns the UID of the object that was written last.
func (a Applied) UID() types.UID { return a.uid }

// Contested returns the fields that another field manager in the member changes again after each write.
func (a Applied) Contested() []Contested { return a.contest.list() }

// NodePorts returns a line for each node port that the control plane allocated and instead of which the member has another one.
func (a Applied) NodePorts() []string { return a.nodePorts }

// Outdated returns the value after a change of the manifest, which ends the holds of contested fields.
func (a Applied) Outdated() Applied {
	return Applied{exists: a.exists, uid: a.uid, version: a.version, hash: a.hash, contest: a.contest.release(), nodePorts: a.nodePorts}
}

// WithRevision returns the value for a revision of the rules of the interpreter: an
// object that was applied by another one is outdated.
func (a Applied) WithRevision(revision uint64) Applied {
	if a.revision != revision {
		a.revision, a.current = revision, false
	}
	return a
}

// Observed returns the value once an informer has returned a snapshot: the response is
// released when it is not needed any longer.
func (a Applied) Observed(s *member.Snapshot) Applied {
	if s != nil && a.response != nil && !status.Newer(a.response.Version, s.Version) {
		a.response = nil
	}
	return a
}

// Confirmed returns the value of an object that Decide found to be as desired.
func (a Applied) Confirmed(s *member.Snapshot) Applied {
	if s != nil && status.Newer(s.Version, a.version) {
		a.version = s.Version
	}
	return a.Observed(s)
}

// Latest returns the later of a snapshot and the response of the member.
func (a Applied) Latest(s *member.Snapshot) *member.Snapshot {
	if a.response != nil && (s == nil || status.Newer(a.response.Version, s.Version)) {
		return a.response
	}
	return s
}

// written returns the value after the member returned the object as desired.
func (a Applied) written(s member.Snapshot, now time.Time) Applied {
	return Applied{current: true, uid: s.UID, version: s.Version, hash: s.Hash, at: now, revision: a.revision, contest: a.contest, nodePorts: a.nodePorts, response: &s}
}

// Package execution decides what is done for a Work and for each of its objects, and what the status of the Work is.
package execution

import (
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/karmada-toolkit/karmada/internal/resourceversion"
	"github.com/karmada-toolkit/karmada/pkg/domain/manifest"
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
	View    View
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
	behind := a.uid != "" && !resourceversion.Newer(s.Version, a.version)
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
	case a.uid == "" && !a.exists, a.uid != "" && f.View.gone(a.version):
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
	response *Snapshot
}

// Unknown returns the value of an object that was not written. exists reports that it
// may exist, as applying it failed before.
func Unknown(exists bool) Applied { return Applied{exists: exists} }

// Version returns the resource version of the object that was written last.
func (a Applied) Version() string { return a.version }

// Newer reports whether the object that was written last has a later version than one in the member: it was restored.
func (a Applied) Newer(version string) bool {
	return a.uid != "" && resourceversion.Newer(a.version, version)
}

// Existing returns the value after an attempt to create the object, which shows whether another one exists.
func (a Applied) Existing(exists bool) Applied {
	a.exists = exists
	return a
}

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
func (a Applied) Observed(s *Snapshot) Applied {
	if s != nil && a.response != nil && !resourceversion.Newer(a.response.Version, s.Version) {
		a.response = nil
	}
	return a
}

// Confirmed returns the value of an object that Decide found to be as desired.
func (a Applied) Confirmed(s *Snapshot) Applied {
	if s != nil && resourceversion.Newer(s.Version, a.version) {
		a.version = s.Version
	}
	return a.Observed(s)
}

// Latest returns the later of a snapshot and the response of the member.
func (a Applied) Latest(s *Snapshot) *Snapshot {
	if a.response != nil && (s == nil || resourceversion.Newer(a.response.Version, s.Version)) {
		return a.response
	}
	return s
}

// Written returns the value after the member returned the object as desired, and a line for each node port of the manifest instead of which it
// has another one.
func (a Applied) Written(s Snapshot, nodePorts []string, now time.Time) Applied {
	return Applied{current: true, uid: s.UID, version: s.Version, hash: s.Hash, at: now, revision: a.revision, contest: a.contest, nodePorts: nodePorts, response: &s}
}

// Hold copies the contested fields that are not due from the observed object. It returns whether the field managers of some are to be
// recorded by RecordManagers.
func (a *Applied) Hold(kind schema.GroupKind, desired, observed *unstructured.Unstructured, now time.Time) bool {
	reverts := a.current && a.uid == observed.GetUID()
	if a.contest == nil && (!reverts || manifest.Equal(desired, observed)) {
		return false
	}
	if a.contest == nil {
		a.contest = &contest{}
	}
	for _, path := range a.contest.update(now, longestHold(kind), manifest.Differences(desired, observed, maxContested), reverts) {
		manifest.Take(desired, observed, path)
	}
	return a.contest.lacksManager()
}

// RecordManagers records the field managers of the contested fields of an object, which is read with them.
func (a *Applied) RecordManagers(current *unstructured.Unstructured) {
	a.contest.recordManagers(current)
}

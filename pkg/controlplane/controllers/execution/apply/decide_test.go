package apply

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/karmada-toolkit/karmada/pkg/controlplane/controllers/execution/member"
)

func TestDecide(t *testing.T) {
	now := time.Unix(1000, 0)
	applied := func(version string, hash uint64) Applied {
		return Applied{current: true, uid: "u", version: version, hash: hash, at: now}
	}
	old := applied("5", 1)
	old.at = now.Add(-time.Minute)
	outdated := applied("5", 1)
	outdated.current = false
	seen := func(uid types.UID, version string, hash uint64) *member.Snapshot {
		return &member.Snapshot{UID: uid, Version: version, Hash: hash}
	}
	for _, tc := range []struct {
		name           string
		applied        Applied
		snapshot       *member.Snapshot
		synced, before bool
		deleted        types.UID
		want           Action
	}{
		{"a new object is made, whatever is known of the member", Applied{}, nil, false, false, "", ActionCreate},
		{"one that an earlier process may have made is waited for", Applied{}, nil, false, true, "", ActionWait},
		{"and made when it is not there", Applied{}, nil, true, true, "", ActionCreate},
		{"one that exists is read, not made again", Unknown(true), nil, true, true, "", ActionRead},
		{"one that is seen is compared", Applied{}, seen("u", "5", 1), false, true, "", ActionCompare},
		{"one that was just applied is not there yet", applied("5", 1), nil, true, true, "", ActionNone},
		{"one that was applied before a new look at the member is left alone", old, nil, false, true, "", ActionNone},
		{"one that was applied long ago and is not there is read", old, nil, true, true, "", ActionRead},
		{"one that was seen to go is made", applied("5", 1), nil, true, true, "u", ActionCreate},
		{"one whose predecessor went is left alone", applied("5", 1), nil, true, true, "v", ActionNone},
		{"a look that is behind does not count", applied("5", 1), seen("u", "4", 2), true, true, "", ActionNone},
		{"the object as applied is left alone", applied("5", 1), seen("u", "5", 1), true, true, "", ActionNone},
		{"so is one with another status", applied("5", 1), seen("u", "9", 1), true, true, "", ActionNone},
		{"another content is compared", applied("5", 1), seen("u", "9", 2), true, true, "", ActionCompare},
		{"another object is compared", applied("5", 1), seen("v", "9", 1), true, true, "", ActionCompare},
		{"a change of the manifest is compared", outdated, seen("u", "6", 1), true, true, "", ActionCompare},
		{"unless the look is behind", outdated, seen("u", "4", 1), true, true, "", ActionRead},
		{"a change of the manifest of one that is not there yet reads it", outdated, nil, true, true, "", ActionRead},
		{"or makes it when it was seen to go", outdated, nil, true, true, "u", ActionCreate},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, _ := Decide(Facts{
				Applied: tc.applied, View: member.View{Snapshot: tc.snapshot, Synced: tc.synced, Started: now},
				Deleted: tc.deleted != "" && tc.deleted == tc.applied.UID(), Preexisting: tc.before, Now: now,
			})
			if got != tc.want {
				t.Errorf("got %d, want %d", got, tc.want)
			}
		})
	}
}

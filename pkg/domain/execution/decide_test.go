package execution

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
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
	observed := func(uid types.UID, version string, hash uint64) *Snapshot {
		return &Snapshot{UID: uid, Version: version, Hash: hash}
	}
	for _, tc := range []struct {
		name           string
		applied        Applied
		snapshot       *Snapshot
		synced, before bool
		upTo           string
		want           Action
	}{
		{"never written: create, synced or not", Applied{}, nil, false, false, "", ActionCreate},
		{"created by an earlier process perhaps, not synced: wait", Applied{}, nil, false, true, "", ActionWait},
		{"created by an earlier process perhaps, synced and absent: create", Applied{}, nil, true, true, "", ActionCreate},
		{"exists, not observed: read", Unknown(true), nil, true, true, "", ActionRead},
		{"never written, observed: compare", Applied{}, observed("u", "5", 1), false, true, "", ActionCompare},
		{"just applied, not observed yet: none", applied("5", 1), nil, true, true, "", ActionNone},
		{"applied long ago, not synced again: none", old, nil, false, true, "", ActionNone},
		{"applied long ago, synced and absent: read", old, nil, true, true, "", ActionRead},
		{"applied, observed up to its version, absent: create", applied("5", 1), nil, true, true, "5", ActionCreate},
		{"just applied, observed up to an earlier version: none", applied("5", 1), nil, true, true, "4", ActionNone},
		{"just applied, versions that cannot be compared: none", applied("x", 1), nil, true, true, "5", ActionNone},
		{"applied, an older version observed: none", applied("5", 1), observed("u", "4", 2), true, true, "", ActionNone},
		{"applied long ago, an older version observed: read", old, observed("u", "4", 1), true, true, "", ActionRead},
		{"applied long ago, an older object with another UID observed: read", old, observed("v", "4", 1), true, true, "", ActionRead},
		{"applied, observed as applied: none", applied("5", 1), observed("u", "5", 1), true, true, "", ActionNone},
		{"applied, another status observed: none", applied("5", 1), observed("u", "9", 1), true, true, "", ActionNone},
		{"applied, another content observed: compare", applied("5", 1), observed("u", "9", 2), true, true, "", ActionCompare},
		{"applied, an object with another UID observed: compare", applied("5", 1), observed("v", "9", 1), true, true, "", ActionCompare},
		{"another manifest: compare", outdated, observed("u", "6", 1), true, true, "", ActionCompare},
		{"another manifest, an older version observed: read", outdated, observed("u", "4", 1), true, true, "", ActionRead},
		{"another manifest, not observed: read", outdated, nil, true, true, "", ActionRead},
		{"another manifest, observed up to a later version, absent: create", outdated, nil, true, true, "10", ActionCreate},
		{"another manifest, observed up to an earlier version: read", outdated, nil, true, true, "4", ActionRead},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, _ := Decide(Facts{
				Applied: tc.applied, View: View{Snapshot: tc.snapshot, Synced: tc.synced, Version: tc.upTo, Started: now}, Preexisting: tc.before, Now: now,
			})
			if got != tc.want {
				t.Errorf("got %d, want %d", got, tc.want)
			}
		})
	}
}

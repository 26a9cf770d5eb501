package local

import (
	"slices"
	"strings"
	"testing"
)

func TestChoosePull(t *testing.T) {
	tests := []struct {
		name    string
		members []string
		pull    []string
		before  int
		n       int
		want    []string
		err     string
	}{
		{"the last of a new federation", []string{"member1", "member2", "member3"}, nil, 0, 1, []string{"member3"}, ""},
		{"all of them", []string{"member1", "member2"}, nil, 0, 2, []string{"member1", "member2"}, ""},
		{"as many as there are", []string{"member1", "member2"}, []string{"member2"}, 2, 1, []string{"member2"}, ""},
		{"one more that is new", []string{"member1", "member2", "member3"}, []string{"member2"}, 2, 2, []string{"member2", "member3"}, ""},
		{"members that are pushed to stay so", []string{"member1", "member2"}, nil, 2, 1, nil, "--members 3"},
		{"more than there are", []string{"member1"}, nil, 0, 2, nil, "only 1 members"},
		{"fewer than there were", []string{"member1", "member2"}, []string{"member2"}, 2, 0, nil, "karmadactl local down --name f --member member2"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			f := &Federation{Name: "f", Members: tt.members, Pull: tt.pull}
			err := f.choosePull(testDeps(), tt.n, tt.before)
			switch {
			case tt.err != "":
				if err == nil || !strings.Contains(err.Error(), tt.err) {
					t.Errorf("got %v, want %q", err, tt.err)
				}
			case err != nil:
				t.Error(err)
			case !slices.Equal(f.Pull, tt.want):
				t.Errorf("pull: %v, want %v", f.Pull, tt.want)
			}
		})
	}
}

func TestProcessNames_AgentsFollowTheirMembers(t *testing.T) {
	f := &Federation{Members: []string{"member1", "member2"}, Pull: []string{"member1"}}
	want := []string{controlPlane, rolesProcess, "member1", "member1-agent", "member2"}
	if got := f.processNames(); !slices.Equal(got, want) {
		t.Errorf("got %v", got)
	}
}

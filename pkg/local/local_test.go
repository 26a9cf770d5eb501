package local

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/karmada-toolkit/karmada/internal/progress"
	"github.com/karmada-toolkit/karmada/pkg/local/federation"
	"github.com/karmada-toolkit/karmada/pkg/local/kindcluster"
	"github.com/karmada-toolkit/karmada/pkg/local/process"
)

func testDeps() Deps {
	return Deps{Program: "karmadactl", Getenv: func(string) string { return "" }, Now: time.Now, Progress: progress.Discard{}}
}

// asBefore is a request that changes nothing.
func asBefore() process.Request { return process.Request{Nodes: federation.NodeSpec{Count: -1}} }

func TestPrepare(t *testing.T) {
	root := t.TempDir()
	f, err := prepare(testDeps(), UpRequest{Root: root, Name: "a", Members: -1, Process: asBefore()})
	if err != nil {
		t.Fatal(err)
	}
	if len(f.Members) != defaultMembers || f.NodeSpec.Count != defaultNodes {
		t.Errorf("a new federation has %d members and %d nodes", len(f.Members), f.NodeSpec.Count)
	}
	if err := f.Save(); err != nil {
		t.Fatal(err)
	}
	again, err := prepare(testDeps(), UpRequest{Root: root, Name: "a", Members: 3, Process: asBefore()})
	if err != nil || len(again.Members) != 3 || again.NodeSpec.Count != defaultNodes {
		t.Errorf("growing: %+v, %v", again, err)
	}
	for _, bad := range []UpRequest{
		{Root: root, Name: "Not A Name"},
		{Root: root, Name: "a", Members: maxMembers + 1},
	} {
		if _, err := prepare(testDeps(), bad); err == nil {
			t.Errorf("%+v is accepted", bad)
		}
	}
}

func TestCheckRuntime(t *testing.T) {
	processes, kind := federation.New("", "f", "", time.Time{}), federation.New("", "f", RuntimeKind, time.Time{})
	for name, tc := range map[string]struct {
		f       *Federation
		request UpRequest
		want    string
	}{
		"as before":                     {processes, UpRequest{Process: asBefore()}, ""},
		"another runtime":               {processes, UpRequest{Runtime: RuntimeKind, Process: asBefore()}, "--purge"},
		"an image for processes":        {processes, UpRequest{Kind: kindcluster.Request{Image: "a.tar"}, Process: asBefore()}, "--runtime kind"},
		"simulated nodes of containers": {kind, UpRequest{Process: process.Request{Nodes: federation.NodeSpec{Count: 2}}}, "--nodes"},
		"kind again":                    {kind, UpRequest{Runtime: RuntimeKind, Process: asBefore()}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			err := checkRuntime(tc.f, tc.request)
			if (err == nil) != (tc.want == "") || err != nil && !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v", err)
			}
		})
	}
	if err := validateRuntime("docker"); err == nil || !strings.Contains(err.Error(), "process, kind") {
		t.Errorf("an unknown runtime: %v", err)
	}
}

func TestCheckRemoval(t *testing.T) {
	f := federation.New("", "f", "", time.Time{})
	f.Members = []string{"member1", "member2"}
	if _, err := checkRemoval(testDeps(), f, []string{"member2"}); err != nil {
		t.Error(err)
	}
	if _, err := checkRemoval(testDeps(), f, []string{"member3"}); err == nil || !strings.Contains(err.Error(), "it has member1, member2") {
		t.Errorf("an unknown member: %v", err)
	}
	f.Runtime = RuntimeKind
	if _, err := checkRemoval(testDeps(), f, []string{"member2"}); err == nil || !strings.Contains(err.Error(), "karmadactl unjoin") {
		t.Errorf("a kind cluster: %v", err)
	}
}

func TestRemoveMembers_NeedsTheControlPlane(t *testing.T) {
	root := t.TempDir()
	f := federation.New(root, "f", "", time.Now())
	f.Members = []string{"member1"}
	if err := f.Save(); err != nil {
		t.Fatal(err)
	}
	err := RemoveMembers(t.Context(), testDeps(), root, "f", []string{"member1"})
	if err == nil || !strings.Contains(err.Error(), "karmadactl local up --name f --dir "+root) {
		t.Errorf("got %v", err)
	}
	if again, err := Load(root, "f"); err != nil || !slices.Equal(again.Members, []string{"member1"}) {
		t.Errorf("the member is gone: %v, %v", again, err)
	}
}

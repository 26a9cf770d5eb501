package federation

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

const down = "karmadactl local down --name f"

func TestGrow(t *testing.T) {
	f := &Federation{Name: "f"}
	if err := f.Grow(2, down); err != nil || !slices.Equal(f.Members, []string{"member1", "member2"}) {
		t.Fatalf("two members: %v, %v", f.Members, err)
	}
	if err := f.Grow(3, down); err != nil || !slices.Equal(f.Members, []string{"member1", "member2", "member3"}) {
		t.Fatalf("three members: %v, %v", f.Members, err)
	}
	if err := f.Grow(1, down); err == nil || !strings.Contains(err.Error(), "karmadactl local down --name f --member member2,member3") {
		t.Errorf("shrinking is refused with the next step, got %v", err)
	}
}

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
			err := f.ChoosePull(tt.n, tt.before, down)
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

func TestProcesses_AgentsFollowTheirMembers(t *testing.T) {
	f := &Federation{Members: []string{"member1", "member2"}, Pull: []string{"member1"}}
	want := []string{ControlPlane, Roles, "member1", "member1-agent", "member2"}
	if got := f.Processes(); !slices.Equal(got, want) {
		t.Errorf("got %v", got)
	}
}

func TestLoad_MissingOrDamaged(t *testing.T) {
	root := t.TempDir()
	if _, err := Load(root, "a"); !errors.Is(err, ErrNotFound) {
		t.Errorf("a missing federation: %v", err)
	}
	if err := os.MkdirAll(filepath.Join(root, "a"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(root, "a", stateFile), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Load(root, "a"); err == nil || !strings.Contains(err.Error(), "damaged") {
		t.Errorf("a damaged federation: %v", err)
	}
	if names, err := List(root); err != nil || !slices.Equal(names, []string{"a"}) {
		t.Errorf("List() = %v, %v", names, err)
	}
}

func TestDefaultRoot_FollowsXDG(t *testing.T) {
	got, err := DefaultRoot(func(string) string { return "/state" })
	if err != nil || got != "/state/karmada/local" {
		t.Errorf("got %q, %v", got, err)
	}
	got, err = DefaultRoot(func(string) string { return "relative" })
	if err != nil || !strings.HasSuffix(got, ".local/state/karmada/local") {
		t.Errorf("a relative directory does not count: %q, %v", got, err)
	}
}

func TestLock_ExcludesOthers(t *testing.T) {
	dir := Dir(t.TempDir())
	unlock, err := dir.Lock()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := dir.Lock(); !errors.Is(err, errLocked) {
		t.Errorf("a second lock: %v", err)
	}
	unlock()
	again, err := dir.Lock()
	if err != nil {
		t.Fatal(err)
	}
	again()
}

func TestChoosePorts_AreKeptAndDiffer(t *testing.T) {
	f := New(t.TempDir(), "f", "", time.Now())
	names := []string{PortAggregated, PortWebhook, PortHealth, PortMetrics}
	if err := f.ChoosePorts(names...); err != nil {
		t.Fatal(err)
	}
	seen := map[int]bool{0: true}
	before := map[string]int{}
	for _, name := range names {
		port := f.Port(name)
		if seen[port] {
			t.Errorf("port %d is given twice", port)
		}
		seen[port], before[name] = true, port
	}
	if err := f.ChoosePorts(names...); err != nil {
		t.Fatal(err)
	}
	for name, port := range before {
		if f.Port(name) != port {
			t.Errorf("%s moved from %d to %d", name, port, f.Port(name))
		}
	}
}

func TestCommand_NamesTheFederation(t *testing.T) {
	d := Deps{Program: "karmadactl", Getenv: func(string) string { return "/state" }}
	for _, tt := range []struct{ name, dir, want string }{
		{"default", "/state/karmada/local/default", "karmadactl local up"},
		{"ux", "/state/karmada/local/ux", "karmadactl local up --name ux"},
		{"ux", "/tmp/ux", "karmadactl local up --name ux --dir /tmp"},
	} {
		if got := (&Federation{Name: tt.name, dir: Dir(tt.dir)}).Command(d, "up"); got != tt.want {
			t.Errorf("got %q, want %q", got, tt.want)
		}
	}
}

func TestRemoveContext_TakesClusterAndUserAlong(t *testing.T) {
	all := clientcmdapi.NewConfig()
	for _, name := range []string{"member1", "member2"} {
		all.Contexts[name] = &clientcmdapi.Context{Cluster: name + "-c", AuthInfo: name + "-u"}
		all.Clusters[name+"-c"], all.AuthInfos[name+"-u"] = clientcmdapi.NewCluster(), clientcmdapi.NewAuthInfo()
	}
	removeContext(all, "member1")
	removeContext(all, "missing")
	if len(all.Contexts) != 1 || len(all.Clusters) != 1 || len(all.AuthInfos) != 1 || all.Contexts["member2"] == nil {
		t.Errorf("left: %+v", all)
	}
}

// The record that the version before this one wrote.
const recordedBefore = `{
  "name": "f",
  "members": ["member1", "member2"],
  "pull": ["member2"],
  "nodes": 2,
  "nodeCPU": "4",
  "nodePods": 10,
  "set": ["scheduler.scheduler-name=x"],
  "featureGates": "Failover=true",
  "roleGates": {"scheduler": "Failover=true"},
  "ports": {"webhook": 7},
  "created": "2026-01-01T00:00:00Z"
}`

func TestLoad_RecordOfAnEarlierVersion(t *testing.T) {
	root := t.TempDir()
	dir := Dir(filepath.Join(root, "f"))
	if err := errors.Join(os.Mkdir(string(dir), 0o700), os.WriteFile(dir.file(stateFile), []byte(recordedBefore), 0o600)); err != nil {
		t.Fatal(err)
	}
	f, err := Load(root, "f")
	if err != nil {
		t.Fatal(err)
	}
	want := NodeSpec{Count: 2, CPU: "4", Pods: 10}
	if f.NodeSpec != want || f.Runtime != RuntimeProcess || f.Port(PortWebhook) != 7 || !f.Pulls("member2") ||
		!slices.Equal(f.Flags, []string{"scheduler.scheduler-name=x"}) || f.FeatureGates != "Failover=true" || f.RoleGates["scheduler"] != "Failover=true" {
		t.Errorf("got %+v", f)
	}
	if err := f.Save(); err != nil {
		t.Fatal(err)
	}
	saved, err := os.ReadFile(dir.file(stateFile))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`"nodes": 2`, `"nodeCPU": "4"`, `"set": [`, `"featureGates": "Failover=true"`, `"roleGates": {`} {
		if !strings.Contains(string(saved), want) {
			t.Errorf("the record has no %s:\n%s", want, saved)
		}
	}
}

// Settings that are tried are in the record from Keep on.
func TestTry_SettingsAreWrittenByKeep(t *testing.T) {
	root := t.TempDir()
	f := New(root, "f", "", time.Time{})
	f.Settings = Settings{Flags: []string{"agent.v=1"}}
	Try(f, Settings{Flags: []string{"agent.v=2"}, FeatureGates: "Failover=true"})
	stored := func() Settings {
		t.Helper()
		again, err := Load(root, "f")
		if err != nil {
			t.Fatal(err)
		}
		return again.Settings
	}
	if err := f.Save(); err != nil {
		t.Fatal(err)
	}
	if got := stored(); len(got.Flags) != 1 || got.Flags[0] != "agent.v=1" || got.FeatureGates != "" {
		t.Errorf("before: %+v", got)
	}
	if err := Keep(f); err != nil {
		t.Fatal(err)
	}
	if got := stored(); len(got.Flags) != 1 || got.Flags[0] != "agent.v=2" || got.FeatureGates != "Failover=true" {
		t.Errorf("after: %+v", got)
	}
}

func TestGrow_UsesFreeNames(t *testing.T) {
	f := New(t.TempDir(), "f", "", time.Time{})
	f.Members = []string{"member1", "member3"}
	if err := f.Grow(4, ""); err != nil {
		t.Fatal(err)
	}
	if want := []string{"member1", "member3", "member2", "member4"}; !slices.Equal(f.Members, want) {
		t.Errorf("got %q, want %q", f.Members, want)
	}
	if err := f.ChoosePull(1, 2, ""); err != nil || !f.Pulls("member4") {
		t.Errorf("in Pull mode are %q, %v", f.Pull, err)
	}
}

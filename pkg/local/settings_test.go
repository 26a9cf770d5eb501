package local

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

func testCatalogue() catalogue {
	return catalogue{
		"karmada":            {Flags: []string{"kube-api-qps", "kubeconfig"}},
		"scheduler":          {Flags: []string{"scheduler-name"}, Gates: []string{"Failover", "PriorityBasedScheduling"}},
		"controller-manager": {Flags: []string{"cluster-failure-threshold"}, Gates: []string{"Failover"}},
		"agent":              {Flags: []string{"cluster-name", "kube-api-qps"}, Gates: []string{"MultiClusterService"}},
	}
}

func TestMergeSettings(t *testing.T) {
	tests := []struct {
		name            string
		before, changes []string
		want            []string
		err             string
	}{
		{"new ones are sorted", nil, []string{"scheduler.b=1", "agent.a=2"}, []string{"agent.a=2", "scheduler.b=1"}, ""},
		{"the last value counts", []string{"agent.a=1"}, []string{"agent.a=2", "agent.a=3"}, []string{"agent.a=3"}, ""},
		{"a default comes back", []string{"agent.a=1", "agent.b=1"}, []string{"agent.a-"}, []string{"agent.b=1"}, ""},
		{"values have any character", nil, []string{"agent.a=x=-,."}, []string{"agent.a=x=-,."}, ""},
		{"dashes of a flag do not count", nil, []string{"agent.--a=1"}, []string{"agent.a=1"}, ""},
		{"an empty value is a value", nil, []string{"agent.a="}, []string{"agent.a="}, ""},
		{"no value", nil, []string{"agent.a"}, nil, "ROLE.FLAG=VALUE"},
		{"no role", nil, []string{"a=1"}, nil, "ROLE.FLAG=VALUE"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := mergeSettings(tt.before, tt.changes)
			if tt.err != "" {
				if err == nil || !strings.Contains(err.Error(), tt.err) {
					t.Errorf("got %v, want %q", err, tt.err)
				}
				return
			}
			if diff := cmp.Diff(tt.want, got); err != nil || diff != "" {
				t.Errorf("%v (-want +got):\n%s", err, diff)
			}
		})
	}
}

func TestCatalogue_Check(t *testing.T) {
	reserved := reservedFlags(
		[]string{"all-in-one", "--kubeconfig=/k", "--controller-manager.cluster-failure-threshold=10s"},
		[]string{"agent", "--cluster-name=member1"})
	tests := []struct {
		name     string
		settings []string
		gates    string
		want     []string // empty: accepted
	}{
		{"flags that exist", []string{"scheduler.scheduler-name=x", "karmada.kube-api-qps=5", "agent.kube-api-qps=5", "controller-manager.cluster-failure-threshold=1s"}, "Failover=true, MultiClusterService=false", nil},
		{"an unknown role", []string{"schduler.scheduler-name=x"}, "", []string{`no role "schduler"`, "agent, controller-manager, karmada, scheduler"}},
		{"an unknown flag", []string{"scheduler.name=x"}, "", []string{`no flag "name"`, "scheduler-name"}},
		{"a shared flag", []string{"scheduler.kube-api-qps=5"}, "", []string{"--set karmada.kube-api-qps=5"}},
		{"a flag that connects the parts", []string{"karmada.kubeconfig=/x", "agent.cluster-name=x"}, "", []string{"karmada.kubeconfig", "agent.cluster-name", "sets this flag itself"}},
		{"an unknown gate", nil, "Failovr=true", []string{`no gate "Failovr"`, "Failover, MultiClusterService, PriorityBasedScheduling"}},
		{"a gate without value", nil, "Failover", []string{"NAME=true"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			err := testCatalogue().check(tt.settings, tt.gates, reserved)
			if len(tt.want) == 0 && err != nil {
				t.Errorf("got %v", err)
			}
			for _, want := range tt.want {
				if err == nil || !strings.Contains(err.Error(), want) {
					t.Errorf("got %v, want %q", err, want)
				}
			}
		})
	}
}

func TestSettingArgs_GoToTheProcessOfTheirRole(t *testing.T) {
	f := &Federation{
		Set:       []string{"agent.kube-api-qps=5", "karmada.kube-api-qps=7", "scheduler.scheduler-name=x"},
		RoleGates: testCatalogue().gatesOf("Failover=true,MultiClusterService=true"),
	}
	want := []string{"--controller-manager.feature-gates=Failover=true", "--scheduler.feature-gates=Failover=true", "--kube-api-qps=7", "--scheduler.scheduler-name=x"}
	if diff := cmp.Diff(want, f.settingArgs(false)); diff != "" {
		t.Errorf("roles (-want +got):\n%s", diff)
	}
	want = []string{"--feature-gates=MultiClusterService=true", "--kube-api-qps=5"}
	if diff := cmp.Diff(want, f.settingArgs(true)); diff != "" {
		t.Errorf("agents (-want +got):\n%s", diff)
	}
}

func TestNodeArgs_KeepTheSizes(t *testing.T) {
	f := &Federation{Nodes: 2}
	if err := f.resizeNodes(UpRequest{NodeCPU: "4", NodePods: 10}); err != nil {
		t.Fatal(err)
	}
	if err := f.resizeNodes(UpRequest{NodeMemory: "8Gi"}); err != nil {
		t.Fatal(err)
	}
	want := []string{"--nodes", "2", "--node-cpu", "4", "--node-memory", "8Gi", "--node-pods", "10"}
	if diff := cmp.Diff(want, f.nodeArgs()); diff != "" {
		t.Errorf("arguments (-want +got):\n%s", diff)
	}
	for _, bad := range []UpRequest{{NodeCPU: "many"}, {NodeMemory: "-1"}, {NodeCPU: "0"}} {
		if err := f.resizeNodes(bad); err == nil {
			t.Errorf("%+v is accepted", bad)
		}
	}
}

func TestRunsWith(t *testing.T) {
	args := []string{"--a", "1"}
	for _, tt := range []struct {
		command []string
		want    bool
	}{{nil, true}, {[]string{"/bin/x", "--a", "1"}, true}, {[]string{"/bin/x", "--a", "2"}, false}, {[]string{"/bin/x"}, false}} {
		if got := (record{Command: tt.command}).runsWith(args); got != tt.want {
			t.Errorf("%v: got %t", tt.command, got)
		}
	}
}

func TestCommand_NamesTheFederation(t *testing.T) {
	d := testDeps()
	d.Getenv = func(string) string { return "/state" }
	for _, tt := range []struct{ name, dir, want string }{
		{"default", "/state/karmada/local/default", "karmadactl local up"},
		{"ux", "/state/karmada/local/ux", "karmadactl local up --name ux"},
		{"ux", "/tmp/ux", "karmadactl local up --name ux --dir /tmp"},
	} {
		if got := (&Federation{Name: tt.name, dir: tt.dir}).command(d, "up"); got != tt.want {
			t.Errorf("got %q, want %q", got, tt.want)
		}
	}
}

func TestCheckRemoval(t *testing.T) {
	f := &Federation{Name: "f", Members: []string{"member1", "member2"}}
	if err := f.checkRemoval(testDeps(), []string{"member2"}); err != nil {
		t.Error(err)
	}
	if err := f.checkRemoval(testDeps(), []string{"member3"}); err == nil || !strings.Contains(err.Error(), "it has member1, member2") {
		t.Errorf("an unknown member: %v", err)
	}
	f.Kind = &kindState{}
	if err := f.checkRemoval(testDeps(), []string{"member2"}); err == nil || !strings.Contains(err.Error(), "karmadactl unjoin") {
		t.Errorf("a kind cluster: %v", err)
	}
}

func TestRemoveMembers_NeedsTheControlPlane(t *testing.T) {
	f := &Federation{Name: "f", Members: []string{"member1"}}
	root := t.TempDir()
	f.dir = root + "/f"
	if err := f.save(); err != nil {
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

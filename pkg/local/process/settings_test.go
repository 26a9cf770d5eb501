package process

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/karmada-toolkit/karmada/pkg/local/federation"
)

func testCatalogue() catalogue {
	return catalogue{
		"karmada":            {Flags: []string{"kube-api-qps", "kubeconfig"}},
		"scheduler":          {Flags: []string{"scheduler-name"}, Gates: []string{"Failover", "PriorityBasedScheduling"}},
		"controller-manager": {Flags: []string{"cluster-failure-threshold"}, Gates: []string{"Failover"}},
		"agent":              {Flags: []string{"cluster-name", "kube-api-qps"}, Gates: []string{"MultiClusterService"}},

		"scheduler-estimator": {Flags: []string{"parallelism", "server-port"}, Gates: []string{"ResourceQuotaEstimate"}},
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
		[]string{"agent", "--cluster-name=member1"},
		[]string{"scheduler-estimator", "--server-port=1"})
	tests := []struct {
		name     string
		settings []string
		gates    string
		want     []string // empty: accepted
	}{
		{"flags that exist", []string{"scheduler.scheduler-name=x", "karmada.kube-api-qps=5", "agent.kube-api-qps=5", "controller-manager.cluster-failure-threshold=1s"}, "Failover=true, MultiClusterService=false", nil},
		{"an unknown role", []string{"schduler.scheduler-name=x"}, "", []string{`no role "schduler"`, "agent, controller-manager, karmada, scheduler, scheduler-estimator"}},
		{"an unknown flag", []string{"scheduler.name=x"}, "", []string{`no flag "name"`, "scheduler-name"}},
		{"a shared flag", []string{"scheduler.kube-api-qps=5"}, "", []string{"--set karmada.kube-api-qps=5"}},
		{"a flag that connects the parts", []string{"karmada.kubeconfig=/x", "agent.cluster-name=x", "scheduler-estimator.server-port=1"}, "", []string{"karmada.kubeconfig", "agent.cluster-name", "scheduler-estimator.server-port", "sets this flag itself"}},
		{"an unknown gate", nil, "Failovr=true", []string{`no gate "Failovr"`, "Failover, MultiClusterService, PriorityBasedScheduling, ResourceQuotaEstimate"}},
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
	of := federation.Settings{
		Flags:     []string{"agent.kube-api-qps=5", "karmada.kube-api-qps=7", "scheduler-estimator.parallelism=4", "scheduler.scheduler-name=x"},
		RoleGates: testCatalogue().gatesOf("Failover=true,MultiClusterService=true,ResourceQuotaEstimate=true"),
	}
	want := []string{"--controller-manager.feature-gates=Failover=true", "--scheduler.feature-gates=Failover=true", "--kube-api-qps=7", "--scheduler.scheduler-name=x"}
	if diff := cmp.Diff(want, settingArgs(of, federation.Roles)); diff != "" {
		t.Errorf("roles (-want +got):\n%s", diff)
	}
	want = []string{"--feature-gates=MultiClusterService=true", "--kube-api-qps=5"}
	if diff := cmp.Diff(want, settingArgs(of, agentRole)); diff != "" {
		t.Errorf("agents (-want +got):\n%s", diff)
	}
	want = []string{"--feature-gates=ResourceQuotaEstimate=true", "--parallelism=4"}
	if diff := cmp.Diff(want, settingArgs(of, estimatorRole)); diff != "" {
		t.Errorf("estimators (-want +got):\n%s", diff)
	}
}

func TestNodeArgs_KeepTheSizes(t *testing.T) {
	nodes := federation.NodeSpec{Count: 2}
	for _, change := range []federation.NodeSpec{{Count: -1, CPU: "4", Pods: 10}, {Count: -1, Memory: "8Gi"}} {
		var err error
		if nodes, err = (Request{Nodes: change}).resize(nodes); err != nil {
			t.Fatal(err)
		}
	}
	want := []string{"--nodes", "2", "--node-cpu", "4", "--node-memory", "8Gi", "--node-pods", "10"}
	if diff := cmp.Diff(want, nodeArgs(nodes)); diff != "" {
		t.Errorf("arguments (-want +got):\n%s", diff)
	}
	for _, bad := range []federation.NodeSpec{{CPU: "many"}, {Memory: "-1"}, {CPU: "0"}} {
		if _, err := (Request{Nodes: bad}).resize(nodes); err == nil {
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

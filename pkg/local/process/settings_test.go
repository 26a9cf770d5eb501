package process

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/karmada-toolkit/karmada/pkg/local/federation"
)

func TestRoleSettings_GoToTheProcessOfTheirRole(t *testing.T) {
	of := federation.Settings{
		Flags:     []string{"agent.kube-api-qps=5", "karmada.kube-api-qps=7", "scheduler-estimator.parallelism=4", "scheduler.scheduler-name=x"},
		RoleGates: map[string]string{"agent": "A=true", "controller-manager": "Failover=true", "scheduler": "Failover=true"},
	}
	want := []string{"--controller-manager.feature-gates=Failover=true", "--kube-api-qps=7", "--scheduler.feature-gates=Failover=true", "--scheduler.scheduler-name=x"}
	if diff := cmp.Diff(want, roleSettings(of)); diff != "" {
		t.Errorf("roles (-want +got):\n%s", diff)
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

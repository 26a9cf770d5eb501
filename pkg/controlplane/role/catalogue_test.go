package role

import (
	"bytes"
	"encoding/json"
	"slices"
	"testing"
)

// listFlags returns what a command line prints.
func listFlags(t *testing.T, args ...string) map[string]roleFlags {
	t.Helper()
	var out bytes.Buffer
	cmd := NewCommand(Table(), "karmada")
	cmd.SetArgs(args)
	cmd.SetOut(&out)
	if err := cmd.Execute(); err != nil {
		t.Fatal(err)
	}
	got := map[string]roleFlags{}
	if err := json.Unmarshal(out.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	return got
}

// Programs of their own have the flags that a process with all roles has once.
func TestFlagsCommand_Separate(t *testing.T) {
	got := listFlags(t, "flags", "--separate")
	for _, role := range podRoles() {
		if !slices.Contains(got[role].Flags, "metrics-bind-address") || !slices.Contains(got[role].Flags, "feature-gates") {
			t.Errorf("%s has only the flags %v", role, got[role].Flags)
		}
	}
	if got[sharedFlags].Flags != nil || got["metrics-adapter"].Flags != nil {
		t.Error("a role is listed that has no pod")
	}
}

// A value is parsed by the type of its flag.
func TestFlagsCommand_ChecksValues(t *testing.T) {
	for _, tt := range []struct {
		args []string
		bad  string // empty: accepted
	}{
		{[]string{"--check=controller-manager.concurrent-work-syncs=10", "--check=karmada.v=4", "--check=agent.kube-api-qps=5"}, ""},
		{[]string{"--check=controller-manager.concurrent-work-syncs=abc"}, "controller-manager.concurrent-work-syncs=abc"},
		{[]string{"--check=controller-manager.cluster-failure-threshold=10"}, "controller-manager.cluster-failure-threshold=10"},
		{[]string{"--check=agent.kube-api-qps=fast"}, "agent.kube-api-qps=fast"},
		{[]string{"--separate", "--check=scheduler.kube-api-qps="}, "scheduler.kube-api-qps="},
	} {
		var out bytes.Buffer
		cmd := NewCommand(Table(), "karmada")
		cmd.SetArgs(append([]string{"flags"}, tt.args...))
		cmd.SetOut(&out)
		if err := cmd.Execute(); err != nil {
			t.Fatal(err)
		}
		got := map[string]string{}
		if err := json.Unmarshal(out.Bytes(), &got); err != nil {
			t.Fatal(err)
		}
		if _, found := got[tt.bad]; (tt.bad == "" && len(got) > 0) || (tt.bad != "" && !found) {
			t.Errorf("%v: got %v", tt.args, got)
		}
	}
}

func TestFlagsCommand_ListsWhatRolesTake(t *testing.T) {
	got := listFlags(t, "flags")
	// A setting of a role that no process runs would be passed to the control plane's, which would not start.
	if got["descheduler"].Flags != nil {
		t.Error("a role is listed that local federations do not run")
	}
	for role, want := range map[string]roleFlags{
		"karmada":              {Flags: []string{"kubeconfig", "kube-api-qps", "v"}},
		"scheduler":            {Flags: []string{"scheduler-name", "feature-gates"}, Gates: []string{"PriorityBasedScheduling"}},
		"controller-manager":   {Flags: []string{"cluster-failure-threshold"}, Gates: []string{"Failover"}},
		"webhook":              {Flags: []string{"secure-port"}, Gates: []string{"MultiClusterService"}},
		"aggregated-apiserver": {Flags: []string{"etcd-servers"}, Gates: []string{"CustomizedClusterResourceModeling"}},
		"agent":                {Flags: []string{"cluster-name", "kube-api-qps"}, Gates: []string{"MultiClusterService"}},
		"search":               {Gates: []string{"AllAlpha", "AllBeta"}, KubernetesGates: []string{"APIServerIdentity", "MutatingAdmissionPolicy"}},
	} {
		for _, name := range want.Flags {
			if !slices.Contains(got[role].Flags, name) {
				t.Errorf("%s lacks flag %q: %v", role, name, got[role].Flags)
			}
		}
		for _, name := range want.Gates {
			if !slices.Contains(got[role].Gates, name) {
				t.Errorf("%s lacks gate %q: %v", role, name, got[role].Gates)
			}
		}
		for _, name := range want.KubernetesGates {
			if !slices.Contains(got[role].KubernetesGates, name) {
				t.Errorf("%s lacks gate %q of Kubernetes: %v", role, name, got[role].KubernetesGates)
			}
		}
	}
}

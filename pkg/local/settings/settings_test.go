package settings

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/karmada-toolkit/karmada/pkg/local/federation"
)

func testCatalogue() catalogue {
	return catalogue{
		"karmada":             {Flags: []string{"kube-api-qps", "kubeconfig"}},
		"scheduler":           {Flags: []string{"scheduler-name"}, Gates: []string{"Failover", "PriorityBasedScheduling"}},
		"controller-manager":  {Flags: []string{"cluster-failure-threshold"}, Gates: []string{"Failover"}},
		"agent":               {Flags: []string{"cluster-name", "kube-api-qps"}, Gates: []string{"MultiClusterService"}},
		"search":              {Gates: []string{"AllAlpha"}, KubernetesGates: []string{"WatchList"}},
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
	reserved := Reserved{}
	reserved.Add(federation.Roles, []string{"all-in-one", "--kubeconfig=/k", "--controller-manager.cluster-failure-threshold=10s"}, "cluster-failure-threshold")
	reserved.Add(AgentRole, []string{"agent", "--cluster-name=member1"})
	reserved.Add(EstimatorRole, []string{"scheduler-estimator", "--server-port=1"})
	tests := []struct {
		name     string
		settings []string
		gates    string
		want     []string // empty: accepted
	}{
		{"flags that exist", []string{"scheduler.scheduler-name=x", "karmada.kube-api-qps=5", "agent.kube-api-qps=5", "controller-manager.cluster-failure-threshold=1s"}, "Failover=true, MultiClusterService=false", nil},
		{"an unknown role", []string{"schduler.scheduler-name=x"}, "", []string{`no role "schduler"`, "agent, controller-manager, karmada, scheduler, scheduler-estimator, search"}},
		{"an unknown flag", []string{"scheduler.name=x"}, "", []string{`no flag "name"`, "scheduler-name"}},
		{"a shared flag", []string{"scheduler.kube-api-qps=5"}, "", []string{"--set karmada.kube-api-qps=5"}},
		{"a flag that connects the parts", []string{"karmada.kubeconfig=/x", "agent.cluster-name=x", "scheduler-estimator.server-port=1"}, "", []string{"karmada.kubeconfig", "agent.cluster-name", "scheduler-estimator.server-port", "sets this flag itself"}},
		{"a gate of Kubernetes", nil, "AllAlpha=true,WatchList=false", nil},
		{"an unknown gate", nil, "Failovr=true", []string{`no gate "Failovr"`, "AllAlpha, Failover, MultiClusterService, PriorityBasedScheduling, ResourceQuotaEstimate"}},
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

func TestArgs_AreThoseOfARole(t *testing.T) {
	of := federation.Settings{
		Flags:     []string{"agent.kube-api-qps=5", "karmada.kube-api-qps=7", "scheduler.scheduler-name=x"},
		RoleGates: testCatalogue().gatesOf("Failover=true,MultiClusterService=true"),
	}
	if diff := cmp.Diff([]string{"agent", "controller-manager", "karmada", "scheduler"}, Roles(of)); diff != "" {
		t.Errorf("roles (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"--feature-gates=Failover=true", "--scheduler-name=x"}, Args(of, "scheduler", "")); diff != "" {
		t.Errorf("scheduler (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"--scheduler.feature-gates=Failover=true", "--scheduler.scheduler-name=x"}, Args(of, "scheduler", "scheduler.")); diff != "" {
		t.Errorf("scheduler in a process with others (-want +got):\n%s", diff)
	}
}

// Where each role is a program of its own, a flag of all roles is set on each that has it, and each has its own value.
func TestMerge_SeparateRoles(t *testing.T) {
	c := catalogue{
		"scheduler":          {Flags: []string{"kube-api-qps", "kubeconfig"}},
		"controller-manager": {Flags: []string{"kube-api-qps"}, Gates: []string{"Failover"}},
		"webhook":            {Flags: []string{"secure-port"}},
		AgentRole:            {Flags: []string{"kube-api-qps"}},
	}
	layout := Layout{Separate: true, Reserved: Reserved{"scheduler.kubeconfig": true}}
	before := federation.Settings{Flags: []string{"agent.kube-api-qps=1"}, FeatureGates: "Failover=true"}
	got, err := Request{Set: []string{"karmada.kube-api-qps=5", "scheduler.kube-api-qps=6"}}.merge(before, c, layout)
	want := federation.Settings{
		Flags:        []string{"agent.kube-api-qps=1", "controller-manager.kube-api-qps=5", "scheduler.kube-api-qps=6"},
		FeatureGates: "Failover=true", RoleGates: map[string]string{"controller-manager": "Failover=true"},
	}
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	got, err = Request{Set: []string{"karmada.kube-api-qps-"}}.merge(got, c, layout)
	if diff := cmp.Diff([]string{"agent.kube-api-qps=1"}, got.Flags); err != nil || diff != "" {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	for setting, want := range map[string]string{
		"karmada.qps=1":               `no role of the control plane has a flag "qps"`,
		"karmada.kubeconfig=/x":       "sets this flag itself",
		"scheduler-estimator.qps=1":   `no role "scheduler-estimator"`,
		"controller-manager.qps-x":    "ROLE.FLAG=VALUE",
		"controller-manager.gates=no": `no flag "gates"`,
	} {
		if _, err := (Request{Set: []string{setting}}).merge(before, c, layout); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", setting, err)
		}
	}
}

func TestHint_NamesTheWayOut(t *testing.T) {
	stored := federation.Settings{Flags: []string{"agent.v=1", "scheduler.x=bad"}}
	got := Request{}.Hint(stored, "karmadactl local up")
	if want := `"karmadactl local up --set agent.v- --set scheduler.x-"`; !strings.Contains(got, want) {
		t.Errorf("stored settings: %q", got)
	}
	got = Request{Set: []string{"scheduler.x=bad"}}.Hint(stored, "karmadactl local up")
	if !strings.Contains(got, "not stored") || !strings.Contains(got, "--set agent.v-") || strings.Contains(got, "--set scheduler.x-") {
		t.Errorf("new settings: %q", got)
	}
	if got := (Request{}).Hint(federation.Settings{}, "karmadactl local up"); got != "" {
		t.Errorf("no settings: %q", got)
	}
}

func TestCatalogue_NamesWhatCanBeSet(t *testing.T) {
	c := catalogue{
		"agent":     {Flags: []string{"v", "kubeconfig"}, Gates: []string{"Failover", "B"}},
		"scheduler": {Flags: []string{"v"}, Gates: []string{"Failover"}},
	}
	flags, gates := c.names(Reserved{"agent.kubeconfig": true})
	if want := []string{"agent.v", "scheduler.v"}; !slices.Equal(flags, want) {
		t.Errorf("got %q, want %q", flags, want)
	}
	if want := []string{"B", "Failover"}; !slices.Equal(gates, want) {
		t.Errorf("got %q, want %q", gates, want)
	}
}

func TestWithGate(t *testing.T) {
	for _, tc := range []struct {
		before string
		value  bool
		want   string
	}{
		{"", true, "MultiClusterService=true"},
		{"Failover=true, MultiClusterService=false", true, "Failover=true,MultiClusterService=true"},
		{"MultiClusterService=true", false, "MultiClusterService=false"},
	} {
		if got := withGate(tc.before, servicesGate, tc.value); got != tc.want {
			t.Errorf("%q with %t is %q, want %q", tc.before, tc.value, got, tc.want)
		}
	}
}

package role

import (
	"bytes"
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/pflag"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/karmada-toolkit/karmada/pkg/init/components"
)

// fake is a role with a flag of its own and one that all roles have.
type fake struct{ port, address string }

func (f *fake) AddFlags(fs *pflag.FlagSet) {
	fs.StringVar(&f.port, "secure-port", "1", "")
	fs.StringVar(&f.address, "metrics-bind-address", ":1", "")
}

func (*fake) Validate() error { return nil }

func TestTable_NamesAreUniqueAndFlagsDoNotClash(t *testing.T) {
	seen := map[string]bool{}
	for _, r := range Table() {
		if seen[r.Name] {
			t.Errorf("role %q is there twice", r.Name)
		}
		seen[r.Name] = true
		single(r) // panics when two flags clash
	}
	for _, name := range allInOneRoles() {
		if !seen[name] {
			t.Errorf("all-in-one runs %q, which does not exist", name)
		}
	}
}

func TestNewCommand_LinkNamesARole(t *testing.T) {
	if got := NewCommand(Table(), "karmada-scheduler").Name(); got != "karmada-scheduler" {
		t.Errorf("a link to the scheduler is %q", got)
	}
	root := NewCommand(Table(), "karmada")
	for _, name := range []string{"all-in-one", "scheduler", "webhook", "controller-manager", "aggregated-apiserver", "version"} {
		if cmd, _, err := root.Find([]string{name}); err != nil || cmd.Name() != name {
			t.Errorf("command %q: %v", name, err)
		}
	}
}

func TestMain_RefusesArgumentsAndUnknownFlags(t *testing.T) {
	for _, args := range [][]string{{"karmada", "scheduler", "extra"}, {"karmada", "scheduler", "--no-such-flag"}, {"karmada", "nothing"}} {
		var out, err bytes.Buffer
		if code := Main(t.Context(), args, &out, &err); code != 1 || !strings.HasPrefix(err.String(), "error: ") {
			t.Errorf("%v: code %d, %q", args, code, err.String())
		}
	}
}

func TestBind_RoleKeepsItsFlagAndBothSeeTheValue(t *testing.T) {
	c, f := newCommon(Role{MetricsAddress: ":8080"}), &fake{}
	fs := pflag.NewFlagSet("", pflag.ContinueOnError)
	f.AddFlags(fs)
	takeOver := c.bind(fs)
	if err := fs.Parse([]string{"--metrics-bind-address=:9", "--kube-api-qps=7"}); err != nil {
		t.Fatal(err)
	}
	if err := takeOver(); err != nil {
		t.Fatal(err)
	}
	if f.address != ":9" || c.metricsAddress != ":9" {
		t.Errorf("the role sees %q, the start %q", f.address, c.metricsAddress)
	}
	if c.rateLimitedByServer {
		t.Error("a rate that was given does not count")
	}
}

func TestAllInOne_PartsHaveTheirFlagsInFront(t *testing.T) {
	f := &fake{}
	roles := []Role{{Name: "webhook", New: func() Instance {
		return &instance[*fake]{options: f, setup: func(context.Context, manager.Manager, *fake) error { return nil }}
	}}}
	fs, shared := pflag.NewFlagSet("", pflag.ContinueOnError), newCommon(Role{}).flags()
	take := addPrefixed(fs, shared, "webhook", roles[0].New())
	fs.AddFlagSet(shared)
	if err := fs.Parse([]string{"--webhook.secure-port=2", "--metrics-bind-address=:3"}); err != nil {
		t.Fatal(err)
	}
	if err := take(); err != nil {
		t.Fatal(err)
	}
	if f.port != "2" || f.address != ":3" {
		t.Errorf("the part got port %q and address %q", f.port, f.address)
	}
}

// The nodes of a member elect their leader in the member, where there may be no karmada-system.
func TestTable_LockNamespaces(t *testing.T) {
	for _, r := range Table() {
		want := "karmada-system"
		if r.Name == "cluster-problem-detector" {
			want = "kube-system"
		}
		if flag := newCommon(r).flags().Lookup("leader-elect-resource-namespace"); flag != nil && flag.DefValue != want {
			t.Errorf("%s elects in %s, want %s", r.Name, flag.DefValue, want)
		}
	}
}

// The pods of a compact installation start: the process takes their arguments, and those of roles that it shares are known.
func TestAllInOne_TakesTheArgumentsOfAnInstallation(t *testing.T) {
	fs := allInOne(Table()).Flags()
	var shared []string
	fs.VisitAll(func(f *pflag.Flag) {
		if !strings.Contains(f.Name, ".") {
			shared = append(shared, f.Name)
		}
	})
	if diff := cmp.Diff(slices.Sorted(slices.Values(components.SharedFlags())), shared); diff != "" {
		t.Errorf("shared flags: %s", diff)
	}
	d := components.AllInOneDeployment(&components.Config{Compact: true, Namespace: "other", Domain: "cluster.local", Workloads: map[string]components.Workload{
		components.Scheduler: {ExtraArgs: []string{"--enable-scheduler-estimator=false", "--v=4"}}, components.AllInOne: {ExtraArgs: []string{"--v=3"}},
	}})
	command := d.Spec.Template.Spec.Containers[0].Command
	for _, arg := range command[2:] {
		if err := fs.Parse([]string{strings.ReplaceAll(arg, "$(POD_IP)", "127.0.0.1")}); err != nil {
			t.Error(err)
		}
	}
	for flag, want := range map[string]string{"scheduler.enable-scheduler-estimator": "false", "v": "3", "webhook.secure-port": "8443", "leader-elect-resource-namespace": "other"} {
		if got := fs.Lookup(flag); got == nil || got.Value.String() != want {
			t.Errorf("%s is %v, not %s", flag, got, want)
		}
	}
}

package controllermanager

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/pflag"

	"github.com/karmada-toolkit/karmada/internal/gates"
)

func TestEnabled_FirstMentionDecides(t *testing.T) {
	for _, tc := range []struct {
		controllers string
		want        bool
	}{
		{"*", true},
		{"binding", true},
		{"-binding", false},
		{"*,-binding", false},
		{"binding,-binding", true},
		{"-binding,binding", false},
		{"execution", false},
		{"", false},
	} {
		o := NewOptions()
		o.Controllers = strings.Split(tc.controllers, ",")
		if got := o.Enabled("binding"); got != tc.want {
			t.Errorf("--controllers=%s: binding enabled is %t", tc.controllers, got)
		}
	}
}

func TestValidate_NamesEveryMistake(t *testing.T) {
	o := NewOptions()
	o.MonitorPeriod = 0
	o.SkippedPropagatingAPIs = "a/b/c/d"
	o.SkippedPropagatingNamespaces = []string{"["}
	err := o.Validate()
	if err == nil {
		t.Fatal("nothing is wrong")
	}
	for _, want := range []string{"--cluster-monitor-period", "--skipped-propagating-apis", "Invalid API string", "--skipped-propagating-namespaces"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q does not mention %q", err, want)
		}
	}
	if err := NewOptions().Validate(); err != nil {
		t.Errorf("the defaults: %v", err)
	}
}

func TestLimit_CountsOnlyWhenGiven(t *testing.T) {
	o := NewOptions()
	fs := pflag.NewFlagSet("", pflag.ContinueOnError)
	o.AddFlags(fs)
	if got := fs.Lookup("cluster-api-qps").DefValue; got != "40" {
		t.Errorf("the help shows %q", got)
	}
	if o.ClusterAPIQPS.QPS() != 0 {
		t.Error("the default limits")
	}
	if err := fs.Parse([]string{"--cluster-api-qps=40", "--feature-gates=Failover=true"}); err != nil {
		t.Fatal(err)
	}
	if o.ClusterAPIQPS.QPS() != 40 || !o.Gates.Enabled(gates.Failover) {
		t.Error("what was given does not count")
	}
	if err := fs.Parse([]string{"--cluster-api-qps=many"}); err == nil {
		t.Error("text is taken for a number")
	}
}

func TestControllers_UnknownNamesAreRefused(t *testing.T) {
	for text, ok := range map[string]bool{
		"*": true, "*,-binding": true, "binding,workStatus": true, "remedy": true, "*,-serviceExport": true,
		"Binding": false, "*,-nothing": false, "": false,
	} {
		o := NewOptions()
		o.Controllers = strings.Split(text, ",")
		err := o.Validate()
		if (err == nil) != ok {
			t.Errorf("%q: %v", text, err)
		}
		if err != nil && !strings.Contains(err.Error(), "workloadRebalancer") {
			t.Errorf("%q: the error lists no names: %v", text, err)
		}
	}
}

func TestFailover_BadFlagsAreRefused(t *testing.T) {
	for name, bad := range map[string]func(*Failover){
		"mass-failure-threshold": func(f *Failover) { f.MassFailureThreshold = 1.1 },
		"eviction-budget":        func(f *Failover) { f.Budget = "10/m" },
		"flap-window":            func(f *Failover) { f.FlapWindow = -1 },
	} {
		o := NewOptions()
		bad(&o.Failover)
		if err := o.Validate(); err == nil || !strings.Contains(err.Error(), "--"+name) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestWithoutEffect(t *testing.T) {
	if got := NewOptions().withoutEffect(); got != nil {
		t.Errorf("the defaults: %v", got)
	}
	o := NewOptions()
	fs := pflag.NewFlagSet("", pflag.ContinueOnError)
	o.AddFlags(fs)
	err := fs.Parse([]string{
		"--controllers=*,hpaScaleTargetMarker,-deploymentReplicasSyncer", "--feature-gates=MultiClusterService=true,PropagationPolicyPreemption=true",
		"--resync-period=1m", "--cluster-api-context=x",
	})
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"--resync-period=1m0s", "--cluster-api-context=x"}
	if diff := cmp.Diff(want, o.withoutEffect()); diff != "" {
		t.Error(diff)
	}
}

func TestEnabled_OffByDefault(t *testing.T) {
	for _, name := range []string{hpaScaleTargetMarker, deploymentReplicasSyncer} {
		o := NewOptions()
		if o.Enabled(name) {
			t.Errorf("%s is on by default", name)
		}
		o.Controllers = append(o.Controllers, name)
		if !o.Enabled(name) || !o.Enabled("binding") {
			t.Errorf("%s is off although it is named", name)
		}
	}
}

// A value that replaces a default takes more away than users expect.
func TestOptions_Losses(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*Options)
		want   []string
	}{
		"the defaults":         {func(*Options) {}, nil},
		"more controllers":     {func(o *Options) { o.Controllers = []string{"*", "hpaScaleTargetMarker"} }, nil},
		"fewer controllers":    {func(o *Options) { o.Controllers = []string{"*", "-remedy"} }, []string{`--controllers replaces its default, "*": these controllers do not run: remedy`}},
		"other namespaces too": {func(o *Options) { o.SkippedPropagatingNamespaces = append(o.SkippedPropagatingNamespaces, "test-.*") }, nil},
		"other namespaces": {func(o *Options) { o.SkippedPropagatingNamespaces = []string{"test-.*"} },
			[]string{`--skipped-propagating-namespaces replaces its default, "kube-.*": policies propagate objects of the namespace kube-system`}},
	} {
		t.Run(name, func(t *testing.T) {
			o := NewOptions()
			tc.change(o)
			if diff := cmp.Diff(tc.want, o.losses()); diff != "" {
				t.Error(diff)
			}
		})
	}
}

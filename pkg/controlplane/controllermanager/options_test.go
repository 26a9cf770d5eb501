package controllermanager

import (
	"strings"
	"testing"

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

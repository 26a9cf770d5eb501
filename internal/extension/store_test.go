package extension

import (
	"testing"

	"github.com/spf13/pflag"

	"github.com/karmada-toolkit/karmada/internal/gates"
)

func TestStoreOptions_Gates(t *testing.T) {
	o := NewStoreOptions(gates.CustomizedClusterResourceModeling)
	fs := pflag.NewFlagSet("test", pflag.ContinueOnError)
	o.AddFlags(fs)
	if err := fs.Parse([]string{"--etcd-servers=x", "--feature-gates=CustomizedClusterResourceModeling=false", "--feature-gates=APIServerIdentity=false"}); err != nil {
		t.Fatal(err)
	}
	if err := o.Validate(); err != nil {
		t.Fatal(err)
	}
	if o.Gates.Enabled(gates.CustomizedClusterResourceModeling) {
		t.Error("the gate of the control plane was not set")
	}
	if o.kubernetesGates != "APIServerIdentity=false" {
		t.Errorf("the gates of the server are %q", o.kubernetesGates)
	}
}

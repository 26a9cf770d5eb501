package extension

import (
	"testing"

	"github.com/spf13/pflag"
	"k8s.io/apiserver/pkg/features"
	utilfeature "k8s.io/apiserver/pkg/util/feature"

	"github.com/karmada-toolkit/karmada/internal/gates"
)

func TestStoreOptions_Gates(t *testing.T) {
	o := NewStoreOptions(gates.CustomizedClusterResourceModeling)
	fs := pflag.NewFlagSet("test", pflag.ContinueOnError)
	o.AddFlags(fs)
	if err := fs.Parse([]string{"--etcd-servers=x", "--feature-gates=CustomizedClusterResourceModeling=false", "--feature-gates=APIServerIdentity=true", "--feature-gates=APIServerIdentity=false"}); err != nil {
		t.Fatal(err)
	}
	if err := o.Validate(); err != nil {
		t.Fatal(err)
	}
	if o.Gates.Enabled(gates.CustomizedClusterResourceModeling) {
		t.Error("the gate of the control plane was not set")
	}
	if server := o.Gates.FeatureGate(); server.Enabled(features.APIServerIdentity) {
		t.Error("the later value does not override the earlier one")
	}
	if !utilfeature.DefaultFeatureGate.Enabled(features.APIServerIdentity) {
		t.Error("the gate of the process was set")
	}
}

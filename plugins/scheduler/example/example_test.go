package example_test

import (
	"fmt"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
	policyv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/policy/v1alpha1"
	workv1alpha2 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha2"
	"github.com/karmada-toolkit/karmada/pkg/domain/schedule/core"
	"github.com/karmada-toolkit/karmada/pkg/domain/schedule/framework"
	plugins "github.com/karmada-toolkit/karmada/plugins/scheduler"
	"github.com/karmada-toolkit/karmada/plugins/scheduler/example"
)

func profile(tb testing.TB, list ...string) *core.Profile {
	tb.Helper()
	registry := plugins.Registry(false)
	if err := registry.Register(example.Name, func() (framework.Plugin, error) { return example.New("aws"), nil }); err != nil {
		tb.Fatal(err)
	}
	enabled, err := registry.New(list)
	if err != nil {
		tb.Fatal(err)
	}
	p, err := core.NewProfile(enabled...)
	if err != nil {
		tb.Fatal(err)
	}
	return p
}

func TestMaintenance(t *testing.T) {
	c := func(name, provider, maintenance string) *clusterv1alpha1.Cluster {
		out := &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{example.MaintenanceLabel: maintenance}}}
		out.Spec.Provider = provider
		out.Status.APIEnablements = []clusterv1alpha1.APIEnablement{{GroupVersion: "v1", Resources: []clusterv1alpha1.APIResource{{Name: "configmaps", Kind: "ConfigMap"}}}}
		return out
	}
	snapshot := framework.SnapshotOf([]*clusterv1alpha1.Cluster{
		c("m1", "gcp", ""), c("m2", "aws", ""), c("m3", "aws", "true"), c("m4", "aws", "true"),
	}, true)
	spec := workv1alpha2.ResourceBindingSpec{
		Resource:  workv1alpha2.ObjectReference{APIVersion: "v1", Kind: "ConfigMap"},
		Placement: &policyv1alpha1.Placement{},
		Clusters:  []workv1alpha2.TargetCluster{{Name: "m4"}},
	}
	for _, tc := range []struct {
		name string
		list []string
		want string
	}{
		{"on, with its favorite first and the target kept", []string{"*"}, "m4 m2 m1"},
		{"taken out", []string{"*", "-" + example.Name}, "m4 m1 m2 m3"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			d, err := core.Schedule(snapshot, &core.Request{Profile: profile(t, tc.list...), Binding: framework.Binding{Spec: &spec}})
			got := ""
			for i, target := range d.Clusters {
				if i > 0 {
					got += " "
				}
				got += target.Name
			}
			if got != tc.want || err != nil {
				t.Errorf("got %q, %v, want %q", got, err, tc.want)
			}
		})
	}
}

func ExampleFactory() {
	registry := plugins.Registry(false)
	fmt.Println(registry.Register(example.Name, example.Factory))
	fmt.Println(registry.Register(example.Name, example.Factory))
	fmt.Println(registry.Enabled([]string{"*", "-APIEnablement", "-TaintToleration"}))
	// Output:
	// <nil>
	// a plugin named Maintenance already exists
	// [ClusterAffinity ClusterEviction ClusterLocality Maintenance SpreadConstraint]
}

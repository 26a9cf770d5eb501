package scheduler

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
	policyv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/policy/v1alpha1"
	workv1alpha2 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha2"
	"github.com/karmada-toolkit/karmada/pkg/domain/schedule/framework"
)

func TestRegistry_Enabled(t *testing.T) {
	all := []string{"APIEnablement", "ClusterAffinity", "ClusterEviction", "ClusterLocality", "SpreadConstraint", "TaintToleration"}
	for _, tc := range []struct {
		name string
		list []string
		want []string
	}{
		{"a star is all", []string{"*"}, all},
		{"a star anywhere starts with all", []string{"-ClusterLocality", "*", "-TaintToleration"}, []string{"APIEnablement", "ClusterAffinity", "ClusterEviction", "SpreadConstraint"}},
		{"names alone", []string{"ClusterAffinity", "APIEnablement"}, []string{"APIEnablement", "ClusterAffinity"}},
		{"the last word counts", []string{"ClusterAffinity", "-ClusterAffinity", "ClusterAffinity"}, []string{"ClusterAffinity"}},
		{"unknown names are ignored", []string{"Nothing", "-Nothing"}, nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, Registry(false).Enabled(tc.list)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestRegistry_WorkloadAffinityHasAGate(t *testing.T) {
	if got := len(Registry(true).Names()) - len(Registry(false).Names()); got != 2 {
		t.Errorf("the gate adds %d plugins, want 2", got)
	}
}

// verdict is what a filter says about cluster m1, with its detail if it rejects it.
func verdict(t *testing.T, name string, cluster *clusterv1alpha1.Cluster, binding framework.Binding) (text, detail string) {
	t.Helper()
	plugin, err := Registry(true)[name]()
	if err != nil {
		t.Fatal(err)
	}
	cluster.Name = "m1"
	if binding.Spec.Placement == nil {
		binding.Spec.Placement = &policyv1alpha1.Placement{}
	}
	snapshot := framework.SnapshotOf([]*clusterv1alpha1.Cluster{cluster}, true)
	var pass framework.Pass
	pass.Start(&binding, snapshot)
	var term *policyv1alpha1.ClusterAffinityTerm
	if terms := binding.Spec.Placement.ClusterAffinities; len(terms) > 0 {
		term = &terms[0]
	}
	pass.Use(term)
	v := plugin.(framework.Filter).Filter(&pass, snapshot.At(0))
	if !v.Fits() {
		detail = plugin.(framework.Detailer).Detail(&pass, snapshot.At(0))
	}
	return v.String(), detail
}

func TestFilters(t *testing.T) {
	deployment := workv1alpha2.ObjectReference{APIVersion: "apps/v1", Kind: "Deployment"}
	here := []workv1alpha2.TargetCluster{{Name: "m1"}}
	there := []workv1alpha2.TargetCluster{{Name: "m2"}}
	serving := func(groupVersion, kind string) *clusterv1alpha1.Cluster {
		return &clusterv1alpha1.Cluster{Status: clusterv1alpha1.ClusterStatus{APIEnablements: []clusterv1alpha1.APIEnablement{
			{GroupVersion: groupVersion, Resources: []clusterv1alpha1.APIResource{{Kind: kind}}},
		}}}
	}
	tainted := func(effect corev1.TaintEffect) *clusterv1alpha1.Cluster {
		return &clusterv1alpha1.Cluster{Spec: clusterv1alpha1.ClusterSpec{Taints: []corev1.Taint{
			{Key: "soft", Effect: corev1.TaintEffectPreferNoSchedule}, {Key: "k", Value: "v", Effect: effect, TimeAdded: &metav1.Time{Time: time.Unix(1, 0)}},
		}}}
	}
	tolerating := func(t corev1.Toleration) *policyv1alpha1.Placement {
		return &policyv1alpha1.Placement{ClusterTolerations: []corev1.Toleration{t}}
	}
	spreading := func(f policyv1alpha1.SpreadFieldValue) *policyv1alpha1.Placement {
		return &policyv1alpha1.Placement{SpreadConstraints: []policyv1alpha1.SpreadConstraint{{SpreadByField: f}}}
	}
	term := &policyv1alpha1.Placement{ClusterAffinities: []policyv1alpha1.ClusterAffinityTerm{{
		ClusterAffinity:    policyv1alpha1.ClusterAffinity{ClusterNames: []string{"other"}},
		OverflowAffinities: []policyv1alpha1.OverflowAffinityTerm{{}},
	}}}
	const (
		noMatch  = "cluster(s) did not match the placement cluster affinity constraint"
		untolera = "cluster(s) had untolerated taint {k=v:NoSchedule}"
	)
	type spec = workv1alpha2.ResourceBindingSpec
	empty := func() *clusterv1alpha1.Cluster { return &clusterv1alpha1.Cluster{} }
	for _, tc := range []struct {
		name    string
		plugin  string
		cluster *clusterv1alpha1.Cluster
		spec    spec
		peers   framework.Peers
		want    string
	}{
		{"the kind is served", "APIEnablement", serving("apps/v1", "Deployment"), spec{Resource: deployment}, framework.Peers{}, ""},
		{"another version is served", "APIEnablement", serving("apps/v1beta1", "Deployment"), spec{Resource: deployment}, framework.Peers{}, "cluster(s) did not have the API resource"},
		{"nothing is known yet", "APIEnablement", empty(), spec{Resource: deployment}, framework.Peers{}, "cluster(s) whose API resources are not collected yet"},
		{"nothing is served", "APIEnablement", &clusterv1alpha1.Cluster{Status: clusterv1alpha1.ClusterStatus{Conditions: []metav1.Condition{{Type: "CompleteAPIEnablements", Status: "False"}}}}, spec{Resource: deployment}, framework.Peers{}, "cluster(s) did not have the API resource"},
		{"not served, but a target already", "APIEnablement", empty(), spec{Resource: deployment, Clusters: here}, framework.Peers{}, ""},
		{"untolerated", "TaintToleration", tainted("NoSchedule"), spec{}, framework.Peers{}, untolera},
		{"untolerated, but a target already", "TaintToleration", tainted("NoExecute"), spec{Clusters: here}, framework.Peers{}, ""},
		{"tolerated by key and value", "TaintToleration", tainted("NoSchedule"), spec{Placement: tolerating(corev1.Toleration{Key: "k", Value: "v"})}, framework.Peers{}, ""},
		{"tolerated whatever it is", "TaintToleration", tainted("NoExecute"), spec{Placement: tolerating(corev1.Toleration{Operator: "Exists"})}, framework.Peers{}, ""},
		{"another effect is tolerated", "TaintToleration", tainted("NoSchedule"), spec{Placement: tolerating(corev1.Toleration{Key: "k", Operator: "Exists", Effect: "NoExecute"})}, framework.Peers{}, untolera},
		{"comparisons never match", "TaintToleration", tainted("NoSchedule"), spec{Placement: tolerating(corev1.Toleration{Key: "k", Operator: "Gt", Value: "1"})}, framework.Peers{}, untolera},
		{"no affinity selects all", "ClusterAffinity", empty(), spec{}, framework.Peers{}, ""},
		{"an overflow affinity selects for a workload", "ClusterAffinity", empty(), spec{Replicas: 1, Placement: term}, framework.Peers{}, ""},
		{"an overflow affinity does not count for others", "ClusterAffinity", empty(), spec{Placement: term}, framework.Peers{}, noMatch},
		{"no provider", "SpreadConstraint", empty(), spec{Placement: spreading("provider")}, framework.Peers{}, "cluster(s) did not have provider property"},
		{"no region", "SpreadConstraint", empty(), spec{Placement: spreading("region")}, framework.Peers{}, "cluster(s) did not have region property"},
		{"the old zone does not count", "SpreadConstraint", &clusterv1alpha1.Cluster{Spec: clusterv1alpha1.ClusterSpec{Zone: "z"}}, spec{Placement: spreading("zone")}, framework.Peers{}, "cluster(s) did not have zones property"},
		{"being evicted", "ClusterEviction", empty(), spec{Clusters: here, GracefulEvictionTasks: []workv1alpha2.GracefulEvictionTask{{FromCluster: "m1"}}}, framework.Peers{}, "cluster(s) is in the process of eviction"},
		{"the group is elsewhere", "WorkloadAffinity", empty(), spec{}, framework.Peers{Affinity: []framework.Peer{{Clusters: there}}}, "ResourceBinding with the same affinity group does not target this cluster"},
		{"the group is elsewhere, but a target already", "WorkloadAffinity", empty(), spec{Clusters: here}, framework.Peers{Affinity: []framework.Peer{{Clusters: there}}}, ""},
		{"the group is nowhere yet", "WorkloadAffinity", empty(), spec{}, framework.Peers{Affinity: []framework.Peer{{}}}, ""},
		{"the rival group is here", "WorkloadAntiAffinity", empty(), spec{}, framework.Peers{AntiAffinity: []framework.Peer{{Clusters: here}}}, "cluster already has workload with the same anti-affinity group"},
		{"the rival group is elsewhere", "WorkloadAntiAffinity", empty(), spec{}, framework.Peers{AntiAffinity: []framework.Peer{{Clusters: there}}}, ""},
	} {
		t.Run(tc.plugin+": "+tc.name, func(t *testing.T) {
			if got, _ := verdict(t, tc.plugin, tc.cluster, framework.Binding{Spec: &tc.spec, Peers: tc.peers}); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

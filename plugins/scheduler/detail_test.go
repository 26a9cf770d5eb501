package scheduler

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
	policyv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/policy/v1alpha1"
	workv1alpha2 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha2"
	"github.com/karmada-toolkit/karmada/pkg/domain/schedule/framework"
)

func TestDetails(t *testing.T) {
	type (
		spec     = workv1alpha2.ResourceBindingSpec
		affinity = policyv1alpha1.ClusterAffinity
	)
	selecting := func(a affinity) spec { return spec{Placement: &policyv1alpha1.Placement{ClusterAffinity: &a}} }
	fields := func(key string, op corev1.NodeSelectorOperator, values ...string) spec {
		return selecting(affinity{FieldSelector: &policyv1alpha1.FieldSelector{
			MatchExpressions: []corev1.NodeSelectorRequirement{{Key: key, Operator: op, Values: values}},
		}})
	}
	labels := func(key string, op metav1.LabelSelectorOperator, values ...string) spec {
		return selecting(affinity{LabelSelector: &metav1.LabelSelector{
			MatchExpressions: []metav1.LabelSelectorRequirement{{Key: key, Operator: op, Values: values}},
		}})
	}
	spreading := func(f policyv1alpha1.SpreadFieldValue) spec {
		return spec{Placement: &policyv1alpha1.Placement{SpreadConstraints: []policyv1alpha1.SpreadConstraint{{SpreadByField: f}}}}
	}
	term := func(overflow ...policyv1alpha1.OverflowAffinityTerm) *policyv1alpha1.Placement {
		return &policyv1alpha1.Placement{ClusterAffinities: []policyv1alpha1.ClusterAffinityTerm{{
			AffinityName: "primary", ClusterAffinity: affinity{ClusterNames: []string{"a"}}, OverflowAffinities: overflow,
		}}}
	}
	expired := &policyv1alpha1.Placement{ClusterTolerations: []corev1.Toleration{{Operator: "Exists", TolerationSeconds: new(int64(30))}}}
	others := policyv1alpha1.OverflowAffinityTerm{ClusterAffinity: affinity{ClusterNames: []string{"b"}}}
	here, there := []workv1alpha2.TargetCluster{{Name: "m1"}}, []workv1alpha2.TargetCluster{{Name: "m2"}}
	peers := []framework.Peer{{Name: "none"}, {Name: "other", Clusters: there}, {Name: "same", Clusters: here}, {Name: "last", Clusters: here}}
	covered := map[string]bool{"ClusterLocality": true} // it filters nothing
	for _, tc := range []struct {
		plugin string
		spec   spec
		want   string
	}{
		{"APIEnablement", spec{}, "its APIs are not collected yet"},
		{"APIEnablement", spec{Resource: workv1alpha2.ObjectReference{APIVersion: "apps/v1", Kind: "Deployment"}}, "does not serve apps/v1 Deployment"},
		{"ClusterAffinity", selecting(affinity{ClusterNames: []string{"a", "b", "c"}}), "not in affinity clusterNames [a b c]"},
		{"ClusterAffinity", selecting(affinity{ClusterNames: []string{"a", "b", "c", "d", "e"}}), "not in affinity clusterNames [a b c and 2 more]"},
		{"ClusterAffinity", selecting(affinity{ExcludeClusters: []string{"m1"}}), "excluded by affinity"},
		{"ClusterAffinity", selecting(affinity{LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"x": "y", "env": "prod"}}}), "labels do not match labelSelector env=prod"},
		{"ClusterAffinity", labels("env", "In", "prod", "test"), "labels do not match labelSelector env In [prod test]"},
		{"ClusterAffinity", labels("env", "DoesNotExist"), "labels do not match labelSelector env DoesNotExist"},
		{"ClusterAffinity", labels("bad key", "Exists"), "affinity is not valid"},
		{"ClusterAffinity", fields("provider", "In", "aws"), `provider "" does not match fieldSelector provider In [aws]`},
		{"ClusterAffinity", fields("region", "NotIn", "eu"), `region "eu" does not match fieldSelector region NotIn [eu]`},
		{"ClusterAffinity", fields("zone", "Exists"), "zone [] does not match fieldSelector zone Exists"},
		{"ClusterAffinity", spec{Placement: term()}, "term primary: not in affinity clusterNames [a]"},
		{"ClusterAffinity", spec{Placement: term(others), Replicas: 1}, "term primary: not in affinity clusterNames [a], nor selected by overflowAffinities"},
		{"ClusterEviction", spec{GracefulEvictionTasks: []workv1alpha2.GracefulEvictionTask{
			{FromCluster: "m2", Reason: "ManualEviction"}, {FromCluster: "m1", Reason: "TaintUntolerated"},
		}}, "being evicted: TaintUntolerated"},
		{"SpreadConstraint", spreading("provider"), "has no provider"},
		{"SpreadConstraint", spreading("region"), "has no region"},
		{"SpreadConstraint", spreading("zone"), "has no zones"},
		{"TaintToleration", spec{}, "taint maintenance:NoSchedule is not tolerated"},
		{"TaintToleration", spec{Placement: expired}, "taint maintenance:NoSchedule is tolerated for 30s only"},
		{"WorkloadAffinity", spec{}, "not a target of binding other"},
		{"WorkloadAntiAffinity", spec{}, "a target of binding same"},
	} {
		t.Run(tc.plugin+": "+tc.want, func(t *testing.T) {
			covered[tc.plugin] = true
			cluster := &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"env": "stage"}}}
			if tc.want != "has no region" {
				cluster.Spec.Region = "eu"
			}
			if tc.spec.Resource.Kind != "" {
				cluster.Status.KubernetesVersion = "v1.34.0"
			}
			cluster.Spec.Taints = []corev1.Taint{
				{Key: "soft", Effect: corev1.TaintEffectPreferNoSchedule}, {Key: "maintenance", Effect: corev1.TaintEffectNoSchedule},
				{Key: "k", Value: "v", Effect: corev1.TaintEffectNoExecute, TimeAdded: &metav1.Time{Time: time.Unix(1, 0)}},
			}
			binding := framework.Binding{Spec: &tc.spec, Peers: framework.Peers{Affinity: peers, AntiAffinity: peers}, Now: time.Unix(100, 0)}
			if _, got := verdict(t, tc.plugin, cluster, binding); got != tc.want {
				t.Errorf("got %q", got)
			}
		})
	}
	for _, name := range Registry(true).Names() {
		if !covered[name] {
			t.Errorf("no case for %s", name)
		}
	}
}

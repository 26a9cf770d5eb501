package core_test

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
	policyv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/policy/v1alpha1"
	workv1alpha2 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha2"
	"github.com/karmada-toolkit/karmada/pkg/domain/schedule/core"
	"github.com/karmada-toolkit/karmada/pkg/domain/schedule/framework"
	plugins "github.com/karmada-toolkit/karmada/plugins/scheduler"
)

// fleet returns clusters in regions of ten, with room for some hundred pods each.
func fleet(n int) []*clusterv1alpha1.Cluster {
	out := make([]*clusterv1alpha1.Cluster, n)
	for i := range out {
		c := &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{
			Name:   fmt.Sprintf("member%04d", i),
			Labels: map[string]string{"env": []string{"prod", "stage"}[i%2], "rack": fmt.Sprintf("r%d", i%7)},
		}}
		c.Spec.Region = fmt.Sprintf("region-%02d", (i*7)%max(1, n/20))
		c.Spec.Provider = []string{"aws", "gcp", "onprem"}[i%3]
		c.Spec.Zones = []string{c.Spec.Region + "-a"}
		c.Status.APIEnablements = []clusterv1alpha1.APIEnablement{
			{GroupVersion: "apps/v1", Resources: []clusterv1alpha1.APIResource{{Name: "deployments", Kind: "Deployment"}}},
			{GroupVersion: "v1", Resources: []clusterv1alpha1.APIResource{{Name: "configmaps", Kind: "ConfigMap"}}},
		}
		c.Status.ResourceSummary = &clusterv1alpha1.ResourceSummary{
			Allocatable: resources(fmt.Sprint(40+i*37%60), fmt.Sprintf("%dGi", 100+i*53%200), "500"),
			Allocated:   resources(fmt.Sprintf("%dm", i*731%30000), fmt.Sprintf("%dMi", i*97%50000), fmt.Sprint(i*13%200)),
		}
		out[i] = c
	}
	return out
}

func resources(cpu, memory, pods string) corev1.ResourceList {
	return corev1.ResourceList{
		corev1.ResourceCPU:    resource.MustParse(cpu),
		corev1.ResourceMemory: resource.MustParse(memory),
		corev1.ResourcePods:   resource.MustParse(pods),
	}
}

type strategy struct {
	name      string
	placement func() *policyv1alpha1.Placement
}

func divided(preference policyv1alpha1.ReplicaDivisionPreference, weights *policyv1alpha1.ClusterPreferences) *policyv1alpha1.ReplicaSchedulingStrategy {
	return &policyv1alpha1.ReplicaSchedulingStrategy{
		ReplicaSchedulingType: policyv1alpha1.ReplicaSchedulingTypeDivided, ReplicaDivisionPreference: preference, WeightPreference: weights,
	}
}

var available = &policyv1alpha1.ClusterPreferences{DynamicWeight: policyv1alpha1.DynamicWeightByAvailableReplicas}

func strategies() []strategy {
	env := func(values ...string) *metav1.LabelSelector {
		return &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "env", Operator: metav1.LabelSelectorOpIn, Values: values}}}
	}
	return []strategy{
		{"static", func() *policyv1alpha1.Placement {
			return &policyv1alpha1.Placement{
				ClusterAffinity: &policyv1alpha1.ClusterAffinity{LabelSelector: env("prod", "stage")},
				ReplicaScheduling: divided(policyv1alpha1.ReplicaDivisionPreferenceWeighted, &policyv1alpha1.ClusterPreferences{
					StaticWeightList: []policyv1alpha1.StaticClusterWeight{
						{TargetCluster: policyv1alpha1.ClusterAffinity{LabelSelector: env("prod")}, Weight: 3},
						{TargetCluster: policyv1alpha1.ClusterAffinity{LabelSelector: env("stage")}, Weight: 1},
					},
				}),
			}
		}},
		{"dynamic", func() *policyv1alpha1.Placement {
			return &policyv1alpha1.Placement{
				ClusterAffinity:   &policyv1alpha1.ClusterAffinity{LabelSelector: env("prod", "stage")},
				ReplicaScheduling: divided(policyv1alpha1.ReplicaDivisionPreferenceWeighted, available),
			}
		}},
		{"aggregated", func() *policyv1alpha1.Placement {
			return &policyv1alpha1.Placement{ReplicaScheduling: divided(policyv1alpha1.ReplicaDivisionPreferenceAggregated, nil)}
		}},
		{"regions", func() *policyv1alpha1.Placement {
			return &policyv1alpha1.Placement{
				SpreadConstraints: []policyv1alpha1.SpreadConstraint{
					{SpreadByField: policyv1alpha1.SpreadByFieldRegion, MinGroups: 1, MaxGroups: 10},
					{SpreadByField: policyv1alpha1.SpreadByFieldCluster, MinGroups: 5, MaxGroups: 400},
				},
				ReplicaScheduling: divided(policyv1alpha1.ReplicaDivisionPreferenceWeighted, available),
			}
		}},
	}
}

func profile(tb testing.TB) *core.Profile {
	tb.Helper()
	enabled, err := plugins.Registry(true).New([]string{"*"})
	if err != nil {
		tb.Fatal(err)
	}
	p, err := core.NewProfile(enabled...)
	if err != nil {
		tb.Fatal(err)
	}
	return p
}

func requestFor(tb testing.TB, placement *policyv1alpha1.Placement, n int32) *core.Request {
	tb.Helper()
	return &core.Request{
		Profile: profile(tb),
		Binding: framework.Binding{
			Namespace: "default", Name: "nginx-deployment",
			Spec: &workv1alpha2.ResourceBindingSpec{
				Resource:            workv1alpha2.ObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "default", Name: "nginx", UID: "u1"},
				Replicas:            n,
				ReplicaRequirements: &workv1alpha2.ReplicaRequirements{ResourceRequest: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("100m"), corev1.ResourceMemory: resource.MustParse("128Mi")}},
				Placement:           placement,
			},
			Status: &workv1alpha2.ResourceBindingStatus{},
		},
	}
}

func tolerateAll() []corev1.Toleration {
	return []corev1.Toleration{{Operator: corev1.TolerationOpExists}}
}

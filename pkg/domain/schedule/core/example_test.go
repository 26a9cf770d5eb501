package core_test

import (
	"encoding/json"
	"fmt"

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

func exampleCluster(name string, pods int64) *clusterv1alpha1.Cluster {
	return &clusterv1alpha1.Cluster{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Status: clusterv1alpha1.ClusterStatus{
			APIEnablements: []clusterv1alpha1.APIEnablement{
				{GroupVersion: "apps/v1", Resources: []clusterv1alpha1.APIResource{{Name: "deployments", Kind: "Deployment"}}},
			},
			ResourceSummary: &clusterv1alpha1.ResourceSummary{
				Allocatable: corev1.ResourceList{corev1.ResourcePods: *resource.NewQuantity(pods, resource.DecimalSI)},
			},
		},
	}
}

func ExampleSchedule() {
	enabled, err := plugins.Registry(false).New([]string{"*"})
	if err != nil {
		fmt.Println(err)
		return
	}
	profile, err := core.NewProfile(enabled...)
	if err != nil {
		fmt.Println(err)
		return
	}
	tainted := exampleCluster("member3", 50)
	tainted.Spec.Taints = []corev1.Taint{{Key: "dedicated", Effect: corev1.TaintEffectNoSchedule}}
	snapshot := framework.SnapshotOf([]*clusterv1alpha1.Cluster{
		exampleCluster("member1", 30), exampleCluster("member2", 10), tainted,
	}, true)

	decision, err := core.Schedule(snapshot, &core.Request{
		Profile: profile,
		Binding: framework.Binding{Namespace: "default", Name: "nginx-deployment", Spec: &workv1alpha2.ResourceBindingSpec{
			Resource: workv1alpha2.ObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "default", Name: "nginx"},
			Replicas: 4,
			Placement: &policyv1alpha1.Placement{ReplicaScheduling: &policyv1alpha1.ReplicaSchedulingStrategy{
				ReplicaSchedulingType:     policyv1alpha1.ReplicaSchedulingTypeDivided,
				ReplicaDivisionPreference: policyv1alpha1.ReplicaDivisionPreferenceWeighted,
				WeightPreference:          &policyv1alpha1.ClusterPreferences{DynamicWeight: policyv1alpha1.DynamicWeightByAvailableReplicas},
			}},
		}},
	})
	if err != nil {
		fmt.Println(core.ClassOf(err), err)
		return
	}
	for _, target := range decision.Clusters {
		fmt.Println(target.Name, target.Replicas)
	}
	explained, err := json.MarshalIndent(decision.Explain().Passes[0].Clusters, "", " ")
	fmt.Println(string(explained), err)
	// Output:
	// member1 3
	// member2 1
	// [
	//  {
	//   "name": "member1",
	//   "capacity": 30,
	//   "boundBy": "pods",
	//   "selected": true,
	//   "target": true,
	//   "replicas": 3,
	//   "rule": "dynamic weight"
	//  },
	//  {
	//   "name": "member2",
	//   "capacity": 10,
	//   "boundBy": "pods",
	//   "selected": true,
	//   "target": true,
	//   "replicas": 1,
	//   "rule": "dynamic weight"
	//  },
	//  {
	//   "name": "member3",
	//   "rejectedBy": "TaintToleration",
	//   "reason": "cluster(s) had untolerated taint {dedicated:NoSchedule}",
	//   "detail": "taint dedicated:NoSchedule is not tolerated"
	//  }
	// ] <nil>
}

package multiclusterservice

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/karmada-toolkit/karmada/internal/kube"
	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
	networkingv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/networking/v1alpha1"
)

func TestOfCluster(t *testing.T) {
	mcs := func(name string, clusters ...string) *networkingv1alpha1.MultiClusterService {
		out := &networkingv1alpha1.MultiClusterService{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}}
		out.Spec.Types = []networkingv1alpha1.ExposureType{networkingv1alpha1.ExposureTypeCrossCluster}
		for _, c := range clusters {
			out.Spec.ProviderClusters = append(out.Spec.ProviderClusters, networkingv1alpha1.ClusterSelector{Name: c})
			out.Spec.ConsumerClusters = append(out.Spec.ConsumerClusters, networkingv1alpha1.ClusterSelector{Name: c})
		}
		return out
	}
	r := &reconciler{client: fake.NewClientBuilder().WithScheme(kube.NewScheme()).WithObjects(mcs("all"), mcs("other", "m2"), mcs("own", "m1")).Build()}
	cluster := &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "m1"}}
	for _, deletion := range []*metav1.Time{nil, {}} {
		cluster.DeletionTimestamp = deletion
		got := r.ofCluster(t.Context(), cluster)
		if len(got) != 2 || got[0].Name != "all" || got[1].Name != "own" {
			t.Errorf("deletion %v: got %v", deletion, got)
		}
	}
}

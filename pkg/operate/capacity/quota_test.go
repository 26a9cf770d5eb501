package capacity

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/dynamic/fake"

	"github.com/karmada-toolkit/karmada/internal/kube"
	policyv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/policy/v1alpha1"
	workv1alpha2 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha2"
)

func TestQuotas_LimitWhatFits(t *testing.T) {
	share := &policyv1alpha1.FederatedResourceQuota{}
	share.Namespace, share.Name = "default", "share"
	status := corev1.ResourceQuotaStatus{
		Hard: corev1.ResourceList{"requests.cpu": resource.MustParse("2")},
		Used: corev1.ResourceList{"requests.cpu": resource.MustParse("500m")},
	}
	share.Status.AggregatedStatus = []policyv1alpha1.ClusterQuotaStatus{{ClusterName: "m1", ResourceQuotaStatus: status}}
	binding := &workv1alpha2.ResourceBinding{}
	binding.Namespace, binding.Name = "default", "budget-resourcequota"
	binding.Spec.Resource = workv1alpha2.ObjectReference{APIVersion: "v1", Kind: "ResourceQuota", Namespace: "default", Name: "budget"}
	binding.Status.AggregatedStatus = []workv1alpha2.AggregatedStatusItem{
		{ClusterName: "m2", Status: &runtime.RawExtension{Raw: []byte(`{"hard":{"cpu":"1"},"used":{"cpu":"2"}}`)}},
		{ClusterName: "m3", Status: &runtime.RawExtension{Raw: []byte(`{"hard":"?"}`)}},
	}
	template := &corev1.ResourceQuota{}
	template.Namespace, template.Name = "default", "budget"
	reader := &Reader{ControlPlane: fake.NewSimpleDynamicClient(kube.NewScheme(), share, binding, template)}
	quotas, err := reader.Quotas(t.Context(), "default")
	if err != nil {
		t.Fatal(err)
	}
	w := &Workload{Namespace: "default", Requirements: &workv1alpha2.ReplicaRequirements{
		Namespace: "default", ResourceRequest: corev1.ResourceList{"cpu": resource.MustParse("500m")},
	}}
	fits := []Fit{
		{Cluster: "m1", Known: true, Replicas: 9, Bound: "cpu", Source: Models},
		{Cluster: "m2", Known: true, Replicas: 9, Bound: "cpu", Source: Models},
		{Cluster: "m3", Known: true, Replicas: 9, Bound: "cpu", Source: Models},
		{Cluster: "m4"},
	}
	quotas.Limit(w, fits)
	want := []Fit{
		{Cluster: "m1", Known: true, Replicas: 3, Bound: "quota share", Source: Quota},
		{Cluster: "m2", Known: true, Replicas: 0, Bound: "quota budget", Source: Quota},
		{Cluster: "m3", Known: true, Replicas: 9, Bound: "cpu", Source: Models},
		{Cluster: "m4"},
	}
	if diff := cmp.Diff(want, fits); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
}

package describe

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/karmada-toolkit/karmada/internal/build"
	"github.com/karmada-toolkit/karmada/internal/kube"
	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
	networkingv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/networking/v1alpha1"
	workv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha1"
	"github.com/karmada-toolkit/karmada/pkg/domain/services"
)

func TestSides(t *testing.T) {
	cluster := func(name string, ready metav1.ConditionStatus) *clusterv1alpha1.Cluster {
		return &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: name}, Status: clusterv1alpha1.ClusterStatus{
			Conditions: []metav1.Condition{{Type: "Ready", Status: ready, Message: "cluster is not reachable"}},
		}}
	}
	mcs := &networkingv1alpha1.MultiClusterService{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", Labels: map[string]string{networkingv1alpha1.MultiClusterServicePermanentIDLabel: "id"}},
		Spec: networkingv1alpha1.MultiClusterServiceSpec{
			Types:            []networkingv1alpha1.ExposureType{networkingv1alpha1.ExposureTypeCrossCluster},
			ProviderClusters: []networkingv1alpha1.ClusterSelector{{Name: "m1"}, {Name: "m2"}, {Name: "m4"}, {Name: "m5"}, {Name: "m6"}},
			ConsumerClusters: []networkingv1alpha1.ClusterSelector{{Name: "m2"}, {Name: "m3"}},
		},
	}
	flapping := cluster("m5", "True")
	flapping.Annotations = map[string]string{clusterv1alpha1.FlappingUntilAnnotation: "2026-05-01T12:05:00Z"}
	flapping.Spec.Taints = []corev1.Taint{{Key: clusterv1alpha1.TaintClusterFlapping, Effect: corev1.TaintEffectNoSchedule}}
	all := services.Clusters{}
	objs := []client.Object{mcs}
	for _, c := range []*clusterv1alpha1.Cluster{cluster("m1", "True"), cluster("m2", "False"), cluster("m3", "True"), flapping, cluster("m6", "True")} {
		all[c.Name] = c
		objs = append(objs, c)
	}
	verdict, err := services.Decide(services.Facts{MCS: mcs, Clusters: all})
	if err != nil {
		t.Fatal(err)
	}
	slice := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice", "addressType": "IPv4", "endpoints": []any{
			map[string]any{"addresses": []any{"10.0.0.1"}}, map[string]any{"addresses": []any{"10.0.0.2"}, "conditions": map[string]any{"ready": false}},
		},
	}}
	slice.SetNamespace("shop")
	slice.SetName("web-a")
	slice.SetLabels(map[string]string{"kubernetes.io/service-name": "web"})
	key := types.NamespacedName{Namespace: "shop", Name: "web"}
	collected, err := services.Collect(types.NamespacedName{Namespace: "karmada-es-m1", Name: "web-a"}, slice, services.MCS, key, nil)
	if err != nil {
		t.Fatal(err)
	}
	dispatched, err := services.Dispatch(services.DispatchFacts{
		Work: collected, Source: "m1", MCS: mcs, Clusters: all, Get: func(string, string) *workv1alpha1.Work { return nil },
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, w := range append(append(verdict.Write, collected), dispatched.Write...) {
		objs = append(objs, w)
	}
	service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}}
	external := service.DeepCopy()
	external.Spec.Type = corev1.ServiceTypeExternalName
	var text strings.Builder
	for _, more := range [][]client.Object{{service}, {external}, nil} {
		c := fake.NewClientBuilder().WithScheme(kube.NewScheme()).WithObjects(slices.Concat(objs, more)...).Build()
		got, err := sides(t.Context(), c, key)
		if err != nil {
			t.Fatal(err)
		}
		text.WriteString(got + "\n")
	}
	build.AssertGolden(t, "sides", text.String())
}

package main

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	networkingv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/networking/v1alpha1"
	"github.com/karmada-toolkit/karmada/pkg/generated/clientset/versioned"
)

func TestSync(t *testing.T) {
	in := networkingv1alpha1.MultiClusterIngress{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"}}
	in.Spec.DefaultBackend = &networkingv1.IngressBackend{Service: &networkingv1.IngressServiceBackend{Name: "web"}}
	in.Status.TrafficBlockClusters = []string{"m2"}
	service := networkingv1alpha1.MultiClusterService{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"}}
	service.Spec.ProviderClusters = []networkingv1alpha1.ClusterSelector{{Name: "m3"}, {Name: "m2"}, {Name: "m1"}}
	writes := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		var answer any = &networkingv1alpha1.MultiClusterIngressList{Items: []networkingv1alpha1.MultiClusterIngress{in}}
		switch {
		case r.Method == http.MethodPut && strings.HasSuffix(r.URL.Path, "/namespaces/shop/multiclusteringresses/web/status"):
			writes++
			if err := json.NewDecoder(r.Body).Decode(&in); err != nil {
				t.Error(err)
			}
			answer = &in
		case strings.HasSuffix(r.URL.Path, "/multiclusterservices"):
			answer = &networkingv1alpha1.MultiClusterServiceList{Items: []networkingv1alpha1.MultiClusterService{service}}
		}
		if err := json.NewEncoder(w).Encode(answer); err != nil {
			t.Error(err)
		}
	}))
	t.Cleanup(server.Close)
	client, err := versioned.NewForConfig(&rest.Config{Host: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	for range 2 { // the second pass changes nothing
		if err := sync(t.Context(), client, "203.0.113.7"); err != nil {
			t.Fatal(err)
		}
	}
	want := networkingv1alpha1.MultiClusterIngressStatus{
		IngressStatus:        networkingv1.IngressStatus{LoadBalancer: networkingv1.IngressLoadBalancerStatus{Ingress: []networkingv1.IngressLoadBalancerIngress{{IP: "203.0.113.7"}}}},
		TrafficBlockClusters: []string{"m2"},
		ServiceLocations:     []networkingv1alpha1.ServiceLocation{{Name: "web", Clusters: []string{"m1", "m3"}}},
	}
	if diff := cmp.Diff(want, in.Status); diff != "" || writes != 1 {
		t.Errorf("%d writes, -want +got %s", writes, diff)
	}
}

// Command multiclusteringress fills the status of MultiClusterIngresses, as the controller
// of a load balancer outside of the clusters does: the clusters of the backend Services,
// which are the providers of the MultiClusterServices of the same names, and the address
// of the load balancer. Clusters in status.trafficBlockClusters receive no traffic.
//
//	go run ./docs/examples/multiclusteringress -kubeconfig karmada.config -address 203.0.113.7
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"time"

	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"

	networkingv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/networking/v1alpha1"
	"github.com/karmada-toolkit/karmada/pkg/generated/clientset/versioned"
)

func main() {
	kubeconfig := flag.String("kubeconfig", os.Getenv("KUBECONFIG"), "kubeconfig of the control plane")
	address := flag.String("address", "", "IP address of the load balancer")
	interval := flag.Duration("interval", 10*time.Second, "time between two passes")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	cfg, err := clientcmd.BuildConfigFromFlags("", *kubeconfig)
	if err == nil {
		var client versioned.Interface
		if client, err = versioned.NewForConfig(cfg); err == nil {
			run(ctx, client, *address, *interval)
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

// run updates all statuses until ctx ends.
func run(ctx context.Context, client versioned.Interface, address string, interval time.Duration) {
	for {
		if err := sync(ctx, client, address); err != nil {
			fmt.Fprintln(os.Stderr, "error, it is tried again:", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(interval):
		}
	}
}

// sync writes the statuses that differ.
func sync(ctx context.Context, client versioned.Interface, address string) error {
	ingresses, err := client.NetworkingV1alpha1().MultiClusterIngresses("").List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("listing multiclusteringresses: %w", err)
	}
	services, err := client.NetworkingV1alpha1().MultiClusterServices("").List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("listing multiclusterservices: %w", err)
	}
	for i := range ingresses.Items {
		in := &ingresses.Items[i]
		next := in.DeepCopy()
		next.Status.LoadBalancer.Ingress = []networkingv1.IngressLoadBalancerIngress{{IP: address}}
		next.Status.ServiceLocations = locations(in, services.Items)
		if equality.Semantic.DeepEqual(in.Status, next.Status) {
			continue
		}
		if _, err := client.NetworkingV1alpha1().MultiClusterIngresses(in.Namespace).UpdateStatus(ctx, next, metav1.UpdateOptions{}); err != nil {
			return fmt.Errorf("updating the status of multiclusteringress %s/%s: %w", in.Namespace, in.Name, err)
		}
	}
	return nil
}

// locations returns the clusters to which the load balancer sends the traffic of each
// backend, in order of the names.
func locations(in *networkingv1alpha1.MultiClusterIngress, services []networkingv1alpha1.MultiClusterService) []networkingv1alpha1.ServiceLocation {
	var out []networkingv1alpha1.ServiceLocation
	for _, name := range backends(&in.Spec) {
		location := networkingv1alpha1.ServiceLocation{Name: name}
		for i := range services {
			if services[i].Namespace != in.Namespace || services[i].Name != name {
				continue
			}
			for _, cluster := range services[i].Spec.ProviderClusters {
				if !slices.Contains(in.Status.TrafficBlockClusters, cluster.Name) {
					location.Clusters = append(location.Clusters, cluster.Name)
				}
			}
		}
		slices.Sort(location.Clusters)
		out = append(out, location)
	}
	return out
}

// backends returns the names of the Services of an Ingress.
func backends(spec *networkingv1.IngressSpec) []string {
	var out []string
	add := func(b *networkingv1.IngressBackend) {
		if b != nil && b.Service != nil {
			out = append(out, b.Service.Name)
		}
	}
	add(spec.DefaultBackend)
	for _, rule := range spec.Rules {
		if rule.HTTP == nil {
			continue
		}
		for i := range rule.HTTP.Paths {
			add(&rule.HTTP.Paths[i].Backend)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

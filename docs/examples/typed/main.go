// Command typed lists the member clusters of a federation with the typed client.
//
//	go run ./docs/examples/typed
package main

import (
	"context"
	"fmt"
	"os"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"

	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
	"github.com/karmada-toolkit/karmada/pkg/generated/clientset/versioned"
)

func main() {
	if err := list(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

func list(ctx context.Context) error {
	cfg, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(
		clientcmd.NewDefaultClientConfigLoadingRules(), nil).ClientConfig()
	if err != nil {
		return fmt.Errorf("loading the kubeconfig ($KUBECONFIG): %w", err)
	}
	clients, err := versioned.NewForConfig(cfg)
	if err != nil {
		return fmt.Errorf("connecting: %w", err)
	}
	clusters, err := clients.ClusterV1alpha1().Clusters().List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("listing clusters: %w", err)
	}
	for i := range clusters.Items {
		c := &clusters.Items[i]
		ready := meta.IsStatusConditionTrue(c.Status.Conditions, clusterv1alpha1.ClusterConditionReady)
		fmt.Printf("%s\t%s\tready=%t\n", c.Name, c.Status.KubernetesVersion, ready)
	}
	return nil
}

package env

import (
	"context"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
	"github.com/karmada-toolkit/karmada/pkg/member"
)

// ControlPlane returns a client for the objects of the control plane that the CLI
// works with.
func (a *Access) ControlPlane() (client.Client, error) {
	config, err := a.flags.ToRESTConfig()
	if err != nil {
		return nil, err
	}
	return a.newClient(config)
}

// newClient returns a client that prints the warnings of the control plane.
func (a *Access) newClient(config *rest.Config) (client.Client, error) {
	config = rest.CopyConfig(config)
	config.WarningHandler = rest.NewWarningWriter(a.env.Escaped().ErrOut, rest.WarningWriterOptions{Deduplicate: true})
	return member.NewClient(config)
}

// RequiredControlPlane returns the client of ControlPlane, or an error if the server
// is no control plane. Commands that write objects which any cluster would accept
// use it.
func (a *Access) RequiredControlPlane(ctx context.Context) (client.Client, error) {
	config, err := a.flags.ToRESTConfig()
	if err != nil {
		return nil, err
	}
	if err := member.RequireControlPlane(ctx, config); err != nil {
		return nil, err
	}
	return a.newClient(config)
}

// GetCluster returns a member cluster.
func (a *Access) GetCluster(ctx context.Context, name string) (*clusterv1alpha1.Cluster, error) {
	c, err := a.ControlPlane()
	if err != nil {
		return nil, err
	}
	cluster := &clusterv1alpha1.Cluster{}
	if err := c.Get(ctx, client.ObjectKey{Name: name}, cluster); err != nil {
		return nil, a.explain(err)
	}
	return cluster, nil
}

// ClusterNames returns the names of all member clusters, sorted.
func (a *Access) ClusterNames(ctx context.Context) ([]string, error) {
	c, err := a.ControlPlane()
	if err != nil {
		return nil, err
	}
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(clusterv1alpha1.GroupVersion.WithKind("ClusterList"))
	if err := c.List(ctx, list); err != nil {
		return nil, a.explain(err)
	}
	names := make([]string, 0, len(list.Items))
	for i := range list.Items {
		names = append(names, list.Items[i].Name)
	}
	slices.Sort(names)
	return names, nil
}

// KnownClusters returns the named member clusters, sorted and each once, or all
// when none is named. It refuses names of clusters that are not there.
func (a *Access) KnownClusters(ctx context.Context, named []string) ([]string, error) {
	all, err := a.ClusterNames(ctx)
	if err != nil || len(named) == 0 {
		return all, err
	}
	var unknown []string
	for _, name := range named {
		if !slices.Contains(all, name) && !slices.Contains(unknown, name) {
			unknown = append(unknown, name)
		}
	}
	if len(unknown) > 0 {
		return nil, fmt.Errorf("clusters don't exist: %s; %q lists those that do", strings.Join(unknown, ","), a.env.Name+" get clusters")
	}
	named = slices.Clone(named)
	slices.Sort(named)
	return slices.Compact(named), nil
}

// explain replaces the error of a server that has no API of clusters.
func (a *Access) explain(err error) error {
	if apierrors.IsServiceUnavailable(err) {
		return fmt.Errorf("listing member clusters: the control plane's aggregated API server does not answer: %w", err)
	}
	if !member.APIMissing(err) {
		return err
	}
	server := "the server"
	if config, configErr := a.flags.ToRESTConfig(); configErr == nil {
		server = config.Host
	}
	return fmt.Errorf("%s is no karmada control plane: it has no API of member clusters (cluster.karmada.io); choose one with --kubeconfig and --karmada-context", server)
}

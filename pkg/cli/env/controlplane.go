package env

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
	"github.com/karmada-toolkit/karmada/pkg/member"
)

// readTimeout is how long commands that read clusters wait for a control plane that does not serve them.
const readTimeout = 10 * time.Second

// ControlPlane is the control plane that the flags name.
type ControlPlane struct {
	flags *genericclioptions.ConfigFlags
	// name is the name of the program for errors; warnings receives the warnings of the
	// API server.
	name     string
	warnings io.Writer
}

// RESTConfig returns the configuration of clients of the control plane.
func (p *ControlPlane) RESTConfig() (*rest.Config, error) { return p.flags.ToRESTConfig() }

// KubeconfigPath returns the path of the kubeconfig file that has the context in use, or "" if there is none.
func (p *ControlPlane) KubeconfigPath() string {
	raw, err := p.flags.ToRawKubeConfigLoader().RawConfig()
	if err != nil {
		return "" // requests to the control plane report it
	}
	name := raw.CurrentContext
	if p.flags.Context != nil && *p.flags.Context != "" {
		name = *p.flags.Context
	}
	if c := raw.Contexts[name]; c != nil {
		return c.LocationOfOrigin
	}
	return ""
}

// RESTMapper returns the types that the control plane serves.
func (p *ControlPlane) RESTMapper() (meta.RESTMapper, error) { return p.flags.ToRESTMapper() }

// MemberConfig returns the configuration of clients of a member, through the proxy of the control plane. It does not
// check that the member exists.
func (p *ControlPlane) MemberConfig(cluster string) (*rest.Config, error) {
	config, err := p.flags.ToRESTConfig()
	if err != nil {
		return nil, err
	}
	config = rest.CopyConfig(config)
	config.Host = strings.TrimRight(config.Host, "/") + "/apis/cluster.karmada.io/v1alpha1/clusters/" + cluster + "/proxy"
	return config, nil
}

// Client returns a client for the objects of the control plane that the CLI works with.
func (p *ControlPlane) Client() (client.Client, error) {
	config, err := p.flags.ToRESTConfig()
	if err != nil {
		return nil, err
	}
	return newClient(config, p.warnings)
}

// newClient returns a client that prints the warnings of the control plane.
func newClient(config *rest.Config, warnings io.Writer) (client.Client, error) {
	config = rest.CopyConfig(config)
	config.WarningHandler = rest.NewWarningWriter(warnings, rest.WarningWriterOptions{Deduplicate: true})
	return member.NewClient(config)
}

// RequiredClient is Client with an error if the server is not a control plane. Commands that write objects which any cluster would accept
// use it.
func (p *ControlPlane) RequiredClient(ctx context.Context) (client.Client, error) {
	config, err := p.flags.ToRESTConfig()
	if err != nil {
		return nil, err
	}
	if err := member.RequireControlPlane(ctx, config, member.ServeTimeout, reporter(p.warnings)); err != nil {
		return nil, err
	}
	return newClient(config, p.warnings)
}

// RequireDiscovery returns an error if the server is not a control plane whose kinds can be discovered.
func (p *ControlPlane) RequireDiscovery(ctx context.Context) error {
	config, err := p.flags.ToRESTConfig()
	if err != nil {
		return err
	}
	return member.RequireDiscovery(ctx, config, member.ServeTimeout, reporter(p.warnings))
}

// Cluster returns a member cluster.
func (p *ControlPlane) Cluster(ctx context.Context, name string) (*clusterv1alpha1.Cluster, error) {
	c, err := p.Client()
	if err != nil {
		return nil, err
	}
	cluster := &clusterv1alpha1.Cluster{}
	err = p.served(ctx, func() error { return c.Get(ctx, client.ObjectKey{Name: name}, cluster) })
	if err != nil {
		return nil, p.explain(err)
	}
	return cluster, nil
}

// ClusterNames returns the names of all member clusters, sorted.
func (p *ControlPlane) ClusterNames(ctx context.Context) ([]string, error) {
	c, err := p.Client()
	if err != nil {
		return nil, err
	}
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(clusterv1alpha1.GroupVersion.WithKind("ClusterList"))
	if err := p.served(ctx, func() error { return c.List(ctx, list) }); err != nil {
		return nil, p.explain(err)
	}
	names := make([]string, 0, len(list.Items))
	for i := range list.Items {
		names = append(names, list.Items[i].Name)
	}
	slices.Sort(names)
	return names, nil
}

// served sends a request to the API of clusters. If a control plane does not serve that API, as after a restart, the
// request is sent once more when it does.
func (p *ControlPlane) served(ctx context.Context, request func() error) error {
	err := request()
	if !apierrors.IsServiceUnavailable(err) && (err == nil || !member.APIMissing(err)) {
		return err
	}
	config, configErr := p.flags.ToRESTConfig()
	if configErr != nil || member.RequireControlPlane(ctx, config, readTimeout, reporter(p.warnings)) != nil {
		return err
	}
	return request()
}

// reporter prints what a command waits for.
func reporter(w io.Writer) member.Reporter {
	return func(line string) { _, _ = fmt.Fprintln(w, line) } // an error cannot be reported
}

// KnownClusters returns the named member clusters, sorted and without duplicates, or all if none is named. The error
// names the clusters that do not exist.
func (p *ControlPlane) KnownClusters(ctx context.Context, named []string) ([]string, error) {
	all, err := p.ClusterNames(ctx)
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
		return nil, fmt.Errorf("clusters don't exist: %s; %q lists those that do", strings.Join(unknown, ","), p.name+" get clusters")
	}
	named = slices.Clone(named)
	slices.Sort(named)
	return slices.Compact(named), nil
}

// explain replaces the error of a server that does not serve the API of clusters.
func (p *ControlPlane) explain(err error) error {
	if apierrors.IsServiceUnavailable(err) {
		return fmt.Errorf("listing member clusters: the control plane's aggregated API server does not answer: %w", err)
	}
	if !member.APIMissing(err) {
		return err
	}
	server := "the server"
	if config, configErr := p.flags.ToRESTConfig(); configErr == nil {
		server = config.Host
	}
	return fmt.Errorf("%s is no karmada control plane: it has no API of member clusters (cluster.karmada.io); choose one with --kubeconfig and --karmada-context", server)
}

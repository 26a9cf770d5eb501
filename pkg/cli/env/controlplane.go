package env

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/client-go/rest"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/karmada-toolkit/karmada/internal/kube"
	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
	"github.com/karmada-toolkit/karmada/pkg/member"
)

// ControlPlane is the control plane that the flags name.
type ControlPlane struct {
	flags      *genericclioptions.ConfigFlags
	connection *connection
	// name is the name of the program for errors; warnings receives the warnings of the
	// API server.
	name     string
	warnings io.Writer
	// limit is how long commands that write wait for a control plane that does not serve the API of clusters.
	limit time.Duration
}

// RESTConfig returns the configuration of clients of the control plane.
func (p *ControlPlane) RESTConfig() (*rest.Config, error) {
	config, err := p.flags.ToRESTConfig()
	return config, p.misconfigured(err)
}

// misconfigured replaces the error of a context that the kubeconfig does not have.
func (p *ControlPlane) misconfigured(err error) error {
	if err == nil {
		return nil
	}
	raw, rawErr := p.flags.ToRawKubeConfigLoader().RawConfig()
	if rawErr != nil {
		return err
	}
	name := cmp.Or(*p.flags.Context, raw.CurrentContext)
	var failure *ConnectionError
	switch {
	case len(raw.Clusters) == 0 && *p.flags.APIServer == "":
		failure = &ConnectionError{err: err, message: noKubeconfig(p.name)}
	case raw.Contexts[name] != nil || name == "":
		return err
	default:
		failure = &ConnectionError{err: err, message: fmt.Sprintf("context %q does not exist in the kubeconfig, which has: %s; choose one with --karmada-context",
			name, strings.Join(slices.Sorted(maps.Keys(raw.Contexts)), ", "))}
	}
	p.connection.last.Store(failure)
	return failure
}

// KubeconfigFlag returns the value of --kubeconfig.
func (p *ControlPlane) KubeconfigFlag() string {
	if p.flags.KubeConfig == nil {
		return ""
	}
	return *p.flags.KubeConfig
}

// Kubeconfig returns the context that the flags choose, alone and without references to files.
func (p *ControlPlane) Kubeconfig() (*clientcmdapi.Config, error) {
	raw, err := p.flags.ToRawKubeConfigLoader().RawConfig()
	if err != nil {
		return nil, p.misconfigured(err)
	}
	if *p.flags.Context != "" {
		raw.CurrentContext = *p.flags.Context
	}
	if err := clientcmdapi.MinifyConfig(&raw); err != nil {
		return nil, p.misconfigured(err)
	}
	if err := clientcmdapi.FlattenConfig(&raw); err != nil {
		return nil, p.misconfigured(err)
	}
	return &raw, nil
}

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
func (p *ControlPlane) RESTMapper() (meta.RESTMapper, error) {
	mapper, err := p.flags.ToRESTMapper()
	return mapper, p.misconfigured(err)
}

// MemberConfig returns the configuration of clients of a member, through the proxy of the control plane. It does not
// check that the member exists.
func (p *ControlPlane) MemberConfig(cluster string) (*rest.Config, error) {
	config, err := p.RESTConfig()
	if err != nil {
		return nil, err
	}
	config = rest.CopyConfig(config)
	config.Host = strings.TrimRight(config.Host, "/") + "/apis/cluster.karmada.io/v1alpha1/clusters/" + cluster + "/proxy"
	return config, nil
}

// Client returns a client for the objects of the control plane that the CLI works with.
func (p *ControlPlane) Client() (client.Client, error) {
	config, err := p.RESTConfig()
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

// RequiredClient is Client for commands that write. It waits for a control plane that does not serve the API of member
// clusters; a server that is no control plane is an error.
func (p *ControlPlane) RequiredClient(ctx context.Context) (client.Client, error) {
	config, err := p.RESTConfig()
	if err != nil {
		return nil, err
	}
	if err := p.wait(ctx, config, member.RequireControlPlane); err != nil {
		return nil, err
	}
	return newClient(config, p.warnings)
}

// ReadClient is RequiredClient for commands that read clusters: it does not wait.
func (p *ControlPlane) ReadClient(ctx context.Context) (client.Client, error) {
	config, err := p.RESTConfig()
	if err != nil {
		return nil, err
	}
	if err := p.explain(kube.CheckServed(ctx, config, clusterv1alpha1.GroupVersion)); err != nil {
		return nil, err
	}
	return newClient(config, p.warnings)
}

// OwnClient is Client for commands on objects of the control plane that any server would accept: a server that is no
// control plane is an error, one that does not serve clusters is not.
func (p *ControlPlane) OwnClient(ctx context.Context) (client.Client, error) {
	c, err := p.ReadClient(ctx)
	if err != nil && p.Unserved() {
		return p.Client()
	}
	return c, err
}

// wait calls a function that waits for a control plane, unless there is none to wait for.
func (p *ControlPlane) wait(ctx context.Context, config *rest.Config, require func(context.Context, *rest.Config, time.Duration, member.Reporter) error) error {
	err := p.explain(kube.CheckServed(ctx, config, clusterv1alpha1.GroupVersion))
	if err != nil && (!p.Unserved() || p.connection.hanging() != nil) {
		return err
	}
	return p.explain(require(ctx, config, p.limit, reporter(p.warnings)))
}

// RequireDiscovery returns an error if the server is not a control plane whose kinds can be discovered.
func (p *ControlPlane) RequireDiscovery(ctx context.Context) error {
	config, err := p.RESTConfig()
	if err != nil {
		return err
	}
	return p.wait(ctx, config, member.RequireDiscovery)
}

// LocalFederation returns the name of the federation of this machine that the kubeconfig belongs to, or "", and the flags of
// "local" that name it.
func (p *ControlPlane) LocalFederation() (name, flags string) { return p.connection.localFederation() }

// Unserved reports whether the control plane was seen not to serve the API of clusters.
func (p *ControlPlane) Unserved() bool { return p.connection.unserved.Load() != nil }

// AddTimeoutFlag adds --timeout to a command that writes.
func (p *ControlPlane) AddTimeoutFlag(cmd *cobra.Command) {
	cmd.Flags().DurationVar(&p.limit, "timeout", p.limit, "How long to wait for a control plane that does not serve the API of member clusters.")
}

// Cluster returns a member cluster.
func (p *ControlPlane) Cluster(ctx context.Context, name string) (*clusterv1alpha1.Cluster, error) {
	c, err := p.Client()
	if err != nil {
		return nil, err
	}
	cluster := &clusterv1alpha1.Cluster{}
	if err := c.Get(ctx, client.ObjectKey{Name: name}, cluster); err != nil {
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
	if err := c.List(ctx, list); err != nil {
		return nil, p.explain(err)
	}
	names := make([]string, 0, len(list.Items))
	for i := range list.Items {
		names = append(names, list.Items[i].Name)
	}
	slices.Sort(names)
	return names, nil
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
	if err == nil || ConnectionFailure(err) != nil {
		return err
	}
	host := "of the kubeconfig"
	if config, configErr := p.flags.ToRESTConfig(); configErr == nil {
		host = config.Host
		if u, urlErr := url.Parse(config.Host); urlErr == nil && u.Host != "" {
			host = u.Host
		}
	}
	switch foreign := p.connection.foreign.Load(); {
	case foreign != nil:
		return foreign
	case apierrors.IsServiceUnavailable(err), errors.Is(err, member.ErrUnserved), p.Unserved() && member.APIMissing(err):
		return p.connection.notServed(host, err)
	case member.APIMissing(err):
		return p.connection.noControlPlane(host, err)
	}
	return err
}

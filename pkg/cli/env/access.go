package env

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"sync"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/disk"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/util/homedir"
	cmdutil "k8s.io/kubectl/pkg/cmd/util"
	"k8s.io/kubectl/pkg/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/karmada-toolkit/karmada/internal/kube"
	"github.com/karmada-toolkit/karmada/pkg/member"
	"github.com/karmada-toolkit/karmada/pkg/member/access"
)

const (
	// discoveryTTL is how long cached discovery is valid.
	discoveryTTL = 6 * time.Hour
	// connectTimeout is how long the control plane may take to return a member Cluster.
	connectTimeout = 30 * time.Second
)

// Target is the server that the command line chooses: the control plane or a member.
type Target struct {
	// Scope is Karmada for the control plane and Members for the member Cluster.
	Scope Scope
	// Cluster is the name of the member.
	Cluster string
	// scopeGiven reports whether the command line has --operation-scope; nil for
	// commands without the flag.
	scopeGiven func() bool
}

// addFlags adds --operation-scope and --cluster. A cluster that is named without a
// scope implies the scope Members.
func (t *Target) addFlags(cmd *cobra.Command, completion *Completion) {
	AddScopeFlag(cmd, &t.Scope, "Whether the command is about the control plane or a member: karmada or members. With --cluster, the default is members.", string(Karmada), string(Members))
	cmd.Flags().StringVarP(&t.Cluster, "cluster", "C", "", "Name of the member cluster.")
	complete(cmd, "cluster", completion.Clusters)
	t.scopeGiven = func() bool { return cmd.Flags().Changed("operation-scope") }
}

// ScopeGiven reports whether the command line has --operation-scope.
func (t *Target) ScopeGiven() bool { return t.scopeGiven != nil && t.scopeGiven() }

// EffectiveScope returns the scope of the flag, or Members if only a cluster is named.
func (t *Target) EffectiveScope() Scope {
	if t.Scope == Karmada && t.Cluster != "" && t.scopeGiven != nil && !t.scopeGiven() {
		return Members
	}
	return t.Scope
}

// Validate returns an error unless the flags choose one server.
func (t *Target) Validate() error {
	scope := t.EffectiveScope()
	if err := scope.Require(Karmada, Members); err != nil {
		return err
	}
	if scope == Members && t.Cluster == "" {
		return errors.New("must specify a member cluster; name it with --cluster")
	}
	return nil
}

// Access is access to the server that the flags choose: the control plane, or a member through it. It is the
// RESTClientGetter of kubectl's factories, so that kubectl's commands work on either.
type Access struct {
	ControlPlane *ControlPlane
	Flags        *Flags
	Complete     *Completion
	Target       Target

	prefix *ErrorPrefix
	// guarded limits the responses of the member, which is one of several.
	guarded bool

	mu     sync.Mutex
	mapper meta.RESTMapper
}

var _ genericclioptions.RESTClientGetter = &Access{}

// NewAccess returns access to the control plane.
func (e *Env) NewAccess() *Access {
	flags := genericclioptions.NewConfigFlags(true).WithDiscoveryQPS(-1)
	conn := e.newConnection()
	conn.flags = flags
	conn.kubeconfig = (&ControlPlane{flags: flags}).KubeconfigPath
	flags.WithWrapConfigFn(conn.wrap)
	plane := &ControlPlane{flags: flags, connection: conn, name: e.Name, warnings: e.Escaped().ErrOut, limit: cmp.Or(e.Limits.Serve, member.ServeTimeout)}
	completion := &Completion{controlPlane: plane}
	return &Access{
		ControlPlane: plane, Complete: completion, Flags: &Flags{config: flags, complete: completion},
		Target: Target{Scope: Karmada}, prefix: &e.ErrorPrefix,
	}
}

func (e *Env) newConnection() *connection {
	answer := cmp.Or(e.Limits.Answer, answerLimit)
	probe := answer / probeShare
	return &connection{
		program: e.Name, last: &e.unreached, foreign: &e.foreign, unserved: &e.unserved, unadmitted: &e.unadmitted,
		defaults: limits{answer: answer, probe: probe, alive: cmp.Or(e.Limits.Alive, probe), total: answer + 2*probe},
	}
}

// unlimited leaves flow control to the server, which has priority and fairness.
func unlimited(c *rest.Config) *rest.Config {
	c.QPS, c.Burst = -1, 0
	return c
}

// AddTargetFlags adds --operation-scope and --cluster to a command.
func (a *Access) AddTargetFlags(cmd *cobra.Command) { a.Target.addFlags(cmd, a.Complete) }

// Connect validates the target and checks that the member exists. Error messages of the command have the prefix of the
// member from then on.
func (a *Access) Connect(ctx context.Context) error {
	if err := a.Target.Validate(); err != nil {
		return err
	}
	if a.Target.EffectiveScope() != Members {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, connectTimeout)
	defer cancel()
	if _, err := a.ControlPlane.Cluster(ctx, a.Target.Cluster); err != nil {
		return err
	}
	a.prefix.SetCluster(a.Target.Cluster)
	return nil
}

// Check wraps a command so that Connect is called before it runs.
func (a *Access) Check(cmd *cobra.Command) *cobra.Command {
	next := cmd.PreRunE
	cmd.PreRunE = func(c *cobra.Command, args []string) error {
		if err := a.Connect(c.Context()); err != nil {
			return err
		}
		if next != nil {
			return next(c, args)
		}
		return nil
	}
	return cmd
}

// UnlimitedClient returns a client of the control plane without a limit of requests, for commands that read much at a time.
func (a *Access) UnlimitedClient(ctx context.Context) (client.Client, error) {
	if _, err := a.ControlPlane.ReadClient(ctx); err != nil {
		return nil, err
	}
	config, err := a.ControlPlane.RESTConfig()
	if err != nil {
		return nil, err
	}
	mapper, err := a.ToRESTMapper()
	if err != nil {
		return nil, err
	}
	c, err := client.New(unlimited(rest.CopyConfig(config)), client.Options{Scheme: kube.NewScheme(), Mapper: mapper})
	if err != nil {
		return nil, fmt.Errorf("connecting to the control plane: %w", err)
	}
	return c, nil
}

// Factory returns kubectl's factory for the server.
func (a *Access) Factory() cmdutil.Factory { return cmdutil.NewFactory(a) }

// Namespace returns the namespace to work in, and whether the user named it.
func (a *Access) Namespace() (string, bool, error) {
	return a.ToRawKubeConfigLoader().Namespace()
}

// ToRawKubeConfigLoader returns the kubeconfig of the control plane.
func (a *Access) ToRawKubeConfigLoader() clientcmd.ClientConfig {
	return loader{clientConfig: a.ControlPlane.flags.ToRawKubeConfigLoader(), plane: a.ControlPlane}
}

type clientConfig = clientcmd.ClientConfig

// loader explains errors of a kubeconfig.
type loader struct {
	clientConfig
	plane *ControlPlane
}

// ClientConfig implements clientcmd.ClientConfig.
func (l loader) ClientConfig() (*rest.Config, error) {
	config, err := l.clientConfig.ClientConfig()
	return config, l.plane.misconfigured(err)
}

// Namespace implements clientcmd.ClientConfig.
func (l loader) Namespace() (namespace string, named bool, err error) {
	namespace, named, err = l.clientConfig.Namespace()
	return namespace, named, l.plane.misconfigured(err)
}

// ToRESTConfig returns the configuration of clients of the server.
func (a *Access) ToRESTConfig() (*rest.Config, error) {
	if a.Target.EffectiveScope() != Members {
		config, err := a.ControlPlane.RESTConfig()
		if err != nil {
			return nil, err
		}
		return withDefaults(config), nil
	}
	config, err := a.ControlPlane.MemberConfig(a.Target.Cluster)
	if err != nil {
		return nil, err
	}
	if config = withDefaults(config); a.guarded {
		return access.Guard(config), nil
	}
	return access.GuardIdentity(config), nil
}

// withDefaults sets the fields that kubectl's commands expect.
func withDefaults(config *rest.Config) *rest.Config {
	config.GroupVersion = &schema.GroupVersion{Version: "v1"}
	config.APIPath = "/api"
	config.NegotiatedSerializer = scheme.Codecs.WithoutConversion()
	return config
}

// ToDiscoveryClient returns a client for the types that the server serves, cached on disk.
func (a *Access) ToDiscoveryClient() (discovery.CachedDiscoveryInterface, error) {
	if a.Target.EffectiveScope() != Members {
		client, err := a.ControlPlane.flags.ToDiscoveryClient()
		return client, a.ControlPlane.misconfigured(err)
	}
	config, err := a.ToRESTConfig()
	if err != nil {
		return nil, err
	}
	return cachedDiscovery(config)
}

func cachedDiscovery(config *rest.Config) (discovery.CachedDiscoveryInterface, error) {
	base := cmp.Or(os.Getenv("KUBECACHEDIR"), filepath.Join(homedir.HomeDir(), ".kube", "cache"))
	host := regexp.MustCompile(`^https?://`).ReplaceAllString(config.Host, "")
	host = regexp.MustCompile(`[^(\w/.)]`).ReplaceAllString(host, "_")
	return disk.NewCachedDiscoveryClientForConfig(config, filepath.Join(base, "discovery", host), filepath.Join(base, "http"), discoveryTTL)
}

// ToRESTMapper returns the types that the server serves.
func (a *Access) ToRESTMapper() (meta.RESTMapper, error) {
	if a.Target.EffectiveScope() != Members {
		return a.ControlPlane.RESTMapper()
	}
	client, err := a.ToDiscoveryClient()
	if err != nil {
		return nil, err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.mapper == nil {
		a.mapper = restmapper.NewShortcutExpander(restmapper.NewDeferredDiscoveryRESTMapper(client), client, func(string) {})
	}
	return a.mapper, nil
}

// MemberAccess returns access to one of several members, with the flags of a. It does not check that the member
// exists. The sizes of its responses are limited.
func (a *Access) MemberAccess(cluster string) *Access {
	return &Access{
		ControlPlane: a.ControlPlane, Flags: a.Flags, Complete: a.Complete, prefix: a.prefix, guarded: true,
		Target: Target{Scope: Members, Cluster: cluster},
	}
}

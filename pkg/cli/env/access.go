package env

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
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

	"github.com/karmada-toolkit/karmada/pkg/member/access"
)

// discoveryTTL is how long what a server offers is believed.
const discoveryTTL = 6 * time.Hour

// Access is the way to a server: the control plane, or a member through it. It is
// the RESTClientGetter of kubectl's factories, so that kubectl's commands work on
// whatever the flags chose.
type Access struct {
	env   *Env
	flags *genericclioptions.ConfigFlags

	// Scope is Karmada for the control plane and Members for the member Cluster.
	Scope Scope
	// Cluster is the name of the member.
	Cluster string
	// scopeGiven reports whether the command line has --operation-scope; nil for
	// commands without the flag.
	scopeGiven func() bool

	member sync.Mutex
	config *rest.Config
	mapper meta.RESTMapper
}

var _ genericclioptions.RESTClientGetter = &Access{}

// NewAccess returns access to the control plane.
func (e *Env) NewAccess() *Access {
	flags := genericclioptions.NewConfigFlags(true).WithDiscoveryQPS(-1).WithWrapConfigFn(unlimited)
	return &Access{env: e, flags: flags, Scope: Karmada}
}

// unlimited leaves the pace to the server, which has priority and fairness.
func unlimited(c *rest.Config) *rest.Config {
	c.QPS, c.Burst = -1, 0
	return c
}

// AddFlags adds --kubeconfig and --karmada-context to a command.
func (a *Access) AddFlags(cmd *cobra.Command) *Access {
	a.addFlags(cmd, false)
	return a
}

// AddNamespaceFlag adds --namespace to a command.
func (a *Access) AddNamespaceFlag(cmd *cobra.Command) *Access {
	cmd.Flags().StringVarP(a.flags.Namespace, "namespace", "n", "", "If present, the namespace scope for this CLI request.")
	complete(cmd, "namespace", a.CompleteNamespaces)
	return a
}

// AddContextFlag adds --context, the name that kubectl has for --karmada-context.
func (a *Access) AddContextFlag(cmd *cobra.Command) *Access {
	cmd.Flags().StringVar(a.flags.Context, "context", "", "The same as --karmada-context, as kubectl has it.")
	complete(cmd, "context", a.CompleteContexts)
	return a
}

// AddPersistentFlags adds the flags to a command and all below it.
func (a *Access) AddPersistentFlags(cmd *cobra.Command) *Access {
	a.addFlags(cmd, true)
	cmd.PersistentFlags().StringVarP(a.flags.Namespace, "namespace", "n", "", "If present, the namespace scope for this CLI request.")
	complete(cmd, "namespace", a.CompleteNamespaces)
	return a
}

func (a *Access) addFlags(cmd *cobra.Command, persistent bool) {
	fs := cmd.Flags()
	if persistent {
		fs = cmd.PersistentFlags()
	}
	fs.StringVar(a.flags.KubeConfig, "kubeconfig", "", "Path to the kubeconfig file of the control plane; default $KUBECONFIG, then ~/.kube/config.")
	fs.StringVar(a.flags.Context, "karmada-context", "", "Name of the kubeconfig context of the control plane; default the current one.")
	complete(cmd, "karmada-context", a.CompleteContexts)
}

// AddScopeFlags adds --operation-scope, for the control plane or one member, and
// --cluster. A cluster that is named without a scope implies the scope Members.
func (a *Access) AddScopeFlags(cmd *cobra.Command) *Access {
	AddScopeFlag(cmd, &a.Scope, "Whether the command is about the control plane or a member: karmada or members. With --cluster, the default is members.", string(Karmada), string(Members))
	cmd.Flags().StringVarP(&a.Cluster, "cluster", "C", "", "Name of the member cluster.")
	complete(cmd, "cluster", a.CompleteClusters)
	a.scopeGiven = func() bool { return cmd.Flags().Changed("operation-scope") }
	return a
}

// ScopeGiven reports whether the command line has --operation-scope.
func (a *Access) ScopeGiven() bool { return a.scopeGiven != nil && a.scopeGiven() }

// InForce returns the scope in force: that of the flag, or Members if only a cluster
// is named.
func (a *Access) InForce() Scope {
	if a.Scope == Karmada && a.Cluster != "" && a.scopeGiven != nil && !a.scopeGiven() {
		return Members
	}
	return a.Scope
}

// Impersonate binds the flags of a command that acts as somebody else in the
// control plane.
func (a *Access) Impersonate(cmd *cobra.Command) *Access {
	fs := cmd.Flags()
	fs.StringVar(a.flags.Impersonate, "karmada-as", "", "Username to impersonate in the control plane; a user or a service account in a namespace.")
	fs.StringArrayVar(a.flags.ImpersonateGroup, "karmada-as-group", []string{}, "Group to impersonate in the control plane; repeat it for several.")
	fs.StringVar(a.flags.ImpersonateUID, "karmada-as-uid", "", "UID to impersonate in the control plane.")
	return a
}

// Validate returns an error unless the flags choose a server that the command can
// work on.
func (a *Access) Validate() error {
	scope := a.InForce()
	if err := scope.Require(Karmada, Members); err != nil {
		return err
	}
	if scope == Members && a.Cluster == "" {
		return fmt.Errorf("must specify a member cluster; name it with --cluster")
	}
	return nil
}

// Check wraps a command so that Validate is called before it runs.
func (a *Access) Check(cmd *cobra.Command) *cobra.Command {
	next := cmd.PreRunE
	cmd.PreRunE = func(c *cobra.Command, args []string) error {
		if err := a.Validate(); err != nil {
			return err
		}
		if next != nil {
			return next(c, args)
		}
		return nil
	}
	return cmd
}

// Factory returns kubectl's factory for the server.
func (a *Access) Factory() cmdutil.Factory { return cmdutil.NewFactory(a) }

// Namespace returns the namespace to work in, and whether the user named it.
func (a *Access) Namespace() (string, bool, error) {
	return a.ToRawKubeConfigLoader().Namespace()
}

// ToRawKubeConfigLoader returns the kubeconfig of the control plane.
func (a *Access) ToRawKubeConfigLoader() clientcmd.ClientConfig {
	return a.flags.ToRawKubeConfigLoader()
}

// ToRESTConfig returns how to reach the server.
func (a *Access) ToRESTConfig() (*rest.Config, error) {
	if a.InForce() != Members {
		config, err := a.flags.ToRESTConfig()
		if err != nil {
			return nil, err
		}
		return withDefaults(config), nil
	}
	a.member.Lock()
	defer a.member.Unlock()
	if a.config == nil {
		config, err := a.lookUpMember()
		if err != nil {
			return nil, err
		}
		a.config = withDefaults(config)
		a.env.blamed = a.Cluster
	}
	return rest.CopyConfig(a.config), nil
}

// withDefaults adds what kubectl's commands expect to be set.
func withDefaults(config *rest.Config) *rest.Config {
	config.GroupVersion = &schema.GroupVersion{Version: "v1"}
	config.APIPath = "/api"
	config.NegotiatedSerializer = scheme.Codecs.WithoutConversion()
	return config
}

func (a *Access) lookUpMember() (*rest.Config, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	if _, err := a.GetCluster(ctx, a.Cluster); err != nil {
		return nil, err
	}
	return a.MemberConfig(a.Cluster)
}

// MemberConfig returns how to reach a member through the control plane. It does
// not look whether there is one of that name.
func (a *Access) MemberConfig(cluster string) (*rest.Config, error) {
	config, err := a.flags.ToRESTConfig()
	if err != nil {
		return nil, err
	}
	config = rest.CopyConfig(config)
	config.Host = strings.TrimRight(config.Host, "/") + "/apis/cluster.karmada.io/v1alpha1/clusters/" + cluster + "/proxy"
	return config, nil
}

// ToDiscoveryClient returns what the server offers, from a cache on disk when
// that is fresh.
func (a *Access) ToDiscoveryClient() (discovery.CachedDiscoveryInterface, error) {
	if a.InForce() != Members {
		return a.flags.ToDiscoveryClient()
	}
	config, err := a.ToRESTConfig()
	if err != nil {
		return nil, err
	}
	return cachedDiscovery(config)
}

func cachedDiscovery(config *rest.Config) (discovery.CachedDiscoveryInterface, error) {
	base := os.Getenv("KUBECACHEDIR")
	if base == "" {
		base = filepath.Join(homedir.HomeDir(), ".kube", "cache")
	}
	host := regexp.MustCompile(`^https?://`).ReplaceAllString(config.Host, "")
	host = regexp.MustCompile(`[^(\w/.)]`).ReplaceAllString(host, "_")
	return disk.NewCachedDiscoveryClientForConfig(config, filepath.Join(base, "discovery", host), filepath.Join(base, "http"), discoveryTTL)
}

// ToRESTMapper returns the types that the server knows.
func (a *Access) ToRESTMapper() (meta.RESTMapper, error) {
	if a.InForce() != Members {
		return a.flags.ToRESTMapper()
	}
	client, err := a.ToDiscoveryClient()
	if err != nil {
		return nil, err
	}
	a.member.Lock()
	defer a.member.Unlock()
	if a.mapper == nil {
		a.mapper = restmapper.NewShortcutExpander(restmapper.NewDeferredDiscoveryRESTMapper(client), client, func(string) {})
	}
	return a.mapper, nil
}

// ToControlPlaneRESTMapper returns the types that the control plane knows, whatever
// the scope.
func (a *Access) ToControlPlaneRESTMapper() (meta.RESTMapper, error) {
	return a.flags.ToRESTMapper()
}

// MemberAccess returns access to one member of several, with the flags of a. It
// does not look whether there is one of that name. Answers of the member have limits.
func (a *Access) MemberAccess(cluster string) (*Access, error) {
	config, err := a.MemberConfig(cluster)
	if err != nil {
		return nil, err
	}
	return &Access{env: a.env, flags: a.flags, Scope: Members, Cluster: cluster, config: access.Guard(withDefaults(config))}, nil
}

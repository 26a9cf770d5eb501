package env

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"os"
	"slices"
	"strings"

	"github.com/spf13/pflag"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/karmada-toolkit/karmada/pkg/member"
)

// Kubeconfig names one context of one kubeconfig: a server that is not the control
// plane.
type Kubeconfig struct {
	// Flag is the flag that sets Path, for errors.
	Flag string
	// Path of the file; empty is $KUBECONFIG, whose files are merged, then
	// ~/.kube/config, then the credentials of the pod the program runs in.
	Path string
	// Context of the file; empty is the current one.
	Context string

	overrides clientcmd.ConfigOverrides
}

// Load returns how to reach the server.
func (k Kubeconfig) Load() (*rest.Config, error) {
	rules, raw, err := k.read()
	if err != nil {
		return nil, k.failed(err)
	}
	switch name := k.context(raw); {
	case clientcmdapi.IsConfigEmpty(raw) && k.overrides.ClusterInfo.Server == "":
		return k.inCluster()
	case raw.Contexts[name] == nil && !clientcmdapi.IsConfigEmpty(raw):
		return nil, k.noContext(raw, name)
	}
	config, err := clientcmd.NewNonInteractiveClientConfig(*raw, k.context(raw), &k.overrides, rules).ClientConfig()
	if err != nil {
		return nil, k.failed(err)
	}
	return unlimited(config), nil
}

// Load is Kubeconfig.Load for a server that a command works with: one that does not answer is reported as the control
// plane would be.
func (e *Env) Load(k Kubeconfig) (*rest.Config, error) {
	config, err := k.Load()
	if err != nil {
		return nil, err
	}
	conn := e.newConnection()
	conn.kubeconfig = k.location
	return conn.wrap(config), nil
}

// RequireControlPlane waits for a control plane that does not serve the API of member clusters. k names its kubeconfig;
// without a path it is reached otherwise.
func (e *Env) RequireControlPlane(ctx context.Context, config *rest.Config, k Kubeconfig) error {
	err := member.RequireControlPlane(ctx, config, cmp.Or(e.Limits.Serve, member.ServeTimeout), e.SayLine)
	if err == nil || ConnectionFailure(err) != nil {
		return err
	}
	conn := e.newConnection()
	conn.choose = k.Flag
	if k.Path != "" {
		conn.kubeconfig = k.location
	}
	host := config.Host
	if u, urlErr := url.Parse(host); urlErr == nil && u.Host != "" {
		host = u.Host
	}
	switch {
	case errors.Is(err, member.ErrUnserved):
		return conn.notServed(host, err)
	case member.APIMissing(err):
		return conn.noControlPlane(host, err)
	}
	return err
}

// location returns the path of the file that has the context, or "" if there is none.
func (k Kubeconfig) location() string {
	_, raw, err := k.read()
	if err != nil {
		return ""
	}
	if c := raw.Contexts[k.context(raw)]; c != nil {
		return c.LocationOfOrigin
	}
	return ""
}

// LocalFederation returns the federation of this machine that the kubeconfig belongs to, and the directory of all
// federations; both are "" if there is none.
func (k Kubeconfig) LocalFederation() (root, name string) { return federationOf(k.location()) }

// HostError adds to the error about a host cluster that is a control plane what to do with a local federation.
func (e *Env) HostError(k Kubeconfig, err error) error {
	if root, name := k.LocalFederation(); name != "" && errors.Is(err, member.ErrIsControlPlane) {
		return fmt.Errorf("%w; the local federation %q has no host cluster: %q and %q change it",
			err, name, e.Name+" local up"+localFlags(root, name), e.Name+" local down"+localFlags(root, name))
	}
	return err
}

// AddRequestFlags adds the flags of kubectl for all requests, which its help does not repeat for each command.
func (k *Kubeconfig) AddRequestFlags(fs *pflag.FlagSet) {
	o := &k.overrides
	addRequestFlags(fs, &o.Timeout, &o.ClusterInfo.Server, &o.AuthInfo.Impersonate, &o.AuthInfo.ImpersonateGroups)
}

// UseTimeoutOf has requests take no longer than those with another kubeconfig.
func (k *Kubeconfig) UseTimeoutOf(other Kubeconfig) { k.overrides.Timeout = other.overrides.Timeout }

// AddHostFlags adds the flags of the kubeconfig of a host cluster.
func (k *Kubeconfig) AddHostFlags(fs *pflag.FlagSet) {
	fs.StringVar(&k.Path, "kubeconfig", k.Path, "Path to the kubeconfig of the host cluster; default $KUBECONFIG, then ~/.kube/config.")
	fs.StringVar(&k.Context, "context", k.Context, "Context of the kubeconfig of the host cluster; default the current one.")
	k.AddRequestFlags(fs)
}

// AddHostNamespace adds the flag of the namespace of a control plane.
func AddHostNamespace(fs *pflag.FlagSet, namespace *string) {
	fs.StringVarP(namespace, "namespace", "n", *namespace, "Namespace of the control plane in the host cluster.")
}

// Alone returns the kubeconfig with nothing but the context, which becomes the current one, and with the content of
// the files that it names. Credentials that a program of this machine provides are an error.
func (k Kubeconfig) Alone() (*clientcmdapi.Config, error) {
	_, raw, err := k.read()
	if err != nil {
		return nil, k.failed(err)
	}
	name := k.context(raw)
	if raw.Contexts[name] == nil {
		return nil, k.noContext(raw, name)
	}
	raw.CurrentContext = name
	if err := clientcmdapi.MinifyConfig(raw); err != nil {
		return nil, k.failed(err)
	}
	if err := clientcmdapi.FlattenConfig(raw); err != nil {
		return nil, k.failed(err)
	}
	for user, auth := range raw.AuthInfos {
		if auth.Exec != nil || auth.AuthProvider != nil {
			return nil, k.failed(fmt.Errorf("a program of this machine provides the credentials of user %q, which pods cannot run: use a kubeconfig with a token or a client certificate", user))
		}
		if auth.TokenFile != "" {
			token, err := os.ReadFile(auth.TokenFile)
			if err != nil {
				return nil, k.failed(err)
			}
			auth.Token, auth.TokenFile = strings.TrimSpace(string(token)), ""
		}
	}
	return raw, nil
}

// ClusterName returns what the kubeconfig calls the cluster.
func (k Kubeconfig) ClusterName() (string, error) {
	_, raw, err := k.read()
	if err != nil {
		return "", k.failed(err)
	}
	if c := raw.Contexts[k.context(raw)]; c != nil {
		return c.Cluster, nil
	}
	return "", nil
}

// HasContext reports whether the kubeconfig has a context of a name.
func (k Kubeconfig) HasContext(name string) bool {
	k.Context = name
	_, err := k.Load()
	return err == nil
}

// ContextName returns the name of the context; empty if the kubeconfig cannot be read
// or has none.
func (k Kubeconfig) ContextName() string {
	_, raw, err := k.read()
	if err != nil {
		return ""
	}
	return k.context(raw)
}

// ContextNames returns the contexts of the kubeconfig that begin with prefix, sorted;
// none if it cannot be read.
func (k Kubeconfig) ContextNames(prefix string) []string {
	_, raw, err := k.read()
	if err != nil {
		return nil
	}
	return matching(slices.Sorted(maps.Keys(raw.Contexts)), prefix)
}

// read returns the merged files and how they were found.
func (k Kubeconfig) read() (*clientcmd.ClientConfigLoadingRules, *clientcmdapi.Config, error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = k.Path
	raw, err := rules.Load()
	return rules, raw, err
}

func (k Kubeconfig) context(raw *clientcmdapi.Config) string {
	return cmp.Or(k.Context, raw.CurrentContext)
}

func (k Kubeconfig) failed(err error) error {
	if k.Path == "" {
		return fmt.Errorf("reading the kubeconfig: %w; name one with %s", err, k.Flag)
	}
	return fmt.Errorf("reading the kubeconfig of %s %q: %w", k.Flag, k.Path, err)
}

func (k Kubeconfig) noContext(raw *clientcmdapi.Config, name string) error {
	known := strings.Join(slices.Sorted(maps.Keys(raw.Contexts)), ", ")
	if name == "" {
		return k.failed(fmt.Errorf("no current context; choose one of: %s", known))
	}
	return k.failed(fmt.Errorf("context %q does not exist; there are: %s", name, known))
}

func (k Kubeconfig) inCluster() (*rest.Config, error) {
	if os.Getenv("KUBERNETES_SERVICE_HOST") != "" || os.Getenv("KUBERNETES_SERVICE_PORT") != "" {
		config, err := rest.InClusterConfig()
		if err != nil {
			return nil, fmt.Errorf("reading the credentials of this pod: %w", err)
		}
		return unlimited(config), nil
	}
	return nil, errors.New(cmp.Or(missingKubeconfig(k.Flag), noKubeconfigWith(k.Flag)))
}

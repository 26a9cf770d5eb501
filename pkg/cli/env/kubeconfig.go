package env

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
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
}

// Load returns how to reach the server.
func (k Kubeconfig) Load() (*rest.Config, error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = k.Path
	raw, err := rules.Load()
	if err != nil {
		return nil, k.failed(err)
	}
	if clientcmdapi.IsConfigEmpty(raw) {
		return k.inCluster()
	}
	if name := k.context(raw); raw.Contexts[name] == nil {
		return nil, k.noContext(raw, name)
	}
	config, err := clientcmd.NewNonInteractiveClientConfig(*raw, k.context(raw), &clientcmd.ConfigOverrides{}, rules).ClientConfig()
	if err != nil {
		return nil, k.failed(err)
	}
	return unlimited(config), nil
}

// ClusterName returns what the kubeconfig calls the cluster.
func (k Kubeconfig) ClusterName() (string, error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = k.Path
	raw, err := rules.Load()
	if err != nil {
		return "", k.failed(err)
	}
	if c := raw.Contexts[k.context(raw)]; c != nil {
		return c.Cluster, nil
	}
	return "", nil
}

// ContextName returns the name of the context; empty if the kubeconfig cannot be read
// or has none.
func (k Kubeconfig) ContextName() string {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = k.Path
	raw, err := rules.Load()
	if err != nil {
		return ""
	}
	return k.context(raw)
}

// ContextNames returns the contexts of the kubeconfig that begin with prefix, sorted;
// none if it cannot be read.
func (k Kubeconfig) ContextNames(prefix string) []string {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = k.Path
	raw, err := rules.Load()
	if err != nil {
		return nil
	}
	return matching(slices.Sorted(maps.Keys(raw.Contexts)), prefix)
}

func (k Kubeconfig) context(raw *clientcmdapi.Config) string {
	if k.Context != "" {
		return k.Context
	}
	return raw.CurrentContext
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
	return nil, errors.New("Missing or incomplete configuration info.  Please point to an existing, complete config file:\n\n" +
		"  1. Via the command-line flag " + k.Flag + "\n" +
		"  2. Via the KUBECONFIG environment variable\n" +
		"  3. In your home directory as ~/.kube/config\n")
}

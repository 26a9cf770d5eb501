package kindcluster

import (
	"fmt"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/karmada-toolkit/karmada/internal/pki"
)

// saveKubeconfig writes the kubeconfig of a kind cluster, with the name of the
// cluster in the federation as its context.
func saveKubeconfig(lib library, r *record, cluster string) error {
	name := r.kindName(cluster)
	text, err := lib.KubeConfig(name, false)
	if err != nil {
		return fmt.Errorf("reading the kubeconfig of kind cluster %q: %w", name, err)
	}
	cfg, err := clientcmd.Load([]byte(text))
	if err != nil {
		return fmt.Errorf("reading the kubeconfig of kind cluster %q: %w", name, err)
	}
	return pki.WriteKubeconfig(r.kubeconfig(cluster), renameContext(cfg, cluster))
}

// renameContext gives the current context of a kubeconfig another name, and its
// cluster and user as well.
func renameContext(cfg *clientcmdapi.Config, name string) *clientcmdapi.Config {
	out := clientcmdapi.NewConfig()
	current, ok := cfg.Contexts[cfg.CurrentContext]
	if !ok {
		return out
	}
	renamed := current.DeepCopy()
	renamed.Cluster, renamed.AuthInfo = name, name
	out.Contexts[name] = renamed
	if c, ok := cfg.Clusters[current.Cluster]; ok {
		out.Clusters[name] = c
	}
	if u, ok := cfg.AuthInfos[current.AuthInfo]; ok {
		out.AuthInfos[name] = u
	}
	out.CurrentContext = name
	return out
}

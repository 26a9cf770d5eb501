package federation

import (
	"fmt"
	"os"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/karmada-toolkit/karmada/internal/pki"
)

// WriteKubeconfig writes the kubeconfig of a federation with the contexts of the
// kubeconfigs at paths.
func (d Dir) WriteKubeconfig(paths []string) error {
	all := clientcmdapi.NewConfig()
	for _, path := range paths {
		one, err := clientcmd.LoadFromFile(path)
		if err != nil {
			return fmt.Errorf("reading kubeconfig %s: %w", path, err)
		}
		pki.MergeKubeconfig(all, one)
	}
	all.CurrentContext = ControlPlane
	return pki.WriteKubeconfig(d.Kubeconfig(), all)
}

// DropContext removes a member from the kubeconfig of a federation.
func (d Dir) DropContext(member string) error {
	all, err := clientcmd.LoadFromFile(d.Kubeconfig())
	if os.IsNotExist(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("reading the kubeconfig of federation %q: %w", d.name(), err)
	}
	removeContext(all, member)
	return pki.WriteKubeconfig(d.Kubeconfig(), all)
}

// removeContext removes a context with its cluster and user, which no other context has.
func removeContext(all *clientcmdapi.Config, name string) {
	if context := all.Contexts[name]; context != nil {
		delete(all.Clusters, context.Cluster)
		delete(all.AuthInfos, context.AuthInfo)
	}
	delete(all.Contexts, name)
}

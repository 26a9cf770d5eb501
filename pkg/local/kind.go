package local

import (
	"fmt"
	"path/filepath"
	"strings"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/kind/pkg/cluster"
	"sigs.k8s.io/kind/pkg/cluster/nodes"

	"github.com/karmada-toolkit/karmada/internal/pki"
)

// hostCluster is the cluster that the control plane of a federation of kind
// clusters runs on.
const hostCluster = "host"

// kindLibrary is the part of the kind library that federations use.
type kindLibrary interface {
	Create(name string, options ...cluster.CreateOption) error
	Delete(name, kubeconfig string) error
	List() ([]string, error)
	KubeConfig(name string, internal bool) (string, error)
	ListNodes(name string) ([]nodes.Node, error)
}

// kindState is what a federation remembers of its kind clusters.
type kindState struct {
	// Complete has the clusters that this federation made or began to make: false
	// until the cluster was complete.
	Complete map[string]bool `json:"complete,omitempty"`
	// NodeImage is the image of the nodes; empty means that of the configuration, or
	// kind's default.
	NodeImage string `json:"nodeImage,omitempty"`
	// Config is the kind configuration that clusters are made from, as YAML.
	Config string `json:"config,omitempty"`
	// Image is the image of the control plane that the host has.
	Image string `json:"image,omitempty"`
	// Port is the port of the control plane on the host's node.
	Port int `json:"port,omitempty"`
}

// kindName is the name of a kind cluster of the federation. Unlike the name in the
// federation it is unique on the machine.
func (f *Federation) kindName(member string) string {
	if f.Name == DefaultName {
		return "karmada-" + member
	}
	return "karmada-" + f.Name + "-" + member
}

// kindKubeconfig is the path of the kubeconfig of a kind cluster.
func (f *Federation) kindKubeconfig(member string) string {
	return filepath.Join(f.dir, clustersDir, member+".kubeconfig")
}

// kindEndpoint is where the control plane reaches a member: by the name of its
// node, which stays when its address changes.
func (f *Federation) kindEndpoint(member string) string {
	return "https://" + f.kindName(member) + "-control-plane:6443"
}

// installDir is where the installation of the control plane keeps its files.
func (f *Federation) installDir() string { return filepath.Join(f.dir, karmadaDir) }

// controlKubeconfig is the path of the kubeconfig that the installation writes.
func (f *Federation) controlKubeconfig() string {
	return filepath.Join(f.installDir(), "karmada-apiserver.config")
}

// kindClusters are the clusters of the federation, in the order in which they are
// shown.
func (f *Federation) kindClusters() []string { return append([]string{hostCluster}, f.Members...) }

// saveKindKubeconfig writes the kubeconfig of a kind cluster with the name it has
// in the federation as its context.
func (f *Federation) saveKindKubeconfig(lib kindLibrary, member string) error {
	text, err := lib.KubeConfig(f.kindName(member), false)
	if err != nil {
		return fmt.Errorf("reading the kubeconfig of kind cluster %q: %w", f.kindName(member), err)
	}
	cfg, err := clientcmd.Load([]byte(text))
	if err != nil {
		return fmt.Errorf("reading the kubeconfig of kind cluster %q: %w", f.kindName(member), err)
	}
	return pki.WriteKubeconfig(f.kindKubeconfig(member), renameContext(cfg, member))
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

// runtimeOf is the runtime of a federation; those of before there was a choice are
// processes.
func (f *Federation) runtimeOf() string {
	if f.Runtime == "" {
		return RuntimeProcess
	}
	return f.Runtime
}

// Runtimes are what the clusters of a federation may be.
func Runtimes() []string { return []string{RuntimeProcess, RuntimeKind} }

// checkRuntime says why what is requested does not fit the federation.
func (f *Federation) checkRuntime(r UpRequest) error {
	is := f.runtimeOf()
	if r.Runtime != "" && r.Runtime != is {
		return fmt.Errorf("federation %q has the runtime %q, not %q: choose another name with --name, or remove it with \"local down --purge\" and start again", f.Name, is, r.Runtime)
	}
	if is != RuntimeKind && !r.Kind.empty() {
		return fmt.Errorf("a node image, an image or a kind configuration needs --runtime %s", RuntimeKind)
	}
	if is == RuntimeKind && (len(r.Set) > 0 || r.FeatureGates != nil) {
		return fmt.Errorf("--set and --feature-gates need --runtime %s: in the runtime %q the control plane is installed as \"init\" does it, and flags are set in its Deployments", RuntimeProcess, RuntimeKind)
	}
	if is == RuntimeKind && (r.Nodes >= 0 || r.NodeCPU != "" || r.NodeMemory != "" || r.NodePods > 0) {
		return fmt.Errorf("the runtime %q has no simulated nodes: leave out --nodes and --node-…, or list the nodes in a kind configuration", RuntimeKind)
	}
	return nil
}

// validateRuntime says why a runtime does not exist.
func validateRuntime(name string) error {
	for _, r := range Runtimes() {
		if name == r || name == "" {
			return nil
		}
	}
	return fmt.Errorf("there is no runtime %q; use one of %s", name, strings.Join(Runtimes(), ", "))
}

package federation

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/karmada-toolkit/karmada/internal/pki"
	"github.com/karmada-toolkit/karmada/internal/private"
)

// ErrNotFound is returned for a federation that does not exist.
var ErrNotFound = errors.New("there is no such federation")

// DefaultRoot returns the directory under which federations are kept unless a
// user names another: karmada/local in $XDG_STATE_HOME, by default
// ~/.local/state.
func DefaultRoot(getenv func(string) string) (string, error) {
	root, err := private.Federations(getenv)
	if err != nil {
		return "", fmt.Errorf("finding a directory for the federation: %w; name one with --dir", err)
	}
	return root, nil
}

// ValidateName returns an error if a name cannot be that of a federation.
func ValidateName(name string) error {
	if msgs := validation.IsDNS1123Label(name); len(msgs) > 0 {
		return fmt.Errorf("invalid federation name %q: %s; choose another with --name", name, strings.Join(msgs, "; "))
	}
	return nil
}

// Load reads the federation name under root, or returns ErrNotFound.
func Load(root, name string) (*Federation, error) {
	if err := ValidateName(name); err != nil {
		return nil, err
	}
	dir := Dir(filepath.Join(root, name))
	err := check(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("reading federation %q: %w with --dir", name, err)
	}
	data, err := private.ReadFile(dir.file(stateFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("federation %q in %s: %w; \"local up\" starts one, \"local list\" shows those there are", name, root, ErrNotFound)
	}
	if err != nil {
		return nil, fmt.Errorf("reading federation %q: %w", name, err)
	}
	f := &Federation{}
	if err := json.Unmarshal(data, f); err != nil {
		return nil, damaged(dir, err)
	}
	f.dir = dir
	// Earlier versions had no other runtime and recorded none.
	f.Runtime = cmp.Or(f.Runtime, RuntimeProcess)
	if err := f.validate(); err != nil {
		return nil, damaged(dir, err)
	}
	return f, nil
}

// List reads the names of the federations under root, sorted. Those of other users are left out.
func List(root string) ([]string, error) {
	entries, err := os.ReadDir(root)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("listing federations: %w", err)
	}
	var out []string
	for _, e := range entries {
		dir := Dir(filepath.Join(root, e.Name()))
		if _, err := os.Stat(dir.file(stateFile)); err == nil && private.CheckDir(string(dir)) == nil {
			out = append(out, e.Name())
		}
	}
	return out, nil
}

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

// HasContext reports whether the kubeconfig of a federation has a member, as it has at the end of each start.
func (d Dir) HasContext(member string) bool {
	all, err := clientcmd.LoadFromFile(d.Kubeconfig())
	return err == nil && all.Contexts[member] != nil
}

// removeContext removes a context with its cluster and user, which no other context has.
func removeContext(all *clientcmdapi.Config, name string) {
	if context := all.Contexts[name]; context != nil {
		delete(all.Clusters, context.Cluster)
		delete(all.AuthInfos, context.AuthInfo)
	}
	delete(all.Contexts, name)
}

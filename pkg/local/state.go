package local

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/karmada-toolkit/karmada/internal/pki"
	"github.com/karmada-toolkit/karmada/internal/private"
)

// The names of files in the directory of a federation.
const (
	stateFile      = "federation.json"
	lockFile       = "lock"
	kubeconfigFile = "kubeconfig"
	logsDir        = "logs"
	processesDir   = "processes"
	karmadaDir     = "karmada"
	clustersDir    = "clusters"
)

// The names of the processes that are no members.
const (
	controlPlane = "karmada-apiserver"
	rolesProcess = "karmada"
)

// What the clusters of a federation are.
const (
	// RuntimeProcess is a process for each cluster, with simulated nodes.
	RuntimeProcess = "process"
	// RuntimeKind is a kind cluster for each, with real nodes in containers.
	RuntimeKind = "kind"
)

// DefaultName is the name of a federation that is given none.
const DefaultName = "default"

// memberPrefix is what the names of members begin with.
const memberPrefix = "member"

// maxMembers keeps a slip of the finger from starting hundreds of clusters.
const maxMembers = 100

// ErrNoFederation is returned for a federation that does not exist.
var ErrNoFederation = errors.New("there is no such federation")

// Federation is a federation and where it lives.
type Federation struct {
	// Name of the federation.
	Name string `json:"name"`
	// Members are the names of the member clusters, in order.
	Members []string `json:"members"`
	// Pull are the members in Pull mode.
	Pull []string `json:"pull,omitempty"`
	// Nodes is the number of simulated nodes of each member.
	Nodes int `json:"nodes"`
	// NodeCPU, NodeMemory and NodePods are the size of each simulated node; empty or 0 means the server's default.
	NodeCPU    string `json:"nodeCPU,omitempty"`
	NodeMemory string `json:"nodeMemory,omitempty"`
	NodePods   int    `json:"nodePods,omitempty"`
	// Set are flags of the roles and agents, as ROLE.FLAG=VALUE, sorted.
	Set []string `json:"set,omitempty"`
	// FeatureGates are the feature gates of the roles and agents, as NAME=true,NAME=false, and RoleGates those of
	// them that each role knows.
	FeatureGates string            `json:"featureGates,omitempty"`
	RoleGates    map[string]string `json:"roleGates,omitempty"`
	// Ports of the control plane's processes by name.
	Ports map[string]int `json:"ports"`
	// Created is when it was first started.
	Created time.Time `json:"created"`
	// Runtime is what the clusters are; empty means RuntimeProcess.
	Runtime string `json:"runtime,omitempty"`
	// Kind is set for RuntimeKind only.
	Kind *kindState `json:"kind,omitempty"`

	dir string
}

// DefaultRoot returns the directory under which federations are kept unless a
// user names another: karmada/local in $XDG_STATE_HOME, by default
// ~/.local/state.
func DefaultRoot(getenv func(string) string) (string, error) {
	if dir := getenv("XDG_STATE_HOME"); filepath.IsAbs(dir) {
		return filepath.Join(dir, "karmada", "local"), nil
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return "", fmt.Errorf("finding a directory for the federation: %w; name one with --dir", err)
	}
	return filepath.Join(home, ".local", "state", "karmada", "local"), nil
}

// ValidateName says why a name cannot be that of a federation.
func ValidateName(name string) error {
	if msgs := validation.IsDNS1123Label(name); len(msgs) > 0 {
		return fmt.Errorf("invalid federation name %q: %s; choose another with --name", name, strings.Join(msgs, "; "))
	}
	return nil
}

// Load reads the federation name under root, or returns ErrNoFederation.
func Load(root, name string) (*Federation, error) {
	if err := ValidateName(name); err != nil {
		return nil, err
	}
	dir := filepath.Join(root, name)
	err := checkDirs(root, dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("reading federation %q: %w with --dir", name, err)
	}
	data, err := private.ReadFile(filepath.Join(dir, stateFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("federation %q in %s: %w; \"local up\" starts one, \"local list\" shows those there are", name, root, ErrNoFederation)
	}
	if err != nil {
		return nil, fmt.Errorf("reading federation %q: %w", name, err)
	}
	f := &Federation{}
	if err := json.Unmarshal(data, f); err != nil {
		return nil, fmt.Errorf("reading federation %q: %s is damaged: %w; end its processes, remove %s and start again", name, filepath.Join(dir, stateFile), err, dir)
	}
	f.dir = dir
	if err := f.validate(); err != nil {
		return nil, fmt.Errorf("reading federation %q: %s is damaged: %w; end its processes, remove %s and start again", name, filepath.Join(dir, stateFile), err, dir)
	}
	return f, nil
}

// checkDirs reports why the records of a federation could be another user's. Processes are ended and files removed by
// what the records say. The error is fs.ErrNotExist if there are none.
func checkDirs(root, dir string) error {
	if err := private.CheckSharedDir(root); err != nil {
		return err
	}
	return private.CheckDir(dir)
}

// validate reports records that name files outside the directory of the federation.
func (f *Federation) validate() error {
	var errs []error
	for _, m := range f.Members {
		if msgs := validation.IsDNS1123Label(m); len(msgs) > 0 {
			errs = append(errs, fmt.Errorf("member %q: %s", m, strings.Join(msgs, "; ")))
		}
	}
	for _, m := range f.Pull {
		if !slices.Contains(f.Members, m) {
			errs = append(errs, fmt.Errorf("%q is in Pull mode and no member", m))
		}
	}
	if f.Name != filepath.Base(f.dir) {
		errs = append(errs, fmt.Errorf("it is that of federation %q", f.Name))
	}
	return errors.Join(errs...)
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
		dir := filepath.Join(root, e.Name())
		if _, err := os.Stat(filepath.Join(dir, stateFile)); err == nil && private.CheckDir(dir) == nil {
			out = append(out, e.Name())
		}
	}
	return out, nil
}

func (f *Federation) save() error {
	data, err := json.MarshalIndent(f, "", "  ")
	if err != nil {
		return fmt.Errorf("encoding federation %q: %w", f.Name, err)
	}
	if err := f.makeDir(); err != nil {
		return err
	}
	if err := pki.WriteFile(filepath.Join(f.dir, stateFile), append(data, '\n'), 0o600); err != nil {
		return fmt.Errorf("saving federation %q: %w", f.Name, err)
	}
	return nil
}

func (f *Federation) makeDir() error {
	if err := os.MkdirAll(f.dir, 0o700); err != nil {
		return fmt.Errorf("making the directory of federation %q: %w; choose another with --dir", f.Name, err)
	}
	if err := checkDirs(filepath.Dir(f.dir), f.dir); err != nil {
		return fmt.Errorf("using the directory of federation %q: %w with --dir", f.Name, err)
	}
	for _, name := range []string{logsDir, processesDir, karmadaDir, clustersDir} {
		if info, err := os.Lstat(filepath.Join(f.dir, name)); err == nil && !info.IsDir() {
			return fmt.Errorf("using the directory of federation %q: %s is not a directory: remove it", f.Name, filepath.Join(f.dir, name))
		}
	}
	return nil
}

// grow adds members until there are n. Members are taken out one by one only: with them go their data.
func (f *Federation) grow(d Deps, n int) error {
	if n < len(f.Members) {
		if f.runtimeOf() == RuntimeKind {
			return fmt.Errorf("federation %q has %d members, not %d: remove it with %q and start again", f.Name, len(f.Members), n, f.command(d, "down"))
		}
		return fmt.Errorf("federation %q has %d members, not %d: take members out, with their data, with %q", f.Name, len(f.Members), n, f.command(d, "down")+" --member "+strings.Join(f.Members[n:], ","))
	}
	for i := len(f.Members) + 1; len(f.Members) < n; i++ {
		if name := fmt.Sprintf("%s%d", memberPrefix, i); !slices.Contains(f.Members, name) {
			f.Members = append(f.Members, name)
		}
	}
	return nil
}

// Dir is the directory of the federation.
func (f *Federation) Dir() string { return f.dir }

// Kubeconfig is the path of the kubeconfig with a context for the control plane
// and one for each member.
func (f *Federation) Kubeconfig() string { return filepath.Join(f.dir, kubeconfigFile) }

// dataDir is where a cluster keeps its data.
func (f *Federation) dataDir(cluster string) string { return filepath.Join(f.dir, cluster) }

// log is the path of the log of a process.
func (f *Federation) log(process string) string {
	return filepath.Join(f.dir, logsDir, process+".log")
}

// processNames are the processes of the federation in the order in which they
// are shown.
func (f *Federation) processNames() []string {
	out := []string{controlPlane, rolesProcess}
	for _, member := range f.Members {
		out = append(out, member)
		if f.pulls(member) {
			out = append(out, agentName(member))
		}
	}
	return out
}

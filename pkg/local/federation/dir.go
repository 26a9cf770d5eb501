package federation

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

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

// Dir is the directory of a federation. Everything that the federation keeps is in
// it; its name is the federation's.
type Dir string

// Kubeconfig is the path of the kubeconfig with all contexts.
func (d Dir) Kubeconfig() string { return d.file(kubeconfigFile) }

// Log is the path of the log of a process.
func (d Dir) Log(process string) string { return d.file(logsDir, process+".log") }

// Record is the path of the record of a process.
func (d Dir) Record(process string) string { return d.file(processesDir, process+".json") }

// Data is where a cluster or an agent keeps its data.
func (d Dir) Data(process string) string { return d.file(process) }

// ControlPlane is a directory, or a file in it, with what the control plane's roles
// need: certificates and kubeconfigs.
func (d Dir) ControlPlane(elem ...string) string {
	return d.file(append([]string{karmadaDir}, elem...)...)
}

// ClusterKubeconfig is the path of the kubeconfig of a kind cluster.
func (d Dir) ClusterKubeconfig(cluster string) string {
	return d.file(clustersDir, cluster+".kubeconfig")
}

func (d Dir) file(elem ...string) string {
	return filepath.Join(append([]string{string(d)}, elem...)...)
}

func (d Dir) name() string { return filepath.Base(string(d)) }

// check reports why the records of a federation could be another user's. Processes are ended and files removed by
// the content of the records. The error is fs.ErrNotExist if there are none.
func check(d Dir) error {
	if err := private.CheckSharedDir(filepath.Dir(string(d))); err != nil {
		return err
	}
	return private.CheckDir(string(d))
}

func makeDir(d Dir) error {
	if err := os.MkdirAll(string(d), 0o700); err != nil {
		return fmt.Errorf("making the directory of federation %q: %w; choose another with --dir", d.name(), err)
	}
	if err := check(d); err != nil {
		return fmt.Errorf("using the directory of federation %q: %w with --dir", d.name(), err)
	}
	for _, name := range []string{logsDir, processesDir, karmadaDir, clustersDir} {
		if info, err := os.Lstat(d.file(name)); err == nil && !info.IsDir() {
			return fmt.Errorf("using the directory of federation %q: %s is not a directory: remove it", d.name(), d.file(name))
		}
	}
	return nil
}

// damaged returns the error of a record that cannot be used.
func damaged(d Dir, err error) error {
	return fmt.Errorf("reading federation %q: %s is damaged: %w; end its processes, remove %s and start again", d.name(), d.file(stateFile), err, d)
}

// Lock excludes other commands from a federation until unlock is called.
func (d Dir) Lock() (unlock func(), err error) {
	if err := makeDir(d); err != nil {
		return nil, err
	}
	unlock, err = lock(d.file(lockFile))
	if err != nil {
		return nil, fmt.Errorf("locking federation %q: %w; wait for it to end and try again", d.name(), err)
	}
	return unlock, nil
}

// Remove removes the files of a federation, and its directory unless it contains other files.
// processes are the names of its processes.
func (d Dir) Remove(processes []string) error {
	entries, err := os.ReadDir(string(d))
	if err != nil {
		return fmt.Errorf("removing federation %q: %w", d.name(), err)
	}
	own := append(slices.Clone(processes), lockFile, kubeconfigFile, logsDir, processesDir, karmadaDir, clustersDir)
	var others []string
	for _, e := range entries {
		switch path := d.file(e.Name()); {
		case e.Name() == stateFile: // last, so that an interrupted removal can be repeated
		case !owns(own, e.Name()):
			others = append(others, path)
		default:
			if err := os.RemoveAll(path); err != nil {
				return fmt.Errorf("removing federation %q: %w", d.name(), err)
			}
		}
	}
	if err := os.Remove(d.file(stateFile)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("removing federation %q: %w", d.name(), err)
	}
	if len(others) > 0 {
		return fmt.Errorf("federation %q is removed, but not what it did not make: %s; remove that yourself", d.name(), strings.Join(others, ", "))
	}
	return os.Remove(string(d))
}

// owns reports whether a file in the directory of a federation is one of its own.
func owns(own []string, name string) bool {
	// A write that was interrupted leaves .NAME.NUMBER.
	if rest, hidden := strings.CutPrefix(name, "."); hidden {
		i := strings.LastIndexByte(rest, '.')
		return i > 0 && (rest[:i] == stateFile || owns(own, rest[:i]))
	}
	return slices.Contains(own, name)
}

package local

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
)

// Down stops the processes of a federation. With purge it removes the federation
// with all its data as well. Kind clusters are always removed, and nothing is left
// of their federation. A federation that does not run is no error.
func Down(ctx context.Context, d Deps, root, name string, purge bool) error {
	f, err := Load(root, name)
	if err != nil {
		return err
	}
	if f.Kind != nil {
		return downKind(ctx, d, f)
	}
	unlock, err := f.lock()
	if err != nil {
		return err
	}
	defer unlock()
	// The roles and agents first: they need the clusters to end well.
	first := []string{rolesProcess}
	for _, member := range f.Pull {
		first = append(first, agentName(member))
	}
	if err := f.stopAll(ctx, d, first); err != nil {
		return err
	}
	if err := f.stopAll(ctx, d, append([]string{controlPlane}, f.Members...)); err != nil {
		return err
	}
	if !purge {
		return nil
	}
	return f.remove()
}

// remove removes the files of the federation, and its directory unless there is something else in it.
func (f *Federation) remove() error {
	entries, err := os.ReadDir(f.dir)
	if err != nil {
		return fmt.Errorf("removing federation %q: %w", f.Name, err)
	}
	var others []string
	state := ""
	for _, e := range entries {
		switch path := filepath.Join(f.dir, e.Name()); {
		case e.Name() == stateFile: // last, so that an interrupted removal can be repeated
			state = path
		case !f.owns(e.Name()):
			others = append(others, path)
		default:
			if err := os.RemoveAll(path); err != nil {
				return fmt.Errorf("removing federation %q: %w", f.Name, err)
			}
		}
	}
	if state != "" {
		if err := os.Remove(state); err != nil {
			return fmt.Errorf("removing federation %q: %w", f.Name, err)
		}
	}
	if len(others) > 0 {
		return fmt.Errorf("federation %q is removed, but not what it did not make: %s; remove that yourself", f.Name, strings.Join(others, ", "))
	}
	return os.Remove(f.dir)
}

// owns reports whether a file in the directory is the federation's, by its name.
func (f *Federation) owns(name string) bool {
	// A write that was interrupted leaves .NAME.NUMBER.
	if rest, hidden := strings.CutPrefix(name, "."); hidden {
		i := strings.LastIndexByte(rest, '.')
		return i > 0 && f.owns(rest[:i])
	}
	if slices.Contains([]string{stateFile, lockFile, kubeconfigFile, logsDir, processesDir, karmadaDir, clustersDir}, name) {
		return true
	}
	return slices.Contains(f.processNames(), name)
}

func (f *Federation) stopAll(ctx context.Context, d Deps, names []string) error {
	errs := make([]error, len(names))
	var wg sync.WaitGroup
	for i, name := range names {
		wg.Go(func() {
			p := f.process(name)
			if _, alive := p.running(); !alive {
				return
			}
			step := "stop " + name
			d.Progress.Begin(step)
			if errs[i] = p.stop(ctx); errs[i] == nil {
				d.Progress.Done(step, "")
			}
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}

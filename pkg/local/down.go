package local

import (
	"context"
	"errors"
	"fmt"
	"os"
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
	if err := os.RemoveAll(f.dir); err != nil {
		return fmt.Errorf("removing federation %q: %w", name, err)
	}
	return nil
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

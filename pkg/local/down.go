package local

import (
	"context"
	"fmt"
	"slices"
	"strings"
)

// Down stops the processes of a federation. With purge it removes the federation
// with all its data as well. Kind clusters are always removed, and nothing is left
// of their federation. A federation that does not run is no error.
func Down(ctx context.Context, d Deps, root, name string, purge bool) error {
	f, err := Load(root, name)
	if err != nil {
		return err
	}
	unlock, err := f.Dir().Lock()
	if err != nil {
		return err
	}
	defer unlock()
	removed, err := runtimeOf(d, f, UpRequest{}).Stop(ctx)
	if err != nil || (!removed && !purge) {
		return err
	}
	return f.Dir().Remove(f.Processes())
}

// RemoveMembers takes members out of a federation that runs: each leaves the control plane, its processes are stopped
// and its data is removed. The others and the control plane keep running.
func RemoveMembers(ctx context.Context, d Deps, root, name string, members []string) error {
	f, err := Load(root, name)
	if err != nil {
		return err
	}
	remover, err := checkRemoval(d, f, members)
	if err != nil {
		return err
	}
	unlock, err := f.Dir().Lock()
	if err != nil {
		return err
	}
	defer unlock()
	return remover.RemoveMembers(ctx, members)
}

// checkRemoval returns the runtime that removes the members, or an error if they cannot be removed.
func checkRemoval(d Deps, f *Federation, members []string) (memberRemover, error) {
	remover, ok := runtimeOf(d, f, UpRequest{}).(memberRemover)
	if !ok {
		return nil, fmt.Errorf("the members of federation %q are kind clusters, which stay until the federation is removed: take %s out of the control plane with %q, or use %q and start again with fewer --members", f.Name, strings.Join(members, ", "), d.Program+" unjoin", f.Command(d, "down"))
	}
	for _, m := range members {
		if !slices.Contains(f.Members, m) {
			return nil, fmt.Errorf("federation %q has no member %q; it has %s", f.Name, m, strings.Join(f.Members, ", "))
		}
	}
	return remover, nil
}

package role

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/spf13/cobra"

	"github.com/karmada-toolkit/karmada/pkg/apis/names"
)

// etcdMember is the directory in which etcd keeps its data, under the one that it
// is given.
const etcdMember = "member"

// removeDataCommand returns the command that "karmadactl deinit --purge-data" runs
// on the node of etcd.
func removeDataCommand() *cobra.Command {
	return &cobra.Command{
		Use: names.RemoveEtcdDataCommand + " DIRECTORY", Short: "Remove the data of an etcd that does not run any more",
		Hidden: true, Args: cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error { return removeData(args[0]) },
	}
}

// removeData removes the data of etcd from a directory, and nothing else that is
// there. It follows no symbolic links. A directory without data is no error.
func removeData(dir string) error {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return fmt.Errorf("removing the data of etcd: %w", err)
	}
	defer root.Close() //nolint:errcheck // nothing was written through it
	info, err := root.Lstat(etcdMember)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return fmt.Errorf("removing the data of etcd: %w", err)
	case !info.IsDir():
		return fmt.Errorf("removing the data of etcd: %s/%s is not a directory; check it and remove it by hand", dir, etcdMember)
	}
	if err := root.RemoveAll(etcdMember); err != nil {
		return fmt.Errorf("removing the data of etcd: %w", err)
	}
	return nil
}

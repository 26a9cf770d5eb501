package plan

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/karmada-toolkit/karmada/pkg/cli/env"
	"github.com/karmada-toolkit/karmada/pkg/cli/planning"
)

const (
	snapshotShort = "Store what the control plane decides by in a file, for plan --from"
	snapshotLong  = `
		Store the objects that decide what each cluster gets in a file: clusters, policies, templates,
		bindings and interpreter rules, as far as you may read them. "plan --from" computes effects
		from it without a server.

		Values of Secrets, and what override policies set in them, are HMAC-SHA256 hashes with a key that is not kept; so are
		headers for the proxies of clusters. Users in URLs of proxies are masked. All else is stored as it is, such as
		ConfigMaps and environment variables: keep the file as you keep these.`
	snapshotExamples = `
		# Store the federation, and plan a change of it elsewhere
		{{.Name}} snapshot -o federation.json
		{{.Name}} plan --from federation.json -f nginx.yaml`
)

// NewSnapshotCommand returns the command.
func NewSnapshotCommand(e *env.Env) *cobra.Command {
	access := e.NewAccess()
	path := ""
	cmd := e.Command("snapshot -o FILE", snapshotShort, snapshotLong, snapshotExamples)
	cmd.Args, cmd.ValidArgsFunction = env.NoArguments, cobra.NoFileCompletions
	cmd.RunE = e.Run(func(ctx context.Context, _ []string) error { return takeSnapshot(ctx, e, access, path) })
	access.Flags.Add(cmd).AddNamespace(cmd)
	cmd.Flags().StringVarP(&path, "output", "o", "", "File that is written.")
	return cmd
}

func takeSnapshot(ctx context.Context, e *env.Env, access *env.Access, path string) error {
	if path == "" {
		return errors.New("name the file that is written: -o FILE")
	}
	source, err := planning.Connect(ctx, e, access)
	if err != nil {
		return err
	}
	contents, err := source.Contents(ctx, nil)
	if err != nil {
		return err
	}
	for _, gap := range contents.Gaps {
		e.SayLine("Warning: not read: " + gap.String())
	}
	// Nothing is half-written: the file gets its name when it is complete.
	file, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".*")
	if err != nil {
		return fmt.Errorf("writing the snapshot: %w", err)
	}
	defer func() { _ = os.Remove(file.Name()) }()
	if err := errors.Join(contents.Write(file), file.Close()); err != nil {
		return fmt.Errorf("writing the snapshot: %w", err)
	}
	if err := os.Rename(file.Name(), path); err != nil {
		return fmt.Errorf("writing the snapshot: %w", err)
	}
	e.Say("%s has %d clusters, %d policies, %d templates and %d bindings.", path, len(contents.Clusters), len(contents.Policies), len(contents.Templates), len(contents.Bindings))
	return nil
}

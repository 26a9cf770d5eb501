package apply

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/cli-runtime/pkg/resource"

	"github.com/karmada-toolkit/karmada/pkg/cli/env"
	"github.com/karmada-toolkit/karmada/pkg/cli/planning"
	"github.com/karmada-toolkit/karmada/pkg/insight/plan"
)

// errNotApplied is that the user did not confirm.
var errNotApplied = errors.New("nothing was applied")

// checkFlags returns which flags cannot be used together.
func checkFlags(cmd *cobra.Command, f flags) error {
	switch {
	case f.allClusters && len(f.clusters) > 0:
		return errors.New("--all-clusters and --cluster cannot be used together")
	case f.yes && !f.plan:
		return errors.New("--yes skips the confirmation of --plan: give --plan, too")
	case !f.plan:
		return nil
	}
	for _, name := range []string{"dry-run", "output", "prune", "server-side"} {
		if cmd.Flags().Changed(name) {
			return fmt.Errorf("--plan and --%s cannot be used together", name)
		}
	}
	if !f.yes && slices.Contains(*f.DeleteFlags.FileNameFlags.Filenames, "-") {
		return errors.New("-f - leaves no input to confirm the plan with: give --yes, or see it with \"plan -f -\" before")
	}
	return nil
}

// confirm prints what applying the objects would do. It returns nil if the user, or --yes, confirms it.
func confirm(ctx context.Context, e *env.Env, access *env.Access, infos []*resource.Info, yes bool) error {
	effects, err := effectsOf(ctx, e, access, infos)
	if err != nil {
		return err
	}
	if err := planning.Print(e, effects, nil); err != nil {
		return err
	}
	if yes {
		return nil
	}
	switch confirmed, err := e.Confirm("yes"); {
	case err != nil:
		return err
	case confirmed:
		return nil
	}
	if _, err := io.WriteString(e.Out, "Nothing was applied.\n"); err != nil {
		return err
	}
	return errNotApplied
}

func effectsOf(ctx context.Context, e *env.Env, access *env.Access, infos []*resource.Info) (*plan.Effects, error) {
	var manifests []*unstructured.Unstructured
	for _, info := range infos {
		u, ok := info.Object.(*unstructured.Unstructured)
		if !ok || u.GetName() == "" {
			return nil, fmt.Errorf("%s: an object without metadata.name cannot be planned", info.Source)
		}
		manifests = append(manifests, u.DeepCopy())
	}
	source, err := planning.Connect(ctx, e, access)
	if err != nil {
		return nil, err
	}
	return source.Effects(ctx, planning.Settings{}, manifests, func(text string) { e.SayLine("Warning: " + text) })
}

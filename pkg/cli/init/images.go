package initcmd

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/karmada-toolkit/karmada/internal/imagearchive"
	"github.com/karmada-toolkit/karmada/internal/limit"
	"github.com/karmada-toolkit/karmada/internal/version"
	"github.com/karmada-toolkit/karmada/pkg/cli/env"
	"github.com/karmada-toolkit/karmada/pkg/init/config"
)

const imagesLong = `
	Work with the images that an installation needs. The flags are those of "init"
	that choose images.`

func newImagesCommand(e *env.Env) *cobra.Command {
	cmd := e.Command("images", "List or save the images that an installation needs", imagesLong, "")
	cmd.Args = env.NoArguments
	cmd.RunE = func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
	cmd.AddCommand(newListCommand(e), newSaveCommand(e))
	return cmd
}

func newListCommand(e *env.Env) *cobra.Command {
	o := config.New()
	cmd := e.Command("list", "List the images that an installation needs", "", `
		# The images of an installation with a registry of one's own
		{{.Name}} init images list --private-image-registry=registry.example.org/karmada`)
	cmd.Args = env.NoArguments
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if err := o.LoadFile(cmd.Flags()); err != nil {
			return err
		}
		var available []string
		if path := beside(); path != "" {
			names, err := imagearchive.Names(path)
			if err != nil {
				return err
			}
			available = names
		}
		missing := o.UseBuild(version.Get(), available, o.Parts())
		if _, err := fmt.Fprintln(e.Out, strings.Join(o.ImageList(), "\n")); err != nil {
			return err
		}
		if hint := config.ImageHint(e.Name, missing); hint != "" {
			e.Say("note: %s", hint)
		}
		return nil
	}
	o.AddImageFlags(cmd.Flags())
	return cmd
}

func newSaveCommand(e *env.Env) *cobra.Command {
	o := config.New()
	output, engine := "karmada-images.tar", "docker"
	cmd := e.Command("save", "Save the images that an installation needs as one archive", `
		Save the images that an installation needs as one archive, from a container
		engine that has them. Load it where there is no network with "docker load",
		"ctr -n k8s.io images import" or "kind load image-archive".`, `
		# Save the images, then load them into a kind cluster
		{{.Name}} init images save --output=karmada-images.tar
		kind load image-archive karmada-images.tar`)
	cmd.Args = env.NoArguments
	cmd.RunE = e.Run(func(ctx context.Context, _ []string) error {
		images, err := limit.Within(ctx, o.ConfigFile, func() ([]string, error) { return wanted(&o, cmd.Flags()) })
		if err != nil {
			return err
		}
		return save(ctx, e, engine, output, images)
	})
	o.AddImageFlags(cmd.Flags())
	cmd.Flags().StringVarP(&output, "output", "o", output, "Archive to write.")
	cmd.Flags().StringVar(&engine, "engine", engine, "Program of the container engine: docker, podman or nerdctl.")
	return cmd
}

// wanted are the images that the flags and the configuration file choose.
func wanted(o *config.Configuration, fs *pflag.FlagSet) ([]string, error) {
	if err := o.LoadFile(fs); err != nil {
		return nil, err
	}
	// An engine that loaded the archive of this build has all names in it.
	return o.ImageList(), nil
}

// save has the engine write the images; the error names those that it lacks.
func save(ctx context.Context, e *env.Env, engine, output string, images []string) error {
	program, err := exec.LookPath(engine)
	if err != nil {
		return fmt.Errorf("there is no program %q to take images from: install one, or name another with --engine", engine)
	}
	var missing []string
	for _, image := range images {
		//nolint:gosec // the engine that the user named
		out, err := exec.CommandContext(ctx, program, "image", "inspect", "--format", "{{.Id}}", image).CombinedOutput()
		if ctx.Err() != nil {
			return ctx.Err()
		}
		var exit *exec.ExitError
		if err != nil && !errors.As(err, &exit) {
			return fmt.Errorf("asking %s for image %s: %w", engine, image, err)
		}
		if err != nil {
			if text := string(out); !strings.Contains(strings.ToLower(text), "no such image") && !strings.Contains(text, "not known") && !strings.Contains(text, "No such object") {
				return fmt.Errorf("asking %s for image %s: %s", engine, image, strings.TrimSpace(text))
			}
			missing = append(missing, "  "+engine+" pull "+image)
		}
	}
	if len(missing) > 0 {
		return fmt.Errorf("%s does not have all images; get the others first, or build those of the control plane with \"make image\":\n%s", engine, strings.Join(missing, "\n"))
	}
	defer e.Waiting(func() string { return engine + " to write " + output })()
	args := append([]string{"save", "-o", output}, images...)
	//nolint:gosec // the engine that the user named
	if out, err := exec.CommandContext(ctx, program, args...).CombinedOutput(); err != nil {
		return fmt.Errorf("saving the images with %s: %w: %s", engine, err, strings.TrimSpace(string(out)))
	}
	_, err = fmt.Fprintf(e.Out, "%d images saved to %s\n", len(images), output)
	return err
}

package initcmd

import (
	"context"
	"errors"
	"os"

	"github.com/karmada-toolkit/karmada/internal/imagearchive"
	"github.com/karmada-toolkit/karmada/internal/version"
	"github.com/karmada-toolkit/karmada/pkg/cli/env"
	"github.com/karmada-toolkit/karmada/pkg/init/config"
	"github.com/karmada-toolkit/karmada/pkg/local/kindcluster"
)

// besideProgram is the value of --load-images without one.
const besideProgram = "beside this program"

// archiveOf returns the path of the image archive that --load-images names, or
// that is beside the program. Without the flag it is empty if there is none.
func archiveOf(load string) (string, error) {
	switch load {
	case "":
		return beside(), nil
	case besideProgram:
		path := beside()
		if path == "" {
			return "", errors.New("there is no image archive of this build beside the program: name one with --load-images=ARCHIVE; \"make image\" builds it")
		}
		return path, nil
	}
	_, err := imagearchive.Names(load)
	return load, err
}

// beside returns the image archive of this build beside the program, or "".
func beside() string {
	executable, err := os.Executable()
	if err != nil {
		return ""
	}
	return config.FindArchive(executable, version.Get())
}

// loadImages puts the images of an archive into the nodes of the host, a kind
// cluster.
func loadImages(ctx context.Context, e *env.Env, server, archive string) error {
	defer e.Waiting(func() string { return "the images of " + archive + " to be loaded into the nodes" })()
	name, err := kindcluster.LoadImages(ctx, os.Getenv, server, archive)
	if err != nil {
		return err
	}
	e.Say("The nodes of kind cluster %q have the images of %s", name, archive)
	return nil
}

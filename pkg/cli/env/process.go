package env

import (
	"context"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"k8s.io/cli-runtime/pkg/genericiooptions"
)

// Process returns the environment of this process. root is the program's name, name what
// the user types.
func Process(root, name string) *Env {
	return &Env{
		IOStreams: genericiooptions.IOStreams{In: os.Stdin, Out: os.Stdout, ErrOut: os.Stderr},
		Root:      root,
		Name:      name,
		Now:       time.Now,
		Exit:      os.Exit,
		Interruptible: func(ctx context.Context) (context.Context, context.CancelFunc) {
			return signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
		},
	}
}

// Arguments returns the arguments of a command line. A plugin called by kubectl's
// name for its completion completes.
func Arguments(argv []string) []string {
	if strings.HasPrefix(filepath.Base(argv[0]), "kubectl_complete-") {
		return append([]string{"__complete"}, argv[1:]...)
	}
	return argv[1:]
}

// Command karmada is every part of the control plane in one program.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/karmada-toolkit/karmada/pkg/controlplane/role"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := role.Main(ctx, os.Args, os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// Command kubectl-karmada is karmadactl as a plugin of kubectl.
package main

import (
	"context"
	"os"

	"github.com/karmada-toolkit/karmada/pkg/cli"
	"github.com/karmada-toolkit/karmada/pkg/cli/env"
)

func main() {
	os.Exit(cli.Run(context.Background(), env.Process("kubectl-karmada", "kubectl karmada"), env.Arguments(os.Args)))
}

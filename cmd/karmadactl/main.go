// Command karmadactl controls a federation of Kubernetes clusters.
package main

import (
	"context"
	"os"

	_ "k8s.io/client-go/plugin/pkg/client/auth/oidc" // kubeconfigs may name it

	"github.com/karmada-toolkit/karmada/pkg/cli"
	"github.com/karmada-toolkit/karmada/pkg/cli/env"
)

func main() {
	os.Exit(cli.Run(context.Background(), env.Process("karmadactl", "karmadactl"), os.Args[1:]))
}

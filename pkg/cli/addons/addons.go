// Package addons is the command about the optional parts of a control plane.
package addons

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"sync"

	"github.com/spf13/cobra"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/karmada-toolkit/karmada/internal/kube"
	"github.com/karmada-toolkit/karmada/pkg/cli/env"
	installer "github.com/karmada-toolkit/karmada/pkg/init"
	"github.com/karmada-toolkit/karmada/pkg/init/config"
)

const (
	short = "Show the addons of the Karmada control plane"
	long  = `
		Show the optional parts of the control plane: descheduler, metrics adapter,
		scheduler estimators and search.`
	listLong = `
		List the addons with their state: enabled, disabled, unhealthy, or unknown. An
		estimator belongs to a member cluster, which --cluster names.`
	listExamples = `
		# List the addons
		{{.Name}} addons list

		# With the estimator of cluster member1
		{{.Name}} addons list --cluster=member1`
)

// NewCommand returns the command.
func NewCommand(e *env.Env) *cobra.Command {
	cmd := &cobra.Command{
		Use: "addons", Short: short, Long: e.Long(long), Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newListCommand(e))
	return cmd
}

// flags choose the installation.
type flags struct {
	host, karmada      env.Kubeconfig
	namespace, cluster string
}

func newListCommand(e *env.Env) *cobra.Command {
	f := flags{
		host:      env.Kubeconfig{Flag: "--kubeconfig"},
		karmada:   env.Kubeconfig{Flag: "--karmada-kubeconfig", Path: filepath.Join(config.DefaultDataPath, "karmada-apiserver.config")},
		namespace: config.DefaultNamespace,
	}
	cmd := &cobra.Command{
		Use: "list", Short: "List the addons with their state", Long: e.Long(listLong), Example: e.Examples(listExamples),
		DisableFlagsInUseLine: true, ValidArgsFunction: cobra.NoFileCompletions,
		Args: env.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, stop := e.Interruptible(cmd.Context())
			defer stop()
			return list(ctx, e, f)
		},
	}
	fs := cmd.Flags()
	fs.StringVar(&f.host.Path, "kubeconfig", "", "Path to the kubeconfig of the host cluster; default $KUBECONFIG, then ~/.kube/config.")
	fs.StringVar(&f.host.Context, "context", "", "Context of the kubeconfig of the host cluster; default the current one.")
	fs.StringVar(&f.karmada.Path, "karmada-kubeconfig", f.karmada.Path, "Path to the kubeconfig of the control plane.")
	fs.StringVar(&f.karmada.Context, "karmada-context", "", "Context of the kubeconfig of the control plane; default the current one.")
	fs.StringVarP(&f.namespace, "namespace", "n", f.namespace, "Namespace of the control plane in the host cluster.")
	fs.StringVarP(&f.cluster, "cluster", "C", "", "Member cluster whose estimator is meant.")
	return cmd
}

func list(ctx context.Context, e *env.Env, f flags) error {
	host, err := reader(f.host)
	if err != nil {
		return err
	}
	defer e.Waiting(func() string { return "the host cluster and the control plane to answer" })()
	controlPlane := sync.OnceValues(func() (client.Reader, error) { return reader(f.karmada) })
	all := installer.Addons(ctx, host, controlPlane, f.namespace, f.cluster)
	if _, err := fmt.Fprint(e.Out, table(all)); err != nil {
		return err
	}
	return installer.JoinAddonErrors(all)
}

func reader(k env.Kubeconfig) (client.Reader, error) {
	cfg, err := k.Load()
	if err != nil {
		return nil, err
	}
	c, err := client.New(cfg, client.Options{Scheme: kube.NewScheme()})
	if err != nil {
		return nil, fmt.Errorf("connecting to %s: %w", cfg.Host, err)
	}
	return c, nil
}

// table draws the addons with borders.
func table(addons []installer.Addon) string {
	rows := [][2]string{{"ADDON NAME", "STATUS"}}
	for _, a := range addons {
		rows = append(rows, [2]string{a.Name, string(a.Status)})
	}
	var width [2]int
	for _, row := range rows {
		for i, cell := range row {
			width[i] = max(width[i], len(cell))
		}
	}
	var out strings.Builder
	border := "+" + strings.Repeat("-", width[0]+2) + "+" + strings.Repeat("-", width[1]+2) + "+\n"
	out.WriteString(border)
	for i, row := range rows {
		fmt.Fprintf(&out, "| %-*s | %-*s |\n", width[0], row[0], width[1], row[1])
		if i == 0 {
			out.WriteString("|" + strings.Repeat("-", width[0]+2) + "|" + strings.Repeat("-", width[1]+2) + "|\n")
		}
	}
	return out.String() + border
}

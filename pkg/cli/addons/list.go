package addons

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"

	"github.com/spf13/cobra"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/karmada-toolkit/karmada/internal/kube"
	"github.com/karmada-toolkit/karmada/pkg/cli/env"
	"github.com/karmada-toolkit/karmada/pkg/init/addons"
	"github.com/karmada-toolkit/karmada/pkg/init/hostcluster"
	"github.com/karmada-toolkit/karmada/pkg/local"
	"github.com/karmada-toolkit/karmada/pkg/member"
)

const (
	listLong = `
		List the addons with their state: enabled, disabled, unhealthy, or unknown. An
		estimator belongs to a member cluster: without --cluster there is a row for each
		that is installed.

		The kubeconfig is that of the host cluster. With the kubeconfig of a local
		federation, which has none, the list shows which addons run there.

		With --output the result is one document: addons, each with name, status and,
		where the state is unknown, error.`
	listExamples = `
		# List the addons
		{{.Name}} addons list

		# With the estimators of two clusters
		{{.Name}} addons list --cluster=member1,member2`
)

func newListCommand(e *env.Env) *cobra.Command {
	f := newFlags()
	var output env.Output
	cmd := e.Command("list", "List the addons with their state", listLong, listExamples)
	cmd.ValidArgsFunction = cobra.NoFileCompletions
	cmd.Args = env.NoArguments
	cmd.RunE = e.Run(func(ctx context.Context, _ []string) error { return list(ctx, e, f, output) })
	f.add(cmd)
	env.AddOutputFlag(cmd, &output)
	return cmd
}

func list(ctx context.Context, e *env.Env, f flags, output env.Output) error {
	defer e.Waiting(func() string { return "the host cluster and the control plane to answer" })()
	all, err := f.list(ctx, e)
	if err != nil {
		return e.HostError(f.host, err)
	}
	if output != "" {
		err = e.PrintDocument(output, newDocument(all))
	} else {
		_, err = fmt.Fprint(e.Out, table(all))
	}
	if err != nil {
		return err
	}
	return addons.JoinErrors(all)
}

// document are the addons in JSON.
type document struct {
	Addons []addon `json:"addons"`
}

type addon struct {
	Name   string `json:"name"`
	Status string `json:"status"`
	// Error is why the state is unknown.
	Error string `json:"error,omitempty"`
}

func newDocument(all []addons.Addon) document {
	d := document{Addons: []addon{}}
	for _, a := range all {
		one := addon{Name: a.Name, Status: string(a.Status)}
		if a.Err != nil {
			one.Error = a.Err.Error()
		}
		d.Addons = append(d.Addons, one)
	}
	return d
}

// list returns the addons of the host cluster, or of a local federation.
func (f *flags) list(ctx context.Context, e *env.Env) ([]addons.Addon, error) {
	cfg, err := e.Load(f.host)
	if err != nil {
		return nil, err
	}
	host, err := reader(cfg)
	if err != nil {
		return nil, err
	}
	api, err := discovery.NewDiscoveryClientForConfig(cfg)
	if err != nil {
		return nil, fmt.Errorf("connecting to %s: %w", cfg.Host, err)
	}
	err = hostcluster.RefuseControlPlane(cfg.Host, api)
	if root, name := f.host.LocalFederation(); name != "" && errors.Is(err, member.ErrIsControlPlane) {
		parts, partsErr := local.Parts(ctx, local.Deps{Program: e.Name, Getenv: os.Getenv, Now: e.Now}, root, name)
		if partsErr != nil {
			return nil, partsErr
		}
		return addons.ListLocal(ctx, host, estimators(parts), f.clusters()), nil
	}
	if err != nil {
		return nil, err
	}
	if err := hostcluster.RequireInstalled(ctx, host, f.namespace); err != nil {
		return nil, err
	}
	controlPlane := sync.OnceValues(func() (client.Reader, error) {
		k, err := f.controlPlane(e)
		if err != nil {
			return nil, err
		}
		cfg, err := e.Load(k)
		if err != nil {
			return nil, err
		}
		return reader(cfg)
	})
	return addons.List(ctx, host, controlPlane, f.namespace, f.clusters()), nil
}

// estimators reports for the clusters of a local federation that have an estimator whether it runs.
func estimators(parts []local.ProcessStatus) map[string]bool {
	out := map[string]bool{}
	for _, p := range parts {
		if cluster, ok := strings.CutSuffix(p.Name, "-estimator"); ok {
			out[cluster] = p.State == "running"
		}
	}
	return out
}

func reader(cfg *rest.Config) (client.Reader, error) {
	c, err := client.New(cfg, client.Options{Scheme: kube.NewScheme()})
	if err != nil {
		return nil, fmt.Errorf("connecting to %s: %w", cfg.Host, err)
	}
	return c, nil
}

// table draws the addons with borders.
func table(all []addons.Addon) string {
	rows := [][2]string{{"ADDON NAME", "STATUS"}}
	for _, a := range all {
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

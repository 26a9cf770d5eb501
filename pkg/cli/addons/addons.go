// Package addons are the commands about the optional parts of a control plane.
package addons

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/spf13/cobra"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/karmada-toolkit/karmada/internal/kube"
	"github.com/karmada-toolkit/karmada/internal/progress"
	"github.com/karmada-toolkit/karmada/pkg/cli/env"
	"github.com/karmada-toolkit/karmada/pkg/init/addons"
	"github.com/karmada-toolkit/karmada/pkg/init/config"
	"github.com/karmada-toolkit/karmada/pkg/member"
)

const (
	short = "Enable, disable and list the addons of the Karmada control plane"
	long  = `
		Optional parts of the control plane: descheduler, metrics adapter, scheduler
		estimators and search. They run in the host cluster, beside the control plane
		that "init" installed there.`
)

// NewCommand returns the command.
func NewCommand(e *env.Env) *cobra.Command {
	return e.Group("addons", short, long, "", newListCommand(e), newEnableCommand(e), newDisableCommand(e))
}

// controlPlaneContext is the context of the control plane in the kubeconfigs of init and local up.
const controlPlaneContext = "karmada-apiserver"

// flags choose the installation.
type flags struct {
	host, karmada      env.Kubeconfig
	namespace, cluster string
	// byDefault is the default of --karmada-kubeconfig.
	byDefault string
}

func newFlags() flags {
	byDefault := filepath.Join(config.DefaultDataPath, "karmada-apiserver.config")
	return flags{
		host:      env.Kubeconfig{Flag: "--kubeconfig"},
		karmada:   env.Kubeconfig{Flag: "--karmada-kubeconfig", Path: byDefault},
		namespace: config.DefaultNamespace,
		byDefault: byDefault,
	}
}

func (f *flags) add(cmd *cobra.Command) {
	flags := cmd.Flags()
	f.host.AddHostFlags(flags)
	flags.StringVar(&f.karmada.Path, "karmada-kubeconfig", f.karmada.Path, "Path to the kubeconfig of the control plane.")
	flags.StringVar(&f.karmada.Context, "karmada-context", "", "Context of the kubeconfig of the control plane; default the current one.")
	env.AddHostNamespace(flags, &f.namespace)
	flags.StringVarP(&f.cluster, "cluster", "C", "", "Member clusters whose estimators are meant, separated by commas.")
}

// controlPlane returns the kubeconfig of the control plane. If the file that --karmada-kubeconfig names by default does not
// exist, it is that of the host cluster, if that has the context of a control plane.
func (f *flags) controlPlane(e *env.Env) (env.Kubeconfig, error) {
	f.karmada.UseTimeoutOf(f.host)
	if f.karmada.Path != f.byDefault || exists(f.karmada.Path) {
		return f.karmada, nil
	}
	other := f.karmada
	other.Path, other.Context = f.host.Path, cmp.Or(f.karmada.Context, controlPlaneContext)
	if !slices.Contains(other.ContextNames(""), other.Context) {
		return env.Kubeconfig{}, fmt.Errorf("%s does not exist; name the kubeconfig of the control plane with %s: init writes it to "+
			"karmada-apiserver.config in the directory of --karmada-data", f.karmada.Path, f.karmada.Flag)
	}
	e.Say("note: the control plane is that of context %q, since %s does not exist; %s names another", other.Context, f.karmada.Path, f.karmada.Flag)
	return other, nil
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return !errors.Is(err, fs.ErrNotExist)
}

// clusters returns the clusters that --cluster names, each once.
func (f *flags) clusters() []string {
	var out []string
	for name := range strings.SplitSeq(f.cluster, ",") {
		if name = strings.TrimSpace(name); name != "" && !slices.Contains(out, name) {
			out = append(out, name)
		}
	}
	return out
}

// deps connects to the two clusters.
func (f *flags) deps(e *env.Env) (addons.Deps, error) {
	host, err := e.Load(f.host)
	if err != nil {
		return addons.Deps{}, err
	}
	var mu sync.Mutex
	var connected client.Client
	connect := func(ctx context.Context) (client.Client, error) {
		mu.Lock()
		defer mu.Unlock()
		if connected != nil {
			return connected, nil
		}
		controlPlane, err := f.controlPlane(e)
		if err != nil {
			return nil, err
		}
		cfg, err := e.Load(controlPlane)
		if err != nil {
			return nil, err
		}
		if err := member.RequireDiscovery(ctx, cfg, member.ServeTimeout, e.SayLine); err != nil {
			return nil, err
		}
		connected, err = client.New(cfg, client.Options{Scheme: kube.NewScheme()})
		return connected, err
	}
	return addons.Deps{Program: e.Name, Host: host, ControlPlane: connect, Now: e.Now, Progress: progress.NewPrinter(e.ErrOut, e.Now, progress.Timeline)}, nil
}

// complete completes the names of addons that are not on the command line yet.
func complete(_ *cobra.Command, args []string, prefix string) ([]string, cobra.ShellCompDirective) {
	var out []string
	for _, name := range append(addons.Names(), addons.All) {
		if strings.HasPrefix(name, prefix) && !slices.Contains(args, name) {
			out = append(out, name)
		}
	}
	return out, cobra.ShellCompDirectiveNoFileComp
}

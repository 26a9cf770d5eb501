package role

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	logsapi "k8s.io/component-base/logs/api/v1"

	"github.com/karmada-toolkit/karmada/pkg/controlplane/controllermanager"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/metricsadapter"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/scheduler"
)

// The roles that are addons: in one process with the others they serve only when a port is set.
const (
	metricsAdapter = "metrics-adapter"
	searchRole     = "search"
)

// allInOneRoles are the roles that make a control plane.
func allInOneRoles() []string {
	return []string{"aggregated-apiserver", "webhook", "controller-manager", "scheduler", metricsAdapter, searchRole}
}

// allInOne returns the command that runs the roles of a control plane in one
// process. The flags of each role are there with the role's name in front, such
// as --webhook.secure-port.
func allInOne(roles []Role) *cobra.Command {
	// The Leases are those of the roles in processes of their own: where those run beside this one, as while an installation changes
	// from one layout to the other, one of the two works.
	c := newCommon(Role{LockName: controllerManagerLock, SecondLock: schedulerLock, HealthAddress: ":10357", MetricsAddress: ":8080"})
	logs := logsapi.NewLoggingConfiguration()
	cmd := &cobra.Command{
		Use:   "all-in-one",
		Short: "Run the whole control plane in one process",
		Long: "Run " + strings.Join(allInOneRoles(), ", ") + " in one process.\n" +
			"Each part has the flags that it has alone, with its name in front, such as --webhook.secure-port.",
		SilenceUsage: true, SilenceErrors: true, Args: noArguments,
	}
	fs := cmd.Flags()
	shared := c.flags()
	var parts []named
	var copies []func() error
	for _, r := range roles {
		if !slices.Contains(allInOneRoles(), r.Name) {
			continue
		}
		i := r.New()
		copies = append(copies, addPrefixed(fs, shared, r.Name, i))
		if r.Name == metricsAdapter || r.Name == searchRole {
			// It has the default port of another part.
			if err := setDefault(fs, r.Name+".secure-port", "0"); err != nil {
				panic(err)
			}
		}
		parts = append(parts, named{Role: r, Instance: i})
	}
	link(parts)
	fs.AddFlagSet(shared)
	addLogFlags(logs, fs)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		c.rateLimitedByServer = !cmd.Flags().Changed("kube-api-qps")
		var errs []error
		for _, take := range copies {
			errs = append(errs, take())
		}
		if err := errors.Join(errs...); err != nil {
			return err
		}
		ctx, err := startLogs(cmd.Context(), logs)
		if err != nil {
			return err
		}
		return start(ctx, c, prefix+"all-in-one", parts, nil)
	}
	return cmd
}

// link has the scheduler schedule what controllers in the same process create and evict, and the metrics adapter use the Secrets that
// they watch.
func link(parts []named) {
	direct := &scheduler.Direct{}
	for _, p := range parts {
		switch i := p.Instance.(type) {
		case *instance[*scheduler.Options]:
			i.options.Direct = direct
		case *instance[*controllermanager.Options]:
			i.options.Scheduler = direct
		case *instance[*metricsadapter.Options]:
			i.options.WatchedSecrets = true
		}
	}
}

// setDefault sets the default of a flag.
func setDefault(fs *pflag.FlagSet, name, value string) error {
	f := fs.Lookup(name)
	f.DefValue = value
	return f.Value.Set(value)
}

// addPrefixed adds the flags of a role as --<role>.<flag>. Flags that all roles
// share are not repeated: the role gets the shared value after parsing.
func addPrefixed(fs, shared *pflag.FlagSet, role string, i Instance) (takeOver func() error) {
	own := pflag.NewFlagSet(role, pflag.ContinueOnError)
	i.AddFlags(own)
	var same []*pflag.Flag
	own.VisitAll(func(f *pflag.Flag) {
		if shared.Lookup(f.Name) != nil {
			same = append(same, f)
			return
		}
		renamed := *f
		renamed.Name = role + "." + f.Name
		renamed.Shorthand = ""
		fs.AddFlag(&renamed)
	})
	return func() error {
		var errs []error
		for _, f := range same {
			if s := shared.Lookup(f.Name); s.Changed {
				if err := f.Value.Set(s.Value.String()); err != nil {
					errs = append(errs, fmt.Errorf("--%s: %w", f.Name, err))
				}
			}
		}
		return errors.Join(errs...)
	}
}

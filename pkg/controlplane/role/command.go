package role

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	logsapi "k8s.io/component-base/logs/api/v1"
	_ "k8s.io/component-base/logs/json/register" // --logging-format=json
	"k8s.io/component-base/metrics/legacyregistry"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/karmada-toolkit/karmada/internal/controllers"
	"github.com/karmada-toolkit/karmada/internal/inotify"
	"github.com/karmada-toolkit/karmada/internal/metrics"
	"github.com/karmada-toolkit/karmada/internal/version"
	"github.com/karmada-toolkit/karmada/pkg/apis/names"
)

// prefix is what the name of a symbolic link to the program begins with.
const prefix = "karmada-"

// Main runs the program with its arguments and returns the exit code.
func Main(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	cmd := NewCommand(Table(), filepath.Base(args[0]))
	cmd.SetArgs(args[1:])
	cmd.SetOut(stdout)
	cmd.SetErr(stderr)
	if err := cmd.ExecuteContext(ctx); err != nil {
		_, _ = fmt.Fprintf(stderr, "error: %v\n", inotify.Explain(err))
		return 1
	}
	return 0
}

// NewCommand returns the command of a program called name: that of a role for
// karmada-<role>, else one with a command for each role.
func NewCommand(roles []Role, name string) *cobra.Command {
	for _, r := range roles {
		if name == prefix+r.Name {
			cmd := single(r)
			cmd.Use = name
			return cmd
		}
	}
	root := &cobra.Command{
		Use:           "karmada",
		Short:         "The control plane of many Kubernetes clusters used as one",
		Long:          "karmada holds every part of the control plane. The first argument is the part to run.\nCalled through a link named karmada-<part> it is that part.",
		SilenceUsage:  true,
		SilenceErrors: true,
		Args:          cobra.NoArgs,
		RunE:          func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.CompletionOptions.DisableDefaultCmd = true
	root.AddCommand(allInOne(roles))
	for _, r := range roles {
		root.AddCommand(single(r))
	}
	root.AddCommand(versionCommand("karmada"), flagsCommand(roles), removeDataCommand())
	root.AddCommand(releaseCommands()...)
	return root
}

func versionCommand(name string) *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, err := fmt.Fprintf(cmd.OutOrStdout(), "%s version: %s\n", name, version.Get())
			return err
		},
	}
}

// single returns the command that runs one role.
func single(r Role) *cobra.Command {
	c := newCommon(r)
	i := r.New()
	logs := logsapi.NewLoggingConfiguration()
	cmd := &cobra.Command{
		Use: r.Name, Short: r.Doc, SilenceUsage: true, SilenceErrors: true,
		Args: noArguments,
	}
	i.AddFlags(cmd.Flags())
	own := ownOf(i)
	if own != nil {
		// It knows better where the control plane is, and what to wait for.
		// Its user may not review tokens there.
		c.hide = []string{"kubeconfig", "karmada-context", "master", "start-timeout", "secure-metrics", "metrics-cert-dir"}
		if more, ok := own.(interface{ Hidden() []string }); ok {
			c.hide = append(c.hide, more.Hidden()...)
		}
	}
	takeOver := c.bind(cmd.Flags())
	addLogFlags(logs, cmd.Flags())
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if err := takeOver(); err != nil {
			return err
		}
		ctx, err := startLogs(cmd.Context(), logs)
		if err != nil {
			return err
		}
		return start(ctx, c, prefix+r.Name, []named{{Role: r, Instance: i}}, own)
	}
	cmd.AddCommand(versionCommand(prefix + r.Name))
	return cmd
}

func noArguments(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return fmt.Errorf("%s takes no arguments, got %q; see '%s --help' for its flags", cmd.CommandPath(), args, cmd.CommandPath())
	}
	return nil
}

func addLogFlags(logs *logsapi.LoggingConfiguration, fs *pflag.FlagSet) {
	own := pflag.NewFlagSet("logs", pflag.ContinueOnError)
	logsapi.AddFlags(logs, own)
	own.VisitAll(func(f *pflag.Flag) {
		if fs.Lookup(f.Name) == nil {
			fs.AddFlag(f)
		}
	})
}

func startLogs(ctx context.Context, logs *logsapi.LoggingConfiguration) (context.Context, error) {
	logsapi.ReapplyHandling = logsapi.ReapplyHandlingIgnoreUnchanged
	if err := logsapi.ValidateAndApply(logs, nil); err != nil {
		return nil, fmt.Errorf("setting up logs: %w", err)
	}
	logger := klog.Background()
	ctrl.SetLogger(logger)
	return ctrl.LoggerInto(ctx, logger), nil
}

// named is a role and its settings.
type named struct {
	Role
	Instance
}

// start runs roles in one process, with one cache and one connection. own is nil
// unless there is one role that starts in its own way.
func start(ctx context.Context, c *common, userAgent string, roles []named, own Own) error {
	for _, r := range roles {
		if err := r.Validate(); err != nil {
			return fmt.Errorf("checking the settings of %s: %w", r.Name, err)
		}
	}
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(c.gcPercent)
	}
	// The aggregated API servers serve the registry of Kubernetes, the other roles that of controller-runtime.
	registerBuildInfo(ctrlmetrics.Registry)
	registerBuildInfo(legacyregistry.Registerer())
	connect := c.credentials
	if own != nil {
		connect = own.Credentials
	}
	credentials, err := connect(userAgent + "/" + strings.TrimPrefix(version.Get().GitVersion, "v"))
	if err != nil {
		return err
	}
	if credentials.Leaf() != nil {
		metrics.Certificate("client", strings.TrimPrefix(userAgent, prefix), credentials.Leaf)
	}
	mgr, err := c.newManager(credentials.Config, own)
	if err != nil {
		return err
	}
	early := &servers{Manager: mgr}
	if err := early.Add(controllers.Everywhere(credentials.Run)); err != nil {
		return err
	}
	if err := setup(ctx, early, roles, true); err != nil {
		return err
	}
	return run(ctx, mgr, early, func(ctx context.Context) error {
		if !slices.ContainsFunc(roles, func(r named) bool { return !r.Serves }) {
			return nil
		}
		if own == nil {
			if err := waitForAPIs(ctx, mgr, kindsOf(roles), c.startTimeout); err != nil {
				return err
			}
		}
		return setup(ctx, mgr, roles, false)
	})
}

// setup adds the roles that serve, or those that do not, to the manager.
func setup(ctx context.Context, mgr ctrl.Manager, roles []named, serving bool) error {
	for _, r := range roles {
		if r.Serves != serving {
			continue
		}
		if err := r.Setup(ctx, mgr); err != nil {
			return fmt.Errorf("setting up %s: %w", r.Name, err)
		}
	}
	return nil
}

// etcdMember is the directory in which etcd keeps its data, under the one that it
// is given.
const etcdMember = "member"

// removeDataCommand returns the command that "karmadactl deinit --purge-data" runs
// on the node of etcd.
func removeDataCommand() *cobra.Command {
	return &cobra.Command{
		Use: names.RemoveEtcdDataCommand + " DIRECTORY", Short: "Remove the data of an etcd that does not run any more",
		Hidden: true, Args: cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error { return removeData(args[0]) },
	}
}

// removeData removes the data of etcd from a directory, and nothing else that is
// there. It follows no symbolic links. A directory without data is no error.
func removeData(dir string) error {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return fmt.Errorf("removing the data of etcd: %w", err)
	}
	defer root.Close() //nolint:errcheck // nothing was written through it
	info, err := root.Lstat(etcdMember)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return fmt.Errorf("removing the data of etcd: %w", err)
	case !info.IsDir():
		return fmt.Errorf("removing the data of etcd: %s/%s is not a directory; check it and remove it by hand", dir, etcdMember)
	}
	if err := root.RemoveAll(etcdMember); err != nil {
		return fmt.Errorf("removing the data of etcd: %w", err)
	}
	return nil
}

package env

import (
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/cli-runtime/pkg/genericclioptions"
)

// Flags are the flags that choose the control plane, and the user and namespace there.
type Flags struct {
	config   *genericclioptions.ConfigFlags
	complete *Completion
}

// Add adds --kubeconfig and --karmada-context to a command.
func (f *Flags) Add(cmd *cobra.Command) *Flags {
	f.add(cmd, cmd.Flags())
	return f
}

// AddPersistent adds --kubeconfig, --karmada-context and --namespace to a command and its subcommands.
func (f *Flags) AddPersistent(cmd *cobra.Command) {
	f.add(cmd, cmd.PersistentFlags())
	f.addNamespace(cmd, cmd.PersistentFlags())
}

// AddNamespace adds --namespace to a command.
func (f *Flags) AddNamespace(cmd *cobra.Command) *Flags {
	f.addNamespace(cmd, cmd.Flags())
	return f
}

// AddContext adds --context, kubectl's name of --karmada-context.
func (f *Flags) AddContext(cmd *cobra.Command) { cmd.Flags().Lookup("context").Hidden = false }

// AddImpersonation adds the flags that name the user to act as in the control plane.
func (f *Flags) AddImpersonation(cmd *cobra.Command) {
	fs := cmd.Flags()
	fs.StringVar(f.config.Impersonate, "karmada-as", "", "Username to impersonate in the control plane; a user or a service account in a namespace.")
	fs.StringArrayVar(f.config.ImpersonateGroup, "karmada-as-group", []string{}, "Group to impersonate in the control plane; repeat it for several.")
	fs.StringVar(f.config.ImpersonateUID, "karmada-as-uid", "", "UID to impersonate in the control plane.")
}

func (f *Flags) add(cmd *cobra.Command, fs *pflag.FlagSet) {
	fs.StringVar(f.config.KubeConfig, "kubeconfig", "", "Path to the kubeconfig file of the control plane; default $KUBECONFIG, then ~/.kube/config.")
	fs.StringVar(f.config.Context, "karmada-context", "", "Name of the kubeconfig context of the control plane; default the current one.")
	complete(cmd, "karmada-context", f.complete.Contexts)
	// These are kubectl's for every command, which its help does not repeat either.
	addRequestFlags(fs, f.config.Timeout, f.config.APIServer, f.config.Impersonate, f.config.ImpersonateGroup)
	fs.StringVar(f.config.Context, "context", "", "The same as --karmada-context, as kubectl has it.")
	complete(cmd, "context", f.complete.Contexts)
	fs.Lookup("context").Hidden = true
}

// addRequestFlags adds the hidden flags of every request to the server of a kubeconfig.
func addRequestFlags(fs *pflag.FlagSet, timeout, server, user *string, groups *[]string) {
	fs.StringVar(timeout, "request-timeout", "0", "How long to wait for a single request, such as 1s, 2m; 0 means no limit of the client.")
	fs.StringVar(server, "server", "", "Address and port of the API server.")
	fs.StringVar(user, "as", "", "Username to impersonate.")
	fs.StringArrayVar(groups, "as-group", []string{}, "Group to impersonate; repeat it for several.")
	for _, name := range []string{"request-timeout", "server", "as", "as-group"} {
		fs.Lookup(name).Hidden = true
	}
}

func (f *Flags) addNamespace(cmd *cobra.Command, fs *pflag.FlagSet) {
	fs.StringVarP(f.config.Namespace, "namespace", "n", "", "If present, the namespace scope for this CLI request.")
	complete(cmd, "namespace", f.complete.Namespaces)
}

// complete registers the completion of a flag. The only error is a flag that does not exist, which the test of any
// command finds.
func complete(cmd *cobra.Command, flag string, fn cobra.CompletionFunc) {
	if err := cmd.RegisterFlagCompletionFunc(flag, fn); err != nil {
		panic(err)
	}
}

package role

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/karmada-toolkit/karmada/internal/kube"
	"github.com/karmada-toolkit/karmada/pkg/apis/names"
	"github.com/karmada-toolkit/karmada/pkg/init/release"
)

// releaseCommands are what the Jobs and pods of a Helm release run beside the roles.
func releaseCommands() []*cobra.Command {
	return []*cobra.Command{releaseCertificates(), releaseResources(), awaitResources()}
}

func releaseFlags(fs *pflag.FlagSet, r *release.Release) {
	fs.StringVar(&r.Name, "name", "", "Name of the release.")
	fs.StringVar(&r.Fixed, "fixed-prefix", "", "What begins the names that the release karmada has without its name.")
	fs.StringVar(&r.Namespace, "namespace", "", "Namespace of the release.")
	fs.StringVar(&r.SystemNamespace, "system-namespace", "karmada-system", "Namespace of the control plane.")
	fs.BoolVar(&r.Compact, "compact", false, "One workload runs the roles of Karmada.")
	fs.StringVar(&r.Domain, "cluster-domain", "cluster.local", "DNS domain of the host cluster.")
}

// list is a flag with values separated by commas or lines.
func list(text string) []string {
	return strings.FieldsFunc(text, func(r rune) bool { return r == ',' || r == '\n' || r == ' ' })
}

func releaseCertificates() *cobra.Command {
	s := &release.Certificates{}
	var remove bool
	var hosts, servers string
	cmd := &cobra.Command{
		Use: names.ReleaseCertificatesCommand, Short: "Make and renew the certificates of a Helm release", Hidden: true, Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			config, err := rest.InClusterConfig()
			if err != nil {
				return fmt.Errorf("connecting to the host cluster: %w", err)
			}
			config.QPS, config.Burst = -1, 0
			host, err := client.New(config, client.Options{Scheme: kube.NewScheme()})
			if err != nil {
				return fmt.Errorf("connecting to the host cluster: %w", err)
			}
			s.Hosts, s.Servers = list(hosts), list(servers)
			if remove {
				return s.Remove(cmd.Context(), host)
			}
			return s.Write(cmd.Context(), host, clock.RealClock{}.Now)
		},
	}
	fs := cmd.Flags()
	releaseFlags(fs, &s.Release)
	fs.StringVar(&hosts, "hosts", "", "Names and addresses of the API server.")
	fs.StringVar(&servers, "servers", "", "Workloads beside the usual ones that have a certificate.")
	fs.DurationVar(&s.Validity, "validity", 0, "How long certificates are valid.")
	fs.Int32Var(&s.EtcdReplicas, "etcd-replicas", 0, "Number of members of etcd; 0 if it exists.")
	fs.StringVar(&s.Given, "given", "", "Directory with certificates to use.")
	fs.StringVar(&s.Renewed, "renewed", "", "When certificates were renewed last, in seconds since 1970.")
	fs.BoolVar(&remove, "remove", false, "Delete the certificates.")
	return cmd
}

func releaseResources() *cobra.Command {
	s := &release.Resources{}
	var kubeconfig, addons, estimators string
	var onlyAddons, remove bool
	cmd := &cobra.Command{
		Use: names.ReleaseResourcesCommand, Short: "Write the static resources of a Helm release", Hidden: true, Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if _, err := os.Stat(kubeconfig); remove && errors.Is(err, fs.ErrNotExist) {
				fmt.Fprintln(cmd.ErrOrStderr(), "the kubeconfig of the control plane is gone: there is nothing to delete")
				return nil
			}
			config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
			if err != nil {
				return fmt.Errorf("reading the kubeconfig: %w", err)
			}
			s.Addons, s.Estimators = list(addons), list(estimators)
			if remove {
				return s.RemoveAddons(cmd.Context(), config)
			}
			if onlyAddons {
				return s.WriteAddons(cmd.Context(), config, cmd.ErrOrStderr(), clock.RealClock{}.Now)
			}
			return s.Write(cmd.Context(), config, cmd.ErrOrStderr(), clock.RealClock{}.Now)
		},
	}
	flags := cmd.Flags()
	releaseFlags(flags, &s.Release)
	flags.StringVar(&kubeconfig, "kubeconfig", "", "Kubeconfig of the administrator of the control plane.")
	flags.BoolVar(&onlyAddons, "only-addons", false, "Write nothing but the APIs of addons, and wait until they are served.")
	flags.BoolVar(&remove, "remove-addons", false, "Delete the APIs of addons.")
	flags.StringVar(&s.Server, "server", "", "URL of the API server for clusters that register.")
	flags.Int32Var(&s.APIServers, "apiservers", 1, "Number of API servers.")
	flags.StringVar(&s.FeatureGates, "feature-gates", "", "Feature gates of the controller-manager.")
	flags.StringVar(&addons, "addons", "", "Servers of further APIs.")
	flags.StringVar(&estimators, "estimators", "", "Clusters that have an estimator.")
	flags.StringVar(&s.Version, "release", "", "Version to record.")
	flags.StringVar(&s.Settings, "settings", "", "Hash of the settings to record.")
	return cmd
}

func awaitResources() *cobra.Command {
	var kubeconfig, namespace, version, settings string
	cmd := &cobra.Command{
		Use: names.AwaitResourcesCommand, Short: "Wait for the static resources of a Helm release", Hidden: true, Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
			if err != nil {
				return fmt.Errorf("reading the kubeconfig: %w", err)
			}
			return release.Await(cmd.Context(), config, namespace, version, settings)
		},
	}
	fs := cmd.Flags()
	fs.StringVar(&kubeconfig, "kubeconfig", "", "Kubeconfig of the control plane.")
	fs.StringVar(&namespace, "namespace", "karmada-system", "Namespace of the control plane.")
	fs.StringVar(&version, "release", "", "Version that is waited for.")
	fs.StringVar(&settings, "settings", "", "Hash of the settings that is waited for.")
	return cmd
}

package kubelite

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/karmada-toolkit/karmada/internal/inotify"
)

const longHelp = `kubelite runs a whole Kubernetes cluster in one process, without containers or root: etcd, kube-apiserver and
kube-controller-manager, and for members kube-scheduler and simulated nodes on which pods seem to run.

Everything it keeps is in --data-dir: certificates, the database, a kubeconfig for an administrator. While the
cluster is ready, the file ready.json is there too.`

const examples = `  # A control plane
  kubelite --data-dir /var/lib/karmada

  # A member with two nodes, on a free port
  kubelite --data-dir /tmp/member1 --name member1 --profile member --nodes 2 --fsync=false
  kubectl --kubeconfig /tmp/member1/kubeconfig get nodes`

// Main runs the command line and returns the exit code.
func Main(ctx context.Context, args []string, stdout, stderr io.Writer, now func() time.Time) int {
	cmd := newCommand(stderr, now)
	cmd.SetArgs(args)
	cmd.SetOut(stdout)
	cmd.SetErr(stderr)
	if err := cmd.ExecuteContext(ctx); err != nil {
		_, _ = fmt.Fprintln(stderr, "error:", inotify.Explain(err))
		return 1
	}
	return 0
}

func newCommand(stderr io.Writer, now func() time.Time) *cobra.Command {
	cfg := DefaultConfig()
	cfg.Stderr, cfg.Now = stderr, now
	cmd := &cobra.Command{
		Use:           "kubelite --data-dir DIR",
		Short:         "A Kubernetes cluster in one process",
		Long:          longHelp,
		Example:       examples,
		Args:          cobra.NoArgs,
		SilenceUsage:  true,
		SilenceErrors: true,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if !cmd.Flags().Changed("fsync") {
				cfg.FSync = cfg.Profile != Member
			}
			return Run(cmd.Context(), cfg)
		},
	}
	bindFlags(cmd.Flags(), &cfg)
	return cmd
}

func bindFlags(fs *pflag.FlagSet, cfg *Config) {
	fs.SortFlags = false
	fs.StringVar(&cfg.DataDir, "data-dir", cfg.DataDir, "directory for everything the cluster keeps; made if it does not exist")
	fs.StringVar(&cfg.Name, "name", cfg.Name, "name of the cluster (default: the profile)")
	fs.StringVar((*string)(&cfg.Profile), "profile", string(cfg.Profile), "control-plane: only the controllers a federation needs; member: all of them")
	fs.StringVar(&cfg.BindAddress, "bind-address", cfg.BindAddress, "address on which the API server listens")
	fs.IntVar(&cfg.SecurePort, "secure-port", cfg.SecurePort, "port of the API server; 0 uses the same as before, or a free one")
	fs.StringSliceVar(&cfg.CertSANs, "cert-san", cfg.CertSANs, "more names and addresses by which clients reach the API server")
	fs.StringVar(&cfg.WriteKubeconfig, "write-kubeconfig", cfg.WriteKubeconfig, "one more file to write the administrator's kubeconfig to")
	fs.StringVar(&cfg.ContextName, "context-name", cfg.ContextName, "name of the context in the kubeconfigs (default: the name of the cluster)")
	fs.IntVar(&cfg.Nodes, "nodes", cfg.Nodes, "number of simulated nodes (members only)")
	fs.StringVar(&cfg.NodeCPU, "node-cpu", cfg.NodeCPU, "processors of each node")
	fs.StringVar(&cfg.NodeMemory, "node-memory", cfg.NodeMemory, "memory of each node")
	fs.IntVar(&cfg.NodePods, "node-pods", cfg.NodePods, "pods that fit on each node")
	fs.StringVar(&cfg.ServiceClusterIPRange, "service-cluster-ip-range", cfg.ServiceClusterIPRange, "addresses of Services")
	fs.StringVar(&cfg.ClusterCIDR, "cluster-cidr", cfg.ClusterCIDR, "addresses of pods")
	fs.StringVar(&cfg.AdmissionConfigFile, "admission-control-config-file", cfg.AdmissionConfigFile, "AdmissionConfiguration of the API server, such as the client certificate for webhooks")
	fs.BoolVar(&cfg.FSync, "fsync", cfg.FSync, "wait for the disk at every write; false is faster and risks the data when the machine crashes (default: true, for members false)")
	fs.StringSliceVar(&cfg.Etcd.Servers, "etcd-servers", nil, "use this etcd in place of the embedded one")
	fs.StringVar(&cfg.Etcd.CAFile, "etcd-cafile", "", "authority of the external etcd")
	fs.StringVar(&cfg.Etcd.CertFile, "etcd-certfile", "", "client certificate for the external etcd")
	fs.StringVar(&cfg.Etcd.KeyFile, "etcd-keyfile", "", "key of the client certificate for the external etcd")
	fs.StringVar(&cfg.Etcd.Prefix, "etcd-prefix", "", "prefix of all keys in etcd")
	fs.IntVar(&cfg.GCPercent, "gc-percent", cfg.GCPercent, "Go's GC percentage once ready: lower takes less memory and more CPU")
	fs.StringVar(&cfg.MemoryTarget, "memory-target", cfg.MemoryTarget, "size of the heap up to which --gc-percent holds: a larger one grows by less, at least by 50 %; 0 means any size")
	fs.StringVar(&cfg.MemoryLimit, "memory-limit", cfg.MemoryLimit, "soft limit of the process's memory, such as 512Mi")
	fs.IntVarP(&cfg.Verbosity, "v", "v", cfg.Verbosity, "log level")
	fs.StringVar(&cfg.LogFile, "log-file", cfg.LogFile, "file to log to in place of stderr")
	fs.Lookup("fsync").DefValue = ""
}

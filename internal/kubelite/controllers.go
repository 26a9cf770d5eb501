package kubelite

import (
	"context"
	"fmt"
	"strings"
	"time"

	"k8s.io/kubernetes/cmd/kube-controller-manager/app"
	"k8s.io/kubernetes/cmd/kube-controller-manager/app/options"
)

// controlPlaneControllers are the controllers of a control plane, besides the namespace reaper and the signer. Others
// would act on templates as if they were workloads of this cluster.
func controlPlaneControllers() []string {
	return []string{
		"garbagecollector", "serviceaccount-token", "ttl-after-finished", "bootstrapsigner",
		"tokencleaner", "csrcleaner", "clusterrole-aggregation",
	}
}

// nodeGrace is how long a node may send no heartbeat. A simulated node cannot fail without its cluster; when the
// whole process was stopped for a time, its nodes and pods are what they were.
const nodeGrace = 24 * time.Hour

// controllerManagerArgs are the flags of kube-controller-manager.
func controllerManagerArgs(cfg Config, certs certificates, kubeconfig string) []string {
	// The namespace reaper replaces the namespace controller, the signer the signing controller. No node ever
	// attaches a volume, so the controller that looks for it ten times a second is left out.
	controllers := []string{
		"*", "-namespace-controller", "-certificatesigningrequest-signing-controller", "-persistentvolume-attach-detach-controller",
	}
	if cfg.Profile == ControlPlane {
		controllers = controlPlaneControllers()
	}
	return []string{
		"--controllers=" + strings.Join(controllers, ","),
		"--kubeconfig=" + kubeconfig,
		"--secure-port=0",
		"--leader-elect=false",
		"--cluster-name=" + cfg.Name,
		"--root-ca-file=" + certs.cert(certCA),
		"--service-account-private-key-file=" + certs.key(keyServiceAccount),
		"--service-cluster-ip-range=" + cfg.ServiceClusterIPRange,
		"--allocate-node-cidrs=true",
		"--node-monitor-grace-period=" + nodeGrace.String(),
		"--cluster-cidr=" + cfg.ClusterCIDR,
		"--use-service-account-credentials=false",
		"--concurrent-gc-syncs=5",
		"--kube-api-qps=500",
		"--kube-api-burst=1000",
		"--pvclaimbinder-sync-period=2s", // a claim that came before its volume waits for it
		"--profiling=false",
	}
}

// runControllerManager runs the controllers until ctx ends.
func runControllerManager(ctx context.Context, args []string) error {
	opts, err := options.NewKubeControllerManagerOptions()
	if err != nil {
		return fmt.Errorf("making kube-controller-manager's options: %w", err)
	}
	known, disabled, aliases := app.KnownControllers(), app.ControllersDisabledByDefault(), app.ControllerAliases()
	if err := parse("kube-controller-manager", opts.Flags(known, disabled, aliases), args); err != nil {
		return err
	}
	config, err := opts.Config(ctx, known, disabled, aliases)
	if err != nil {
		return fmt.Errorf("configuring kube-controller-manager: %w", err)
	}
	return app.Run(ctx, config.Complete())
}

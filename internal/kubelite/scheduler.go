package kubelite

import (
	"context"
	"fmt"

	"k8s.io/kubernetes/cmd/kube-scheduler/app"
	"k8s.io/kubernetes/cmd/kube-scheduler/app/options"
)

// schedulerArgs are the flags of kube-scheduler.
func schedulerArgs(kubeconfig string) []string {
	return []string{
		"--kubeconfig=" + kubeconfig,
		"--secure-port=0",
		"--leader-elect=false",
		"--kube-api-qps=500",
		"--kube-api-burst=1000",
		"--profiling=false",
	}
}

// runScheduler runs the scheduler until ctx ends. Its cobra command cannot be used: it would install the process's
// signal handler, which the API server has done.
func runScheduler(ctx context.Context, args []string) error {
	opts := options.NewOptions()
	if err := parse("kube-scheduler", *opts.Flags, args); err != nil {
		return err
	}
	config, scheduler, err := app.Setup(ctx, opts)
	if err != nil {
		return fmt.Errorf("configuring kube-scheduler: %w", err)
	}
	return app.Run(ctx, config, scheduler)
}

package kubelite

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"strings"
	"sync"
	"time"

	apiversion "k8s.io/apimachinery/pkg/version"
	basecompatibility "k8s.io/component-base/compatibility"
	utilversion "k8s.io/component-base/version"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/cmd/kube-scheduler/app"
	"k8s.io/kubernetes/cmd/kube-scheduler/app/options"
)

// components run beside each other and end together.
type components struct {
	ctx    context.Context //nolint:containedctx // the life of the group
	cancel context.CancelFunc
	group  sync.WaitGroup
	// failed gets what the first component that ended by itself ended with.
	failed chan error
}

// newComponents makes a group that does not end with ctx, only by stop: an order is kept when the cluster ends.
func newComponents(ctx context.Context) *components {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	return &components{ctx: ctx, cancel: cancel, failed: make(chan error, 1)}
}

// run starts a component, which is meant to last until its context ends.
func (c *components) run(name string, f func(ctx context.Context) error) {
	c.group.Go(func() {
		err := f(c.ctx)
		if c.ctx.Err() != nil {
			return
		}
		if err == nil {
			err = errors.New("ended by itself")
		}
		select {
		case c.failed <- fmt.Errorf("%s: %w", name, err):
		default:
			klog.ErrorS(err, "Component ended", "component", name)
		}
	})
}

// stop ends all components and waits for them, but not for ever.
func (c *components) stop() {
	c.cancel()
	if !within(stopTimeout, c.group.Wait) {
		klog.InfoS("Some components did not end in time and are left behind", "timeout", stopTimeout)
	}
}

// within waits for f, but not longer than the limit, and reports whether it returned.
func within(limit time.Duration, f func()) bool {
	done := make(chan struct{})
	go func() {
		defer close(done)
		f()
	}()
	select {
	case <-done:
		return true
	case <-time.After(limit):
		return false
	}
}

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

const kubernetesModule = "k8s.io/kubernetes"

// kubernetesVersion is the version of the Kubernetes module in this program. Kubernetes itself gets its version
// from linker flags, which a plain build does not set.
func kubernetesVersion() string {
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, module := range info.Deps {
			if module.Path == kubernetesModule {
				return module.Version
			}
		}
	}
	return utilversion.Get().GitVersion
}

// reportedVersion is the effective version of a component, which reports the true version to clients.
type reportedVersion struct {
	basecompatibility.EffectiveVersion
	version string
}

// Info returns what /version answers.
func (v reportedVersion) Info() *apiversion.Info {
	info := utilversion.Get()
	if original := v.EffectiveVersion.Info(); original != nil {
		info = *original
	}
	info.GitVersion = v.version
	info.GitCommit, info.GitTreeState, info.BuildDate = "", "", "1970-01-01T00:00:00Z"
	if parts := strings.Split(strings.TrimPrefix(v.version, "v"), "."); len(parts) >= 2 {
		info.Major, info.Minor = parts[0], parts[1]
	}
	return &info
}

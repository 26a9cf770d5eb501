package process

import (
	"context"
	"fmt"
	"time"

	"github.com/karmada-toolkit/karmada/internal/kubelite/ready"
	"github.com/karmada-toolkit/karmada/internal/progress"
	"github.com/karmada-toolkit/karmada/internal/wait"
	"github.com/karmada-toolkit/karmada/pkg/local/federation"
)

// clusterTimeout bounds how long a cluster may take to be ready.
const clusterTimeout = 90 * time.Second

// clusters starts the cluster of the control plane and those of the members.
type clusters struct {
	federation.Deps
	f        *federation.Federation
	program  string
	launcher *launcher
	certs    certs
}

// start makes sure that a cluster runs and is ready.
func (c *clusters) start(ctx context.Context, name string) (_ ready.Info, err error) {
	defer progress.Begin(ctx, c.Progress, name, &err)()
	ctx, cancel := context.WithTimeoutCause(ctx, clusterTimeout, fmt.Errorf("it is not ready after %s; its log is %s", clusterTimeout, c.f.Dir().Log(name)))
	defer cancel()
	args, err := c.args(name)
	if err != nil {
		return ready.Info{}, err
	}
	p := process{name, c.f.Dir()}
	r, alive, err := c.launcher.running(ctx, p, args)
	if err != nil {
		return ready.Info{}, err
	}
	if !alive {
		child, err := c.launcher.start(ctx, p, c.program, args)
		if err != nil {
			return ready.Info{}, err
		}
		var stop context.CancelFunc
		ctx, stop = child.during(ctx)
		defer stop()
		r = child.record
	}
	defer wait.Publish(ctx, func() { c.Progress.Waiting(name, "the API server to answer") })()
	info, err := ready.Wait(ctx, c.f.Dir().Data(name), r.PID)
	if err != nil {
		return info, fmt.Errorf("starting %s: %w", name, federation.Cause(ctx, err))
	}
	c.Progress.Done(name, fmt.Sprintf("Kubernetes %s at %s", info.Version, info.Server))
	return info, nil
}

// args are the arguments of a cluster's process.
func (c *clusters) args(name string) ([]string, error) {
	args := []string{"--data-dir", c.f.Dir().Data(name), "--name", name}
	if name != federation.ControlPlane {
		return append(append(args, "--profile", "member"), nodeArgs(c.f.NodeSpec)...), nil
	}
	admission, err := c.certs.admission()
	if err != nil {
		return nil, err
	}
	return append(args, "--profile", "control-plane", admissionFlag+admission), nil
}

package process

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/karmada-toolkit/karmada/internal/kubelite/ready"
	"github.com/karmada-toolkit/karmada/internal/progress"
	"github.com/karmada-toolkit/karmada/internal/wait"
	"github.com/karmada-toolkit/karmada/pkg/local/federation"
)

// clusterTimeout bounds how long a cluster may take to be ready on a busy machine. A process that ends is reported at once.
const clusterTimeout = 5 * time.Minute

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
	defer wait.Publish(ctx, func() { c.Progress.Waiting(name, "the API server to answer") })()
	var info ready.Info
	if err := retryEnded(func() error { info, err = c.awaitReady(ctx, name, args); return err }); err != nil {
		return info, err
	}
	c.launcher.done(name)
	c.Progress.Done(name, fmt.Sprintf("Kubernetes %s at %s", info.Version, info.Server))
	return info, nil
}

// awaitReady starts the process of a cluster unless it runs, and returns when the cluster is ready.
func (c *clusters) awaitReady(ctx context.Context, name string, args []string) (ready.Info, error) {
	p := process{name, c.f.Dir()}
	r, alive, err := c.launcher.running(ctx, p, args)
	if err != nil {
		return ready.Info{}, err
	}
	var stop context.CancelFunc
	if alive {
		ctx, stop = p.during(ctx, r)
	} else {
		child, err := c.launcher.start(ctx, p, c.program, args)
		if err != nil {
			return ready.Info{}, err
		}
		ctx, stop = child.during(ctx)
		r = child.record
	}
	defer stop()
	info, err := ready.Wait(ctx, c.f.Dir().Data(name), r.PID)
	if err != nil {
		return info, fmt.Errorf("starting %s: %w", name, federation.Cause(ctx, err))
	}
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

// nodeArgs are the arguments of a member's process about its nodes.
func nodeArgs(n federation.NodeSpec) []string {
	args := []string{"--nodes", fmt.Sprint(n.Count)}
	if n.CPU != "" {
		args = append(args, "--node-cpu", n.CPU)
	}
	if n.Memory != "" {
		args = append(args, "--node-memory", n.Memory)
	}
	if n.Pods > 0 {
		args = append(args, "--node-pods", fmt.Sprint(n.Pods))
	}
	return args
}

// resize returns the nodes in before with the changes of a request.
func (r Request) resize(before federation.NodeSpec) (federation.NodeSpec, error) {
	n := r.Nodes
	for flag, value := range map[string]string{"node-cpu": n.CPU, "node-memory": n.Memory} {
		if value == "" {
			continue
		}
		if q, err := resource.ParseQuantity(value); err != nil || q.Sign() <= 0 {
			return before, fmt.Errorf("--%s %q: use a quantity, such as 16 for processors or 128Gi for memory", flag, value)
		}
	}
	if n.Count < 0 {
		n.Count = before.Count
	}
	n.CPU, n.Memory, n.Pods = cmp.Or(n.CPU, before.CPU), cmp.Or(n.Memory, before.Memory), cmp.Or(n.Pods, before.Pods)
	return n, nil
}

package local

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/kind/pkg/cluster"
)

// downKind removes the kind clusters that the federation made, and all that it
// keeps.
func downKind(ctx context.Context, d Deps, f *Federation) error {
	e, err := findEngine(ctx, d.Getenv)
	if err != nil {
		return err
	}
	unlock, err := f.lock()
	if err != nil {
		return err
	}
	defer unlock()
	if err := f.deleteClusters(d, cluster.NewProvider(e.option)); err != nil {
		return err
	}
	return f.remove()
}

// deleteClusters removes exactly the clusters that the federation made.
func (f *Federation) deleteClusters(d Deps, lib kindLibrary) error {
	if f.Kind == nil {
		return nil
	}
	var ours []string
	for _, short := range f.kindClusters() {
		if _, made := f.Kind.Complete[short]; made {
			ours = append(ours, short)
		}
	}
	errs := make([]error, len(ours))
	var wg sync.WaitGroup
	for i, short := range ours {
		wg.Go(func() {
			step := "remove " + short
			d.Progress.Begin(step)
			if errs[i] = f.deleteCluster(d, lib, short, step); errs[i] != nil {
				return
			}
			d.Progress.Done(step, "kind cluster "+f.kindName(short))
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}

// An engine goes on making nodes that it was asked for by a program that was
// killed, and cannot remove them before they are made.
const (
	// unseenLimit is how long such nodes may stay unseen, nodeLimit how long they may
	// take to go.
	unseenLimit = 10 * time.Second
	nodeLimit   = time.Minute
)

// deleteCluster removes a kind cluster and returns when no node of it is left. It is
// a part of step.
func (f *Federation) deleteCluster(d Deps, lib kindLibrary, short, step string) error {
	name := f.kindName(short)
	begun := d.Now()
	first, err := lib.ListNodes(name)
	if err != nil {
		return fmt.Errorf("listing the nodes of kind cluster %q: %w", name, err)
	}
	seen := f.Kind.Complete[short] || len(first) > 0
	for {
		if err := lib.Delete(name, f.kindKubeconfig(short)); err != nil {
			return fmt.Errorf("removing kind cluster %q: %w", name, err)
		}
		left, err := lib.ListNodes(name)
		if err != nil {
			return fmt.Errorf("listing the nodes of kind cluster %q: %w", name, err)
		}
		seen = seen || len(left) > 0
		waited := d.Now().Sub(begun)
		switch {
		case len(left) == 0 && (seen || waited > unseenLimit):
			return nil
		case waited > nodeLimit:
			return fmt.Errorf("removing kind cluster %q: node %s is still there after %s", name, left[0], nodeLimit)
		}
		d.Progress.Waiting(step, "nodes that an earlier start asked for")
		time.Sleep(time.Second)
	}
}

// statusKind returns the state of the control plane and of the clusters.
func (f *Federation) statusKind(ctx context.Context, d Deps) ([]ProcessStatus, error) {
	e, err := findEngine(ctx, d.Getenv)
	if err != nil {
		return nil, err
	}
	out := []ProcessStatus{f.controlStatus(ctx)}
	for _, short := range f.kindClusters() {
		s := ProcessStatus{Name: short, State: "missing"}
		state, err := e.inspect(ctx, f.kindName(short)+"-control-plane")
		if err == nil {
			s.State = "stopped"
		}
		if state.running {
			s.State, s.Since = "running", state.since
			if cfg, err := clientcmd.BuildConfigFromFlags("", f.kindKubeconfig(short)); err == nil {
				s.Server = cfg.Host
			}
		}
		out = append(out, s)
	}
	if out[0].State != "running" {
		return out, nil
	}
	conditions, err := readiness(ctx, f.controlKubeconfig())
	for i := range out {
		out[i].Ready = conditions[out[i].Name]
	}
	return out, err
}

// controlStatus asks the control plane whether it is there.
func (f *Federation) controlStatus(ctx context.Context) ProcessStatus {
	s := ProcessStatus{Name: controlPlane, State: "missing"}
	cfg, err := clientcmd.BuildConfigFromFlags("", f.controlKubeconfig())
	if err != nil {
		return s
	}
	s.State, s.Server = "stopped", cfg.Host
	client, err := rest.HTTPClientFor(cfg)
	if err != nil {
		return s
	}
	ctx, cancel := context.WithTimeout(ctx, statusLimit)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, cfg.Host+"/readyz", http.NoBody)
	if err != nil {
		return s
	}
	resp, err := client.Do(req)
	if err != nil {
		return s
	}
	defer resp.Body.Close() //nolint:errcheck // only the status counts
	if resp.StatusCode == http.StatusOK {
		s.State = "running"
	}
	return s
}

// runningKind says how many of the clusters run.
func (f *Federation) runningKind(ctx context.Context, getenv func(string) string) (running, all int) {
	names := f.kindClusters()
	e, err := findEngine(ctx, getenv)
	if err != nil {
		return 0, len(names)
	}
	running = len(slices.DeleteFunc(slices.Clone(names), func(short string) bool {
		state, err := e.inspect(ctx, f.kindName(short)+"-control-plane")
		return err != nil || !state.running
	}))
	return running, len(names)
}

package addons

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/karmada-toolkit/karmada/internal/apply"
	"github.com/karmada-toolkit/karmada/internal/progress"
	"github.com/karmada-toolkit/karmada/internal/wait"
	"github.com/karmada-toolkit/karmada/pkg/init/components"
	"github.com/karmada-toolkit/karmada/pkg/init/rollout"
	"github.com/karmada-toolkit/karmada/pkg/init/write"
)

// parallelAddons is how many addons are installed at the same time.
const parallelAddons = 8

// Result is what was installed.
type Result struct {
	// Workloads are the names of the Deployments that are ready.
	Workloads []string
	// Changes are what was done to the objects of both clusters, in no order.
	Changes apply.ChangeSet
	// Notes are for the user.
	Notes []string
}

// outcome collects the result of an installation, the parts of which are installed at the same time.
type outcome struct {
	mu     sync.Mutex
	result Result
}

func (o *outcome) note(format string, args ...any) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.result.Notes = append(o.result.Notes, fmt.Sprintf(format, args...))
}

func (o *outcome) record(changes apply.ChangeSet) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.result.Changes = append(o.result.Changes, changes...)
}

// Enable installs addons, or makes those that are installed as wanted, and waits until they are ready. All are tried.
// It can be run again.
func Enable(ctx context.Context, d Deps, r Request) (*Result, error) {
	o, parts, host, err := prepare(ctx, &d, &r, "")
	if err != nil {
		return nil, err
	}
	i := &installer{
		host: host.client, controlPlane: d.ControlPlane, progress: d.Progress, tracker: rollout.NewTracker(host.api, r.Namespace, d.Now),
		podTimeout: r.Config.Timeout(), apiTimeout: r.Config.Addons.Timeout(), outcome: o,
	}
	err = i.installAll(ctx, parts)
	return &o.result, err
}

// prepare returns what is to be installed, everything that can be checked being checked. pki is where the certificates of an
// export are kept.
func prepare(ctx context.Context, d *Deps, r *Request, pki string) (*outcome, []part, *hostSide, error) {
	names, err := r.selected("enable")
	if err != nil {
		return nil, nil, nil, err
	}
	o := &outcome{}
	if slices.Contains(r.Addons, All) && !slices.Contains(names, components.Estimator) {
		o.note("%s is left out: name clusters with --cluster, or use --all-clusters", components.Estimator)
	}
	host, err := connectHost(ctx, d.Host, r.Namespace)
	if err != nil {
		return nil, nil, nil, err
	}
	parts, err := plan(ctx, d, r, host, o, names, pki)
	return o, parts, host, err
}

// installer installs the parts of addons.
type installer struct {
	host         client.Client
	controlPlane func(context.Context) (client.Client, error)
	progress     progress.Reporter
	tracker      *rollout.Tracker
	// podTimeout and apiTimeout are how long the pods of an addon and its APIs may take to be ready;
	podTimeout, apiTimeout time.Duration
	outcome                *outcome
}

// installAll installs parts, some at the same time. All are tried.
func (i *installer) installAll(ctx context.Context, parts []part) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	go i.tracker.Run(ctx)
	errs, limit := make([]error, len(parts)), make(chan struct{}, parallelAddons)
	var wg sync.WaitGroup
	for n := range parts {
		limit <- struct{}{}
		wg.Go(func() {
			defer func() { <-limit }()
			errs[n] = i.install(ctx, &parts[n])
		})
	}
	wg.Wait()
	for n := range parts {
		if errs[n] == nil {
			i.outcome.result.Workloads = append(i.outcome.result.Workloads, parts[n].workload)
		}
	}
	return errors.Join(errs...)
}

// install writes the rights of a part, its pods, and, when they are ready, its APIs. It returns when all are ready.
func (i *installer) install(ctx context.Context, p *part) (err error) {
	defer progress.Begin(ctx, i.progress, p.workload, &err)()
	var all apply.ChangeSet
	for _, step := range []func(context.Context, *part) (apply.ChangeSet, error){i.writeRights, i.writePods, i.writeAPIs} {
		changes, err := step(ctx, p)
		all = append(all, changes...)
		if err != nil {
			i.outcome.record(all)
			return fmt.Errorf("%s: %w", p.workload, err)
		}
	}
	i.outcome.record(all)
	i.progress.Done(p.workload, "ready, "+write.Summary(all))
	return nil
}

func (i *installer) writeRights(ctx context.Context, p *part) (apply.ChangeSet, error) {
	return i.writeControlPlane(ctx, p.rights)
}

// writeControlPlane writes objects in the control plane, to which it connects if there are any.
func (i *installer) writeControlPlane(ctx context.Context, objects []client.Object) (apply.ChangeSet, error) {
	if len(objects) == 0 {
		return nil, nil
	}
	cp, err := i.controlPlane(ctx)
	if err != nil {
		return nil, err
	}
	return write.Apply(ctx, cp, objects)
}

func (i *installer) writePods(ctx context.Context, p *part) (apply.ChangeSet, error) {
	changes, err := write.Apply(ctx, i.host, p.host)
	if err != nil {
		return changes, err
	}
	err = i.tracker.Wait(ctx, p.workload, i.podTimeout, func(what string) { i.progress.Waiting(p.workload, what) })
	return changes, i.tracker.Explain(ctx, err, "--pod-timeout", i.podTimeout, p.workload)
}

func (i *installer) writeAPIs(ctx context.Context, p *part) (apply.ChangeSet, error) {
	changes, err := i.writeControlPlane(ctx, p.apis)
	if err != nil {
		return changes, err
	}
	for _, api := range apiNames(p.addon) {
		if err := i.awaitAPI(ctx, p.workload, api); err != nil {
			return changes, err
		}
	}
	return changes, nil
}

// awaitAPI waits until the API server serves an API.
func (i *installer) awaitAPI(ctx context.Context, step, api string) error {
	cp, err := i.controlPlane(ctx)
	if err != nil {
		return err
	}
	err = wait.Until(ctx, wait.Options{Timeout: i.apiTimeout, Publish: func(reason error) {
		if reason != nil {
			i.progress.Waiting(step, fmt.Sprintf("API %s: %s", api, rollout.FirstLine(reason.Error())))
		}
	}}, func(ctx context.Context) error { return rollout.CheckAPI(ctx, cp, api) })
	switch {
	case errors.Is(err, wait.ErrTimeout):
		return fmt.Errorf("APIService %s: %w; see --apiservice-timeout", api, err)
	case err != nil:
		return fmt.Errorf("APIService %s: %w", api, err)
	}
	return nil
}

// joined returns names separated by commas.
func joined(names []string) string { return strings.Join(names, ", ") }

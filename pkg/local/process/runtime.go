// Package process runs each cluster of a local federation, the roles of its control
// plane and each agent as a process, without containers or root.
package process

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/karmada-toolkit/karmada/internal/kubelite/ready"
	"github.com/karmada-toolkit/karmada/internal/progress"
	"github.com/karmada-toolkit/karmada/pkg/local/federation"
	"github.com/karmada-toolkit/karmada/pkg/local/membership"
	"github.com/karmada-toolkit/karmada/pkg/local/settings"
)

// Request is what a federation of processes is to have from now on.
type Request struct {
	// Nodes are the number and the size of the simulated nodes of each member. A
	// negative number, empty and 0 mean as before. Members that run are started again
	// when the nodes change.
	Nodes federation.NodeSpec
	// Estimators reports whether each member has an estimator. Nil means as before.
	Estimators *bool
	// Search reports whether the control plane caches objects of the members and serves them. Nil means as before.
	Search *bool
}

// Runtime runs a federation of processes.
type Runtime struct {
	federation.Deps
	f        *federation.Federation
	request  Request
	settings settings.Request

	launcher   *launcher
	clusters   *clusters
	roles      *roles
	agents     *agents
	estimators *estimators

	mu    sync.Mutex
	ready map[string]ready.Info
}

// New returns the runtime of a federation. The request counts for a start only.
func New(d federation.Deps, f *federation.Federation, request Request, set settings.Request) *Runtime {
	return &Runtime{Deps: d, f: f, request: request, settings: set, ready: map[string]ready.Info{}}
}

// Prepare finds the servers and applies the request to the record.
func (r *Runtime) Prepare(ctx context.Context) error {
	var err error
	if r.f.NodeSpec, err = r.request.resize(r.f.NodeSpec); err != nil {
		return err
	}
	if r.request.Estimators != nil {
		r.f.Estimators = *r.request.Estimators
	}
	if r.request.Search != nil {
		r.f.Search = *r.request.Search
	}
	kubelite, missing := r.FindServer(federation.KubeliteServer)
	karmada, err := r.FindServer(federation.KarmadaServer)
	if err := errors.Join(missing, err); err != nil {
		return err
	}
	tried, err := r.settings.Merge(ctx, r.f.Settings, karmada, settings.Layout{Reserved: reserved(r.f)})
	if err != nil {
		return err
	}
	federation.Try(r.f, tried)
	c := certs{dir: r.f.Dir(), now: r.Now}
	r.launcher = &launcher{now: r.Now}
	r.clusters = &clusters{Deps: r.Deps, f: r.f, program: kubelite, launcher: r.launcher, certs: c}
	r.roles = &roles{Deps: r.Deps, f: r.f, program: karmada, launcher: r.launcher, certs: c}
	r.estimators = &estimators{Deps: r.Deps, f: r.f, program: karmada, launcher: r.launcher, certs: c}
	r.agents = &agents{Deps: r.Deps, f: r.f, program: karmada, launcher: r.launcher}
	return nil
}

// Start makes sure that a member, or the control plane with its roles, runs and is
// ready.
func (r *Runtime) Start(ctx context.Context, cluster string) (kubeconfigs []string, err error) {
	info, err := r.clusters.start(ctx, cluster)
	if err == nil && cluster == federation.ControlPlane {
		err = r.roles.start(ctx, info)
	}
	if err != nil {
		return nil, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ready[cluster] = info
	return []string{info.Kubeconfig}, nil
}

// Join makes sure that a member belongs to the federation and is Ready, and has its estimator.
func (r *Runtime) Join(ctx context.Context, member string) error {
	r.mu.Lock()
	control, info := r.ready[federation.ControlPlane], r.ready[member]
	r.mu.Unlock()
	if err := r.join(ctx, member, control, info); err != nil {
		return err
	}
	return r.estimators.run(ctx, member, control, info)
}

func (r *Runtime) join(ctx context.Context, member string, control, info ready.Info) error {
	m := membership.Member{
		Name: member, ControlPlane: control.Kubeconfig, Kubeconfig: info.Kubeconfig,
		Known:  r.f.Dir().HasContext(member),
		Remove: r.f.Command(r.Deps, "down") + " --member " + member + " --purge",
		Hint:   "the log of the control plane is " + r.f.Dir().Log(federation.Roles),
	}
	if !r.f.Pulls(member) {
		return membership.Join(ctx, r.Deps, m)
	}
	m.Hint = "the log of the agent is " + r.f.Dir().Log(federation.Agent(member))
	return membership.Register(ctx, r.Deps, m, func(ctx context.Context, step string, c membership.Clients) (context.Context, context.CancelFunc, error) {
		return r.agents.run(ctx, agent{member: member, step: step, control: control, info: info, clients: c})
	})
}

// Abort stops the processes that were started and are not ready. Those that ran before with other arguments are started
// again with these.
func (r *Runtime) Abort(ctx context.Context, err error) error {
	restarted := r.launcher.undo(context.WithoutCancel(ctx))
	var again string
	if len(restarted) > 0 {
		again = "\nstarted again as before: " + strings.Join(restarted, ", ")
	}
	up := r.f.Command(r.Deps, "up")
	return fmt.Errorf("%w%s\nwhat is ready keeps running: run %q again to go on, or %q to stop it%s", err, again,
		up, r.f.Command(r.Deps, "down"), r.settings.Hint(r.f.Settings, up))
}

// Stop stops the processes. The data is kept.
func (r *Runtime) Stop(ctx context.Context) (removed bool, err error) {
	// The roles, agents and estimators first: they need the clusters for an orderly end.
	first := []string{federation.Roles}
	for _, member := range r.f.Pull {
		first = append(first, federation.Agent(member))
	}
	for _, member := range r.f.Members {
		first = append(first, federation.Estimator(member))
	}
	if err := r.stopAll(ctx, first); err != nil {
		return false, err
	}
	return false, r.stopAll(ctx, append([]string{federation.ControlPlane}, r.f.Members...))
}

func (r *Runtime) stopAll(ctx context.Context, names []string) error {
	errs := make([]error, len(names))
	var wg sync.WaitGroup
	for i, name := range names {
		wg.Go(func() {
			p := process{name, r.f.Dir()}
			if _, alive := p.running(); !alive {
				return
			}
			step := "stop " + name
			defer progress.Begin(ctx, r.Progress, step, &errs[i])()
			if errs[i] = p.stop(ctx); errs[i] == nil {
				r.Progress.Done(step, "")
			}
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}

// Status returns the state of the processes.
func (r *Runtime) Status(context.Context) (federation.Status, error) {
	var out federation.Status
	for _, name := range r.f.Processes() {
		part := federation.Part{Name: name, State: federation.StateStopped, Log: r.f.Dir().Log(name)}
		if record, ok := (process{name, r.f.Dir()}).running(); ok {
			part.State, part.PID, part.Since = federation.StateRunning, record.PID, record.Time
			if info, err := ready.Read(r.f.Dir().Data(name)); err == nil && info.PID == record.PID {
				part.Server = info.Server
				if name == federation.ControlPlane {
					out.ControlPlane = info.Kubeconfig
				}
			}
		} else {
			part.Cause = diskFull(part.Log)
		}
		out.Parts = append(out.Parts, part)
	}
	return out, nil
}

// notRunning is the error of a removal of members without a control plane.
func (r *Runtime) notRunning() error {
	return fmt.Errorf("the control plane of federation %q does not run, so no member can leave it; start it with %q first", r.f.Name, r.f.Command(r.Deps, "up"))
}

// launcher starts the processes of a federation.
type launcher struct {
	now func() time.Time

	mu       sync.Mutex
	children []*child
	// ready are the names of the children that are ready.
	ready map[string]bool
	// before are the processes that were stopped to be started again, with their command lines, by name.
	before map[string]stopped
}

// stopped is a process that ran before.
type stopped struct {
	process
	command []string
}

// running returns the record of a process that runs with these arguments. One that
// runs with others is stopped, to be started with these.
func (l *launcher) running(ctx context.Context, p process, args []string) (record, bool, error) {
	r, alive := p.running()
	if !alive || r.runsWith(args) {
		return r, alive, nil
	}
	return r, false, l.stop(ctx, p, r)
}

// stop stops a process that is started again afterwards.
func (l *launcher) stop(ctx context.Context, p process, r record) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.before == nil {
		l.before = map[string]stopped{}
	}
	l.before[p.name] = stopped{p, r.Command}
	return p.stop(ctx)
}

// done records that a process is ready, so that a start that fails later leaves it running.
func (l *launcher) done(name string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ready == nil {
		l.ready = map[string]bool{}
	}
	l.ready[name] = true
}

// start starts a process.
func (l *launcher) start(ctx context.Context, p process, program string, args []string) (*child, error) {
	p.awaitEnd(ctx)
	c, err := p.start(l.now(), program, args...)
	if err != nil {
		return nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.children = append(l.children, c)
	return c, nil
}

// undo stops what was started and is not ready, and starts what was stopped for it again as it was. It returns the names
// of those, sorted.
func (l *launcher) undo(ctx context.Context) (restarted []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	var wg sync.WaitGroup
	for _, c := range l.children {
		if !l.ready[c.name] {
			wg.Go(func() { _ = c.stop(ctx) })
		}
	}
	wg.Wait()
	for _, name := range slices.Sorted(maps.Keys(l.before)) {
		p := l.before[name]
		if l.ready[name] || len(p.command) == 0 {
			continue
		}
		p.awaitEnd(ctx)
		if _, err := p.start(l.now(), p.command[0], p.command[1:]...); err == nil {
			restarted = append(restarted, name)
		}
	}
	return restarted
}

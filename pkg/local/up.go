package local

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/karmada-toolkit/karmada/internal/kubelite/ready"
	"github.com/karmada-toolkit/karmada/internal/pki"
)

// Limits of the steps of a start.
const (
	clusterLimit = 90 * time.Second
	rolesLimit   = 90 * time.Second
	joinLimit    = 90 * time.Second
)

// Deps is what the commands on federations work with.
type Deps struct {
	// Program is what the user types, for the next steps that errors name.
	Program string
	// Version of this program, which that of the control plane's image follows.
	Version string
	// Executable is the path of this program; the servers are looked for beside it.
	Executable string
	// Getenv reads the environment, Now is the clock.
	Getenv func(string) string
	Now    func() time.Time
	// Progress is told of the steps. It is called from several goroutines.
	Progress Progress
}

// Progress is told what a command does.
type Progress interface {
	// Begin says that a step has begun.
	Begin(step string)
	// Waiting says what a step that takes long is waiting for.
	Waiting(step, what string)
	// Done says that a step is done and what came of it.
	Done(step, result string)
}

// UpRequest says which federation is wanted.
type UpRequest struct {
	// Root is the directory of the federations, Name the one that is wanted.
	Root, Name string
	// Members is the number of member clusters; negative means as many as there
	// are, or two.
	Members int
	// Pull is the number of members in Pull mode, each with an agent; negative means
	// as before, or none. Members that are there keep their mode.
	Pull int
	// Nodes is the number of simulated nodes of each member; negative means as
	// before, or one. Members that run are started again when it changes.
	Nodes int
	// NodeCPU and NodeMemory, as quantities, and NodePods are the size of each node;
	// empty or 0 means as before, or the server's default.
	NodeCPU, NodeMemory string
	NodePods            int
	// Set are changes to the flags of the roles and agents: ROLE.FLAG=VALUE sets one,
	// ROLE.FLAG- gives it its default back.
	Set []string
	// FeatureGates replace those of the roles and agents: NAME=true,NAME=false. Nil
	// means as before.
	FeatureGates *string
	// Runtime is what the clusters are: RuntimeProcess or RuntimeKind; empty means as
	// before, or processes.
	Runtime string
	// Kind is for RuntimeKind only.
	Kind KindRequest
}

// KindRequest says how the kind clusters of a federation are made.
type KindRequest struct {
	// NodeImage is the image of the nodes of new clusters; empty means as before, or
	// kind's default.
	NodeImage string
	// Config is the path of a kind configuration that new clusters are made from;
	// their names are set. Empty means as before, or kind's defaults.
	Config string
	// Image is the path of an archive of the image of the control plane, as "make
	// image" writes it. Empty means the image of this version that the container
	// engine has.
	Image string
}

func (k KindRequest) empty() bool { return k == KindRequest{} }

// defaults of a new federation.
const (
	defaultMembers = 2
	defaultNodes   = 1
)

// Up starts a federation, or what is dead of it, and returns when every member is
// Ready. When it fails, processes that it started are stopped again, and kind
// clusters that are complete are kept.
func Up(ctx context.Context, d Deps, r UpRequest) (*Federation, error) {
	f, err := prepare(d, r)
	if err != nil {
		return nil, err
	}
	start := upProcesses
	if f.runtimeOf() == RuntimeKind {
		start = upKind
	}
	if err := start(ctx, d, f, r); err != nil {
		return nil, err
	}
	return f, nil
}

// upProcesses starts a federation of processes.
func upProcesses(ctx context.Context, d Deps, f *Federation, r UpRequest) error {
	bin, err := findBinaries(d.Executable, d.Getenv)
	if err != nil {
		return err
	}
	s := &starter{Deps: d, bin: bin, f: f, ready: map[string]ready.Info{}}
	if err := s.configure(ctx, r); err != nil {
		return err
	}
	unlock, err := f.lock()
	if err != nil {
		return err
	}
	defer unlock()
	if err := s.run(ctx); err != nil {
		s.undo(context.WithoutCancel(ctx))
		return err
	}
	return nil
}

// prepare loads the federation, or thinks of a new one, with as many members as
// requested.
func prepare(d Deps, r UpRequest) (*Federation, error) {
	if err := validateRuntime(r.Runtime); err != nil {
		return nil, err
	}
	f, err := Load(r.Root, r.Name)
	if errors.Is(err, ErrNoFederation) {
		f, err = &Federation{Name: r.Name, Runtime: r.Runtime, Created: d.Now(), dir: filepath.Join(r.Root, r.Name)}, nil
		if r.Members < 0 {
			r.Members = defaultMembers
		}
		if f.runtimeOf() == RuntimeProcess {
			f.Nodes = defaultNodes
		}
	}
	if err != nil {
		return nil, err
	}
	if err := f.checkRuntime(r); err != nil {
		return nil, err
	}
	if r.Members > maxMembers {
		return nil, fmt.Errorf("%d members are too many for one machine; use at most %d", r.Members, maxMembers)
	}
	if r.Nodes >= 0 {
		f.Nodes = r.Nodes
	}
	if err := f.resizeNodes(r); err != nil {
		return nil, err
	}
	before := len(f.Members)
	if r.Members >= 0 {
		if err := f.grow(d, r.Members); err != nil {
			return nil, err
		}
	}
	if r.Pull >= 0 {
		if err := f.choosePull(d, r.Pull, before); err != nil {
			return nil, err
		}
	}
	return f, nil
}

// lock keeps other commands off the federation.
func (f *Federation) lock() (func(), error) {
	if err := f.makeDir(); err != nil {
		return nil, err
	}
	unlock, err := lock(filepath.Join(f.dir, lockFile))
	if err != nil {
		return nil, fmt.Errorf("locking federation %q: %w; wait for it to end and try again", f.Name, err)
	}
	return unlock, nil
}

// starter is one start of a federation.
type starter struct {
	Deps
	bin binaries
	f   *Federation

	mu       sync.Mutex
	ready    map[string]ready.Info
	children []*child
}

// run starts what is not running: the clusters at the same time, the roles as
// soon as the control plane answers, and each join as soon as both sides do.
func (s *starter) run(ctx context.Context) error {
	if err := s.f.save(); err != nil {
		return err
	}
	group, ctx := errgroup.WithContext(ctx)
	cp := newHandover()
	roles := newHandover()
	group.Go(func() error {
		defer cp.fail()
		info, err := s.cluster(ctx, controlPlane)
		if err != nil {
			return err
		}
		cp.done(info)
		return nil
	})
	group.Go(func() error {
		defer roles.fail()
		info, ok := cp.wait(ctx)
		if !ok {
			return nil // its own step says why
		}
		if err := s.roles(ctx, info); err != nil {
			return err
		}
		roles.done(info)
		return nil
	})
	for _, member := range s.f.Members {
		group.Go(func() error {
			info, err := s.cluster(ctx, member)
			if err != nil {
				return err
			}
			control, ok := roles.wait(ctx)
			if !ok {
				return nil // its own step says why
			}
			if s.f.pulls(member) {
				return s.register(ctx, member, control, info)
			}
			return s.join(ctx, joining{
				name: member, control: control.Kubeconfig, kubeconfig: info.Kubeconfig,
				look: "the log of the control plane is " + s.f.log(rolesProcess),
			})
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	return s.writeKubeconfig()
}

// handover hands a cluster from the step that starts it to those that need it.
type handover struct {
	once sync.Once
	ch   chan struct{}
	info ready.Info
	ok   bool
}

func newHandover() *handover { return &handover{ch: make(chan struct{})} }

func (s *handover) done(info ready.Info) {
	s.once.Do(func() { s.info, s.ok = info, true; close(s.ch) })
}

func (s *handover) fail() { s.once.Do(func() { close(s.ch) }) }

// wait returns the cluster, or false when there will be none.
func (s *handover) wait(ctx context.Context) (ready.Info, bool) {
	select {
	case <-s.ch:
		return s.info, s.ok
	case <-ctx.Done():
		return ready.Info{}, false
	}
}

// cluster makes sure that a cluster runs and is ready.
func (s *starter) cluster(ctx context.Context, name string) (ready.Info, error) {
	s.Progress.Begin(name)
	info, err := s.startCluster(ctx, name)
	if err != nil {
		return info, err
	}
	s.mu.Lock()
	s.ready[name] = info
	s.mu.Unlock()
	s.Progress.Done(name, fmt.Sprintf("Kubernetes %s at %s", info.Version, info.Server))
	return info, nil
}

func (s *starter) startCluster(ctx context.Context, name string) (ready.Info, error) {
	p := s.f.process(name)
	dir := s.f.dataDir(name)
	ctx, cancel := context.WithTimeoutCause(ctx, clusterLimit, fmt.Errorf("it is not ready after %s; its log is %s", clusterLimit, s.f.log(name)))
	defer cancel()
	args := []string{"--data-dir", dir, "--name", name}
	if name == controlPlane {
		admission, err := s.admission()
		if err != nil {
			return ready.Info{}, err
		}
		args = append(args, "--profile", "control-plane", admissionFlag+admission)
	} else {
		args = append(append(args, "--profile", "member"), s.f.nodeArgs()...)
	}
	r, alive, err := s.running(ctx, p, args)
	if err != nil {
		return ready.Info{}, err
	}
	if alive {
		return s.waitCluster(ctx, name, dir, r.PID)
	}
	c, err := s.start(ctx, p, s.bin.kubelite, args...)
	if err != nil {
		return ready.Info{}, err
	}
	ctx, stop := c.during(ctx)
	defer stop()
	return s.waitCluster(ctx, name, dir, c.PID)
}

func (s *starter) waitCluster(ctx context.Context, name, dir string, pid int) (ready.Info, error) {
	defer s.remind(ctx, name, func() string { return "the API server to answer" })()
	info, err := ready.Wait(ctx, dir, pid)
	if err != nil {
		return info, fmt.Errorf("starting %s: %w", name, cause(ctx, err))
	}
	return info, nil
}

// running returns the record of a process that runs with these arguments. One that
// runs with others is stopped, to be started with these.
func (s *starter) running(ctx context.Context, p process, args []string) (record, bool, error) {
	r, alive := p.running()
	if !alive || r.runsWith(args) {
		return r, alive, nil
	}
	return r, false, p.stop(ctx)
}

// start runs a process and remembers it for undo.
func (s *starter) start(ctx context.Context, p process, program string, args ...string) (*child, error) {
	p.settle(ctx)
	c, err := p.start(s.Now(), program, args...)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	s.children = append(s.children, c)
	s.mu.Unlock()
	return c, nil
}

// undo stops what this run started.
func (s *starter) undo(ctx context.Context) {
	var wg sync.WaitGroup
	for _, c := range s.children {
		wg.Go(func() { _ = c.stop(ctx) })
	}
	wg.Wait()
}

// remind tells every two seconds what a step is waiting for, until the returned
// function is called.
func (d Deps) remind(ctx context.Context, step string, what func() string) (stop func()) {
	ctx, stop = context.WithCancel(ctx)
	go func() {
		tick := time.NewTicker(2 * time.Second)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
				d.Progress.Waiting(step, what())
			}
		}
	}()
	return stop
}

// cause prefers the reason why a context ended to the fact that it did.
func cause(ctx context.Context, err error) error {
	if c := context.Cause(ctx); c != nil && ctx.Err() != nil {
		return c
	}
	return err
}

// writeKubeconfig writes the kubeconfig with all contexts.
func (s *starter) writeKubeconfig() error {
	all := clientcmdapi.NewConfig()
	for _, name := range append([]string{controlPlane}, s.f.Members...) {
		one, err := clientcmd.LoadFromFile(s.ready[name].Kubeconfig)
		if err != nil {
			return fmt.Errorf("reading the kubeconfig of %s: %w", name, err)
		}
		pki.MergeKubeconfig(all, one)
	}
	all.CurrentContext = controlPlane
	return pki.WriteKubeconfig(s.f.Kubeconfig(), all)
}

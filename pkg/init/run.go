package installer

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/karmada-toolkit/karmada/internal/apply"
	"github.com/karmada-toolkit/karmada/internal/kube"
	"github.com/karmada-toolkit/karmada/internal/progress"
	"github.com/karmada-toolkit/karmada/internal/wait"
	"github.com/karmada-toolkit/karmada/pkg/init/components"
	"github.com/karmada-toolkit/karmada/pkg/init/rollout"
)

// fieldManager owns what an installation writes.
const fieldManager = "karmadactl-init"

// Deps are what an installation works with.
type Deps struct {
	// Program is what the user types, for the next steps that errors name.
	Program string
	// Host is how the host cluster is reached.
	Host *rest.Config
	// Archive is the path of the image archive that the nodes have, or will have;
	// empty means none.
	Archive string
	// Progress receives the phases and what they wait for.
	Progress progress.Reporter
	// Now is the clock.
	Now func() time.Time
}

// Result is what came of an installation.
type Result struct {
	// Changes are what was done to the objects of both clusters, in no order.
	Changes apply.ChangeSet
	// FilesChanged says that local files were written.
	FilesChanged bool
	// Kubeconfig is the path of the administrator's kubeconfig.
	Kubeconfig string
	// Server is the URL of the API server in it.
	Server string
	// Token is a bootstrap token, empty unless one was asked for, and CAHash the
	// hash of the authority by which a cluster that registers knows the server.
	Token, CAHash string
	// Notes are for the user.
	Notes []string
}

// Changed says whether the installation was not as wanted before.
func (r *Result) Changed() bool { return r.FilesChanged || r.Changes.Changed() }

// state is one run of an installation.
type state struct {
	Deps
	options    *Options
	host       client.Client
	hostAPI    kubernetes.Interface
	facts      *facts
	sites      sites
	customCRDs []*apiextensionsv1.CustomResourceDefinition
	tracker    *rollout.Tracker

	mu    sync.Mutex
	creds *credentials
	cfg   *components.Config
	cp    client.Client
	result
}

// result is the part of a Result that phases add to.
type result struct {
	changes      apply.ChangeSet
	filesChanged bool
	token        string
	notes        []string
}

// Run makes sure that the control plane that o describes is installed and works.
// When it is interrupted, or fails, it can be run again.
func Run(ctx context.Context, d Deps, o Options) (*Result, error) {
	if err := o.Validate(d.Program); err != nil {
		return nil, err
	}
	s, err := newState(ctx, d, &o)
	if err != nil {
		return nil, err
	}
	if o.Etcd.StorageMode != components.StoragePVC && o.Etcd.Replicas > 1 && !o.external() {
		s.note("etcd keeps its data in its pods: a member whose pod is deleted does not come back by itself; use --etcd-storage-mode=PVC to keep it")
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	s.tracker = rollout.NewTracker(s.hostAPI, o.Namespace, d.Now)
	go s.tracker.Run(ctx)
	if err := s.runPhases(ctx, o.chosen()); err != nil {
		return nil, err
	}
	r := &Result{
		Changes: s.changes, FilesChanged: s.filesChanged, Token: s.token, Notes: s.notes,
		Kubeconfig: o.directory().kubeconfig(), Server: s.sites.server,
	}
	if s.creds != nil {
		r.CAHash = publicKeyHash(s.creds.ca.Cert)
	}
	return r, nil
}

// newState reads what there is.
func newState(ctx context.Context, d Deps, o *Options) (*state, error) {
	if d.Progress == nil {
		d.Progress = progress.Discard{}
	}
	d.Progress = &attentive{Reporter: d.Progress, now: d.Now, said: map[string]time.Time{}, talks: map[string]bool{}}
	s := &state{Deps: d, options: o}
	s.Progress.Begin(stepHost)
	defer s.remind(ctx, stepHost, "the host cluster to answer")()
	var err error
	if s.customCRDs, err = o.customCRDs(ctx); err != nil {
		return nil, err
	}
	cfg := rest.CopyConfig(d.Host)
	cfg.QPS, cfg.Burst = -1, 0
	if o.Host.Endpoint != "" {
		cfg.Host = o.Host.Endpoint
	}
	if s.hostAPI, err = kubernetes.NewForConfig(cfg); err != nil {
		return nil, fmt.Errorf("connecting to the host cluster: %w", err)
	}
	if s.facts, err = gather(ctx, s.hostAPI, o); err != nil {
		return nil, err
	}
	if err := refuseControlPlane(cfg.Host, s.hostAPI.Discovery()); err != nil {
		return nil, err
	}
	if s.facts.nodeWanted(o) {
		s.Progress.Waiting(stepHost, "a node of the host cluster to be ready")
	}
	if err := s.facts.awaitNode(ctx, s.hostAPI, o); err != nil {
		return nil, fmt.Errorf("waiting for a node of the host cluster: %w", err)
	}
	s.ownImages()
	if s.host, err = client.New(cfg, client.Options{Scheme: kube.NewScheme()}); err != nil {
		return nil, fmt.Errorf("connecting to the host cluster: %w", err)
	}
	if s.sites, err = s.facts.sites(o); err != nil {
		return nil, err
	}
	s.Progress.Done(stepHost, "Kubernetes "+s.facts.version.GitVersion+" at "+cfg.Host)
	return s, nil
}

// stepHost is told of before the phases.
const stepHost = "host"

// attentive is a Reporter that knows when it was last told of a step.
type attentive struct {
	progress.Reporter
	now func() time.Time

	mu   sync.Mutex
	said map[string]time.Time
	// talks are the steps that say themselves what they wait for.
	talks map[string]bool
}

func (a *attentive) note(step string, talks bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.said[step], a.talks[step] = a.now(), a.talks[step] || talks
}

// Begin implements progress.Reporter.
func (a *attentive) Begin(step string) {
	a.note(step, false)
	a.Reporter.Begin(step)
}

// Waiting implements progress.Reporter.
func (a *attentive) Waiting(step, what string) {
	a.note(step, true)
	a.Reporter.Waiting(step, what)
}

// silent says whether a step was not told of for a while.
func (a *attentive) silent(step string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	limit := wait.PublishInterval
	if a.talks[step] {
		limit = 5 * wait.PublishInterval
	}
	return a.now().Sub(a.said[step]) >= limit
}

// remind tells of a step that is silent, until the returned function is called.
func (s *state) remind(ctx context.Context, step, what string) (stop func()) {
	a, ok := s.Progress.(*attentive)
	if !ok {
		return func() {}
	}
	ctx, stop = context.WithCancel(ctx)
	go func() {
		tick := time.NewTicker(wait.PublishInterval / 4)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
				if a.silent(step) {
					a.note(step, false)
					a.Reporter.Waiting(step, what)
				}
			}
		}
	}()
	return stop
}

// runPhases runs each phase as soon as those that it needs are done. The first
// failure stops all.
func (s *state) runPhases(ctx context.Context, phases []Phase) error {
	done := map[string]chan struct{}{}
	for _, p := range phases {
		done[p.Name] = make(chan struct{})
	}
	g, ctx := errgroup.WithContext(ctx)
	for _, p := range phases {
		g.Go(func() error {
			for _, need := range needs(p, done) {
				select {
				case <-done[need]:
				case <-ctx.Done():
					return ctx.Err()
				}
			}
			s.Progress.Begin(p.Name)
			defer s.remind(ctx, p.Name, "its requests to be answered")()
			if err := p.run(ctx, s); err != nil {
				return fmt.Errorf("%s: %w", p.Name, err)
			}
			close(done[p.Name])
			return nil
		})
	}
	return g.Wait()
}

// needs are the phases to wait for. Those that do not run pass their own needs
// on.
func needs(p Phase, running map[string]chan struct{}) []string {
	all := map[string]Phase{}
	for _, q := range Phases() {
		all[q.Name] = q
	}
	var out []string
	for _, need := range p.Needs {
		if _, ok := running[need]; ok {
			out = append(out, need)
		} else {
			out = append(out, needs(all[need], running)...)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// credentials loads or creates the certificates, once.
func (s *state) credentials() (*credentials, *components.Config, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.creds != nil {
		return s.creds, s.cfg, nil
	}
	have := s.facts.certificates
	if len(have) == 0 {
		d := s.options.directory()
		if who, ok := d.owner(); ok && who == s.owner() {
			var err error
			if have, err = d.certificates(); err != nil {
				return nil, nil, err
			}
		}
	}
	creds, err := s.options.makeCredentials(have, s.sites, s.Now)
	if err != nil {
		return nil, nil, err
	}
	cfg, err := s.options.config(s.facts, creds)
	if err != nil {
		return nil, nil, err
	}
	s.creds, s.cfg = creds, cfg
	return creds, cfg, nil
}

func (s *state) owner() owner {
	return owner{HostID: s.facts.id, Namespace: s.options.Namespace}
}

// controlPlane returns a client of the new control plane.
func (s *state) controlPlane() (client.Client, error) {
	creds, _, err := s.credentials()
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.cp != nil {
		return s.cp, nil
	}
	cfg, err := creds.restConfig()
	if err != nil {
		return nil, err
	}
	if s.cp, err = client.New(cfg, client.Options{Scheme: kube.NewScheme()}); err != nil {
		return nil, fmt.Errorf("connecting to the control plane: %w", err)
	}
	return s.cp, nil
}

// retryLimit is how long requests are tried again that failed because a server is
// busy or changes its leader.
const retryLimit = 30 * time.Second

// apply writes objects that are not as wanted and returns a summary.
func (s *state) apply(ctx context.Context, to client.Client, objects []client.Object) (string, error) {
	applier := &apply.Applier{Client: to, Manager: fieldManager, Parallel: 16}
	var changes apply.ChangeSet
	err := wait.Until(ctx, wait.Options{Interval: time.Second, Timeout: retryLimit}, func(context.Context) error {
		again, err := applier.Apply(ctx, objects...) // not the context of the wait: an attempt is not interrupted
		if changes = merge(changes, again); err != nil && !transient(err) {
			return wait.Terminal(err)
		}
		return err
	})
	s.mu.Lock()
	s.changes = append(s.changes, changes...)
	s.mu.Unlock()
	if err != nil && ctx.Err() != nil {
		err = ctx.Err()
	}
	return summary(changes), err
}

// merge adds what a second attempt did to what the first did.
func merge(first, second apply.ChangeSet) apply.ChangeSet {
	if first == nil {
		return second
	}
	for i := range first {
		if first[i].Action == "" || first[i].Action == apply.Unchanged {
			first[i] = second[i]
		}
	}
	return first
}

// transient says whether all errors are of those that pass.
func transient(err error) bool {
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		return !slices.ContainsFunc(joined.Unwrap(), func(e error) bool { return !transient(e) })
	}
	return apierrors.IsServerTimeout(err) || apierrors.IsTimeout(err) || apierrors.IsTooManyRequests(err) ||
		apierrors.IsServiceUnavailable(err) || apierrors.IsInternalError(err) || strings.Contains(err.Error(), "etcdserver: ") ||
		utilnet.IsConnectionRefused(err) || utilnet.IsConnectionReset(err) || utilnet.IsProbableEOF(err) || utilnet.IsTimeout(err)
}

// summary counts changes.
func summary(changes apply.ChangeSet) string {
	count := map[apply.Action]int{}
	for _, c := range changes {
		count[c.Action]++
	}
	switch {
	case count[apply.Created] == 0 && count[apply.Configured] == 0:
		return "unchanged"
	case count[apply.Configured] == 0:
		return fmt.Sprintf("%d created", count[apply.Created])
	case count[apply.Created] == 0:
		return fmt.Sprintf("%d configured", count[apply.Configured])
	}
	return fmt.Sprintf("%d created, %d configured", count[apply.Created], count[apply.Configured])
}

func (s *state) note(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.notes = append(s.notes, fmt.Sprintf(format, args...))
}

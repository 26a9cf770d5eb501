package phases

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	ssa "github.com/karmada-toolkit/karmada/internal/apply"
	"github.com/karmada-toolkit/karmada/internal/progress"
	policyv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/policy/v1alpha1"
	"github.com/karmada-toolkit/karmada/pkg/init/components"
	"github.com/karmada-toolkit/karmada/pkg/init/config"
	"github.com/karmada-toolkit/karmada/pkg/init/credentials"
	"github.com/karmada-toolkit/karmada/pkg/init/write"
)

// Run runs each phase as soon as those that it needs are done. The first failure stops all, unless the state keeps going.
func Run(ctx context.Context, s *State, phases []Phase) error {
	done := map[string]*progressOf{}
	for _, p := range phases {
		done[p.Name] = &progressOf{ended: make(chan struct{})}
	}
	g, ctx := errgroup.WithContext(ctx)
	if s.Parallel > 0 {
		g.SetLimit(s.Parallel) // those that a phase needs begin before it
	}
	var mu sync.Mutex
	var failures []error
	for _, p := range phases {
		g.Go(func() error {
			this := done[p.Name]
			defer close(this.ended)
			for _, need := range needs(p, done) {
				select {
				case <-done[need].ended:
				case <-ctx.Done():
					return ctx.Err()
				}
				if !done[need].ready {
					return nil
				}
			}
			err := run(ctx, s, p)
			if this.ready = err == nil; err == nil || !s.KeepGoing {
				return err
			}
			mu.Lock()
			defer mu.Unlock()
			failures = append(failures, err)
			return nil
		})
	}
	return errors.Join(append([]error{g.Wait()}, failures...)...)
}

// progressOf is how far a phase of a run is.
type progressOf struct {
	ended chan struct{}
	// ready is written before ended is closed.
	ready bool
}

// run runs one phase.
func run(ctx context.Context, s *State, p Phase) (err error) {
	defer progress.Begin(ctx, s.Progress, p.Name, &err)()
	defer s.Progress.Watch(ctx, p.Name, "its requests to be answered")()
	changes, err := p.Apply(ctx, s)
	if err != nil && p.hint != "" && apierrors.IsInvalid(err) {
		err = fmt.Errorf("%w; %s", err, p.hint)
	}
	var text string
	if err == nil {
		text, err = p.Ready(ctx, s)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", p.Name, err)
	}
	if len(changes) > 0 {
		text += write.Summary(changes)
	}
	s.Outcome.ended(p)
	s.Progress.Done(p.Name, cmp.Or(strings.TrimSuffix(text, ", "), "done"))
	return nil
}

// needs are the phases to wait for. Those that do not run pass their own needs
// on.
func needs(p Phase, running map[string]*progressOf) []string {
	all := map[string]Phase{}
	for _, q := range All() {
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

// Outcome is what the phases of a run did.
type Outcome struct {
	mu           sync.Mutex
	changes      ssa.ChangeSet
	filesChanged bool
	token        string
	notes        []string
	done         map[string]bool
}

// Done reports whether a phase ended without an error.
func (o *Outcome) Done(phase string) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.done[phase]
}

func (o *Outcome) ended(p Phase) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.done == nil {
		o.done = map[string]bool{}
	}
	o.done[p.Name] = true
}

// Changes returns what was done to the objects of both clusters, in no order, and whether local files were written.
func (o *Outcome) Changes() (changes ssa.ChangeSet, files bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.changes, o.filesChanged
}

// Token returns the bootstrap token, empty unless one was requested.
func (o *Outcome) Token() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.token
}

// Notes returns the notes for the user.
func (o *Outcome) Notes() []string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.notes
}

// Note adds a note for the user.
func (o *Outcome) Note(format string, args ...any) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.notes = append(o.notes, fmt.Sprintf(format, args...))
}

func (o *Outcome) add(changes ssa.ChangeSet) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.changes = append(o.changes, changes...)
}

func (o *Outcome) wroteFiles(changed bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.filesChanged = o.filesChanged || changed
}

func (o *Outcome) setToken(token string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.token = token
}

// RunControlPlane runs phases in the control plane alone, with what their objects are made of and the administrator's access. The
// host cluster is not asked: each phase waits for what it needs for as long as timeout.
func RunControlPlane(ctx context.Context, in *Inputs, admin *rest.Config, phases []Phase, timeout time.Duration, p progress.Reporter, now func() time.Time) error {
	waitSeconds := int(timeout.Seconds())
	s := &State{
		Config: &config.Configuration{WaitSeconds: waitSeconds, Addons: config.Addons{WaitSeconds: waitSeconds}}, Given: in, Admin: admin,
		Progress: progress.NewReminder(p, now), Now: now, Outcome: &Outcome{},
	}
	err := s.wait(ctx, timeout, APIServer, "an answer of "+admin.Host, func(ctx context.Context) error {
		ctx, stop := context.WithTimeout(ctx, probeTimeout)
		defer stop()
		return credentials.Readyz(ctx, admin)
	})
	if err != nil {
		return fmt.Errorf("%s does not answer: %w", admin.Host, err)
	}
	return Run(ctx, s, phases)
}

// checkLimit is how long the control plane may take to accept a policy once all
// its parts are ready.
const checkLimit = 30 * time.Second

// awaitPolicy verifies that the API server reaches the webhooks and accepts a policy.
func awaitPolicy(ctx context.Context, s *State, p Phase) (string, error) {
	cp, in, err := s.controlPlaneAndInputs(ctx)
	if err != nil {
		return "", err
	}
	unready := func() string {
		if s.Tracker == nil {
			return "the workloads are not watched"
		}
		return s.Tracker.Unready([]string{components.APIServer, in.Workload(components.Webhook)})
	}
	policy := &policyv1alpha1.PropagationPolicy{
		TypeMeta:   metav1.TypeMeta{APIVersion: policyv1alpha1.GroupVersion.String(), Kind: "PropagationPolicy"},
		ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: "karmada-init-check"},
		Spec: policyv1alpha1.PropagationSpec{
			ResourceSelectors: []policyv1alpha1.ResourceSelector{{APIVersion: "apps/v1", Kind: "Deployment", Name: "karmada-init-check"}},
		},
	}
	text, err := json.Marshal(policy)
	if err != nil {
		return "", fmt.Errorf("encoding a policy: %w", err)
	}
	err = s.waitAfterReady(ctx, checkLimit, p.Name, "the control plane to accept a policy", unready, func(ctx context.Context) error {
		// A POST waits two seconds in an API server whose definition of the kind is new; a patch has the same admission.
		err := cp.Patch(ctx, policy.DeepCopy(), client.RawPatch(types.ApplyPatchType, text), client.DryRunAll, client.FieldOwner(write.FieldManager))
		if meta.IsNoMatchError(err) {
			return fmt.Errorf("the APIs of the federation are not served yet: %w", err)
		}
		return err
	})
	if err != nil {
		return "", fmt.Errorf("the control plane does not accept a policy: %w", err)
	}
	return "a policy is accepted", nil
}

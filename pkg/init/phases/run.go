package phases

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	ssa "github.com/karmada-toolkit/karmada/internal/apply"
	"github.com/karmada-toolkit/karmada/internal/progress"
	policyv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/policy/v1alpha1"
	"github.com/karmada-toolkit/karmada/pkg/init/components"
	"github.com/karmada-toolkit/karmada/pkg/init/config"
	"github.com/karmada-toolkit/karmada/pkg/init/credentials"
)

// Run runs each phase as soon as those that it needs are done. The first failure stops all.
func Run(ctx context.Context, s *State, phases []Phase) error {
	done := map[string]chan struct{}{}
	for _, p := range phases {
		done[p.Name] = make(chan struct{})
	}
	g, ctx := errgroup.WithContext(ctx)
	for _, p := range phases {
		g.Go(func() (err error) {
			for _, need := range needs(p, done) {
				select {
				case <-done[need]:
				case <-ctx.Done():
					return ctx.Err()
				}
			}
			defer progress.Begin(ctx, s.Progress, p.Name, &err)()
			defer s.Progress.Watch(ctx, p.Name, "its requests to be answered")()
			if err := p.Run(ctx, s); err != nil {
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

// RunControlPlane runs the phases that write into the control plane alone, with what they are made from and the
// administrator's access, and more objects. The host cluster is not asked: each phase waits for what it needs for as long as timeout.
func RunControlPlane(ctx context.Context, in *Inputs, admin *rest.Config, more []client.Object, timeout time.Duration, p progress.Reporter, now func() time.Time) error {
	s := &State{
		Config: &config.Configuration{WaitSeconds: int(timeout.Seconds())}, Progress: progress.NewReminder(p, now), Now: now, Outcome: &Outcome{}, given: in, admin: admin,
	}
	err := s.wait(ctx, timeout, APIServer, "an answer of "+admin.Host, func(ctx context.Context) error {
		ctx, stop := context.WithTimeout(ctx, probeTimeout)
		defer stop()
		return credentials.Readyz(ctx, admin)
	})
	if err != nil {
		return fmt.Errorf("%s does not answer: %w", admin.Host, err)
	}
	addons := Phase{Name: "addons", Needs: []string{APIServer}, run: writeObjects, controlPlane: func(in *Inputs) ([]client.Object, error) {
		return append(components.SystemNamespaces(in.System()), more...), nil
	}}
	return Run(ctx, s, []Phase{crds(), rbac(), webhooks(), aggregatedAPI(), addons, bootstrapToken(), check()})
}

// Check is the phase that checks the whole control plane.
const Check = "check"

// checkLimit is how long the control plane may take to accept a policy once all
// its parts are ready.
const checkLimit = 30 * time.Second

func check() Phase {
	return Phase{
		Name: Check, Doc: "See that the control plane accepts a policy",
		Needs: []string{
			Etcd, CRDs, RBAC, Webhooks, AggregatedAPI, KubeControllerManager, Scheduler, ControllerManager, Webhook, BootstrapToken, Kubeconfig,
		},
		run: runCheck,
	}
}

// runCheck verifies that the API server reaches the webhooks and accepts a policy.
func runCheck(ctx context.Context, s *State, p Phase) error {
	cp, err := s.ControlPlane()
	if err != nil {
		return err
	}
	unready := func() string {
		if s.Tracker == nil {
			return "the workloads are not watched"
		}
		return s.Tracker.Unready([]string{components.APIServer, components.Webhook})
	}
	err = s.waitAfterReady(ctx, checkLimit, p.Name, "the control plane to accept a policy", unready, func(ctx context.Context) error {
		policy := &policyv1alpha1.PropagationPolicy{
			ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: "karmada-init-check"},
			Spec: policyv1alpha1.PropagationSpec{
				ResourceSelectors: []policyv1alpha1.ResourceSelector{{APIVersion: "apps/v1", Kind: "Deployment", Name: "karmada-init-check"}},
			},
		}
		err := cp.Create(ctx, policy, client.DryRunAll)
		if meta.IsNoMatchError(err) {
			return fmt.Errorf("the APIs of the federation are not served yet: %w", err)
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("the control plane does not accept a policy: %w", err)
	}
	s.Progress.Done(p.Name, "a policy is accepted")
	return nil
}

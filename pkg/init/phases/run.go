package phases

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"golang.org/x/sync/errgroup"

	ssa "github.com/karmada-toolkit/karmada/internal/apply"
	"github.com/karmada-toolkit/karmada/internal/progress"
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

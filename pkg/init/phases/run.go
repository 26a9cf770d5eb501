package phases

import (
	"context"
	"fmt"
	"slices"

	"golang.org/x/sync/errgroup"

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

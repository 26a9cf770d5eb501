package process

import (
	"context"
	"sync"
	"time"
)

// launcher starts the processes of a federation.
type launcher struct {
	now func() time.Time

	mu       sync.Mutex
	children []*child
}

// running returns the record of a process that runs with these arguments. One that
// runs with others is stopped, to be started with these.
func (*launcher) running(ctx context.Context, p process, args []string) (record, bool, error) {
	r, alive := p.running()
	if !alive || r.runsWith(args) {
		return r, alive, nil
	}
	return r, false, p.stop(ctx)
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

// undo stops what was started.
func (l *launcher) undo(ctx context.Context) {
	var wg sync.WaitGroup
	for _, c := range l.children {
		wg.Go(func() { _ = c.stop(ctx) })
	}
	wg.Wait()
}

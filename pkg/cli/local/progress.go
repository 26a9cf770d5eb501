package local

import (
	"fmt"
	"io"
	"sync"
	"time"
)

// progress prints a line for each step that is done, with the time it took, and
// what a step waits for while it takes long.
type progress struct {
	out io.Writer
	now func() time.Time

	mu    sync.Mutex
	begun map[string]time.Time
}

func newProgress(out io.Writer, now func() time.Time) *progress {
	return &progress{out: out, now: now, begun: map[string]time.Time{}}
}

// Begin implements local.Progress.
func (p *progress) Begin(step string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.begun[step] = p.now()
}

// Waiting implements local.Progress.
func (p *progress) Waiting(step, what string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	_, _ = fmt.Fprintf(p.out, "  … %-18s %6s  waiting for %s\n", step, seconds(p.now().Sub(p.begun[step])), what)
}

// Done implements local.Progress.
func (p *progress) Done(step, result string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	_, _ = fmt.Fprintf(p.out, "  ✓ %-18s %6s  %s\n", step, seconds(p.now().Sub(p.begun[step])), result)
}

func seconds(d time.Duration) string { return fmt.Sprintf("%.1fs", d.Seconds()) }

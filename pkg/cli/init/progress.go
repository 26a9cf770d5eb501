package initcmd

import (
	"fmt"
	"io"
	"sync"
	"time"
)

// progress prints a line for each phase that is done, with the time it took, and
// what a phase waits for while it takes long.
type progress struct {
	out io.Writer
	now func() time.Time

	mu    sync.Mutex
	begun map[string]time.Time
}

func newProgress(out io.Writer, now func() time.Time) *progress {
	return &progress{out: out, now: now, begun: map[string]time.Time{}}
}

// Begin implements installer.Progress.
func (p *progress) Begin(step string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.begun[step] = p.now()
}

// Waiting implements installer.Progress.
func (p *progress) Waiting(step, what string) { p.line("…", step, "waiting for "+what) }

// Done implements installer.Progress.
func (p *progress) Done(step, result string) { p.line("✓", step, result) }

func (p *progress) line(mark, step, text string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	_, _ = fmt.Fprintf(p.out, "  %s %-24s %6s  %s\n", mark, step, seconds(p.now().Sub(p.begun[step])), text)
}

func seconds(d time.Duration) string { return fmt.Sprintf("%.1fs", d.Seconds()) }

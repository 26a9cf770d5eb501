package initcmd

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"
)

const (
	// sayEvery is the time between reports of what is waited for.
	sayEvery = 2 * time.Second
	// repeatAfter is when a reason that did not change is told again.
	repeatAfter = 15 * time.Second
)

// progress prints a line for each phase that is done, with the time it took, and,
// every two seconds, what the others wait for.
type progress struct {
	out io.Writer
	now func() time.Time

	mu      sync.Mutex
	started time.Time
	begun   map[string]time.Time
	waiting map[string]string
	// told is when a reason of a phase was last told.
	told map[string]saying
	last time.Time
}

// saying is a text and when it was said.
type saying struct {
	text string
	at   time.Time
}

func newProgress(out io.Writer, now func() time.Time) *progress {
	return &progress{out: out, now: now, started: now(), begun: map[string]time.Time{}, waiting: map[string]string{}, told: map[string]saying{}}
}

// Begin implements installer.Progress.
func (p *progress) Begin(step string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.begun[step] = p.now()
}

// Waiting implements installer.Progress.
func (p *progress) Waiting(step, what string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.begun[step].IsZero() {
		return // it is done already
	}
	p.waiting[step] = what
	if p.now().Sub(p.last) >= sayEvery {
		p.last = p.now()
		p.report()
	}
}

// report prints the reasons that are new, a line for those that are the same, and
// the names of the phases whose reason was told already.
func (p *progress) report() {
	phases := map[string][]string{}
	var still []string
	for _, step := range slices.Sorted(maps.Keys(p.waiting)) {
		text := p.waiting[step]
		if old := p.told[step]; old.text == text && p.now().Sub(old.at) < repeatAfter {
			still = append(still, step)
			continue
		}
		p.told[step] = saying{text, p.now()}
		phases[text] = append(phases[text], step)
	}
	var lines []saying
	for text, steps := range phases {
		lines = append(lines, saying{text: strings.Join(steps, ", ") + ": " + text})
	}
	if len(still) > 0 {
		lines = append(lines, saying{text: "still waiting for " + strings.Join(still, ", ")})
	}
	slices.SortFunc(lines, func(a, b saying) int { return cmp.Compare(a.text, b.text) })
	for _, l := range lines {
		_, _ = fmt.Fprintf(p.out, "  … %6s  %s\n", seconds(p.now().Sub(p.started)), l.text)
	}
}

// Done implements installer.Progress.
func (p *progress) Done(step, result string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	begun := p.begun[step]
	delete(p.waiting, step)
	delete(p.begun, step)
	_, _ = fmt.Fprintf(p.out, "  ✓ %6s  %s: %s (%s)\n", seconds(p.now().Sub(p.started)), step, result, seconds(p.now().Sub(begun)))
}

func seconds(d time.Duration) string { return fmt.Sprintf("%.1fs", d.Seconds()) }

// Package progress publishes the steps of a command and what they wait for.
package progress

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/karmada-toolkit/karmada/internal/wait"
)

// repeatInterval is the time after which an unchanged reason is printed again.
const repeatInterval = 15 * time.Second

// Reporter receives the progress of a command's steps, from several goroutines.
type Reporter interface {
	// Begin reports that a step has begun.
	Begin(step string)
	// Waiting reports what a step that takes long is waiting for.
	Waiting(step, what string)
	// Done reports that a step is done, and its result.
	Done(step, result string)
	// Failed reports that a step ended without its result, and how: it failed, or was interrupted. The reason is in the
	// error of the command.
	Failed(step, how string)
}

// Begin reports that a step has begun. The function that it returns is deferred: it reports the step as failed if *err
// is an error by then, or as interrupted if the context has ended.
func Begin(ctx context.Context, r Reporter, step string, err *error) (end func()) {
	r.Begin(step)
	return func() {
		switch {
		case *err == nil:
		case ctx.Err() != nil:
			r.Failed(step, "interrupted")
		default:
			r.Failed(step, "failed")
		}
	}
}

// Discard is a Reporter that drops everything.
type Discard struct{}

// Begin implements Reporter.
func (Discard) Begin(string) {}

// Waiting implements Reporter.
func (Discard) Waiting(string, string) {}

// Done implements Reporter.
func (Discard) Done(string, string) {}

// Failed implements Reporter.
func (Discard) Failed(string, string) {}

// The marks of lines.
const (
	markWaiting = "…"
	markDone    = "✓"
	markFailed  = "✗"
)

// Line is a line of a Printer.
type Line struct {
	// Steps are the steps that the line is about, separated by ", "; empty for the summary of unchanged reasons.
	Steps string
	// Text is the result, how the step failed, or what the steps wait for.
	Text string
	// Mark is markWaiting, markDone or markFailed.
	Mark string
	// Elapsed is the time since the printer was made, Took since the earliest of the steps began.
	Elapsed, Took time.Duration
}

// Layout formats a line.
type Layout func(Line) string

// Timeline is the layout that begins with the time since the start of the command.
func Timeline(l Line) string {
	switch {
	case l.Mark != markWaiting:
		return fmt.Sprintf("  %s %6s  %s: %s (%s)\n", l.Mark, seconds(l.Elapsed), l.Steps, l.Text, seconds(l.Took))
	case l.Steps == "":
		return fmt.Sprintf("  %s %6s  %s\n", l.Mark, seconds(l.Elapsed), l.Text)
	}
	return fmt.Sprintf("  %s %6s  %s: %s\n", l.Mark, seconds(l.Elapsed), l.Steps, l.Text)
}

// stepWidth is the width of the column of steps: that of the longest step of 100 members.
const stepWidth = 24

// fit shortens a list of steps to the width of their column: the first, and how many more. One step is never cut.
func fit(steps string) string {
	first, rest, several := strings.Cut(steps, ", ")
	if !several || len(steps) <= stepWidth {
		return steps
	}
	return fmt.Sprintf("%s +%d", first, strings.Count(rest, ", ")+1)
}

// Columns is the layout with a column for the steps and one for the time that they took.
func Columns(l Line) string {
	text := l.Text
	if l.Mark == markWaiting && l.Steps != "" {
		text = "waiting for " + text
	}
	return fmt.Sprintf("  %s %-*s %6s  %s\n", l.Mark, stepWidth, fit(l.Steps), seconds(l.Took), text)
}

// Printer is a Reporter that prints a line for each step that ends and, every two seconds, what the others wait
// for.
type Printer struct {
	out    io.Writer
	now    func() time.Time
	layout Layout

	mu      sync.Mutex
	started time.Time
	begun   map[string]time.Time
	waiting map[string]string
	printed map[string]printed
	last    time.Time
}

// printed is the reason of a step that was last printed, and when.
type printed struct {
	text string
	at   time.Time
}

// NewPrinter returns a printer that starts now.
func NewPrinter(out io.Writer, now func() time.Time, layout Layout) *Printer {
	return &Printer{
		out: out, now: now, layout: layout, started: now(),
		begun: map[string]time.Time{}, waiting: map[string]string{}, printed: map[string]printed{},
	}
}

// Begin implements Reporter.
func (p *Printer) Begin(step string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.begun[step] = p.now()
}

// Waiting implements Reporter. A step that has ended waits for nothing.
func (p *Printer) Waiting(step, what string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.begun[step].IsZero() {
		return
	}
	p.waiting[step] = what
	if p.now().Sub(p.last) >= wait.PublishInterval {
		p.last = p.now()
		p.printWaiting()
	}
}

// Done implements Reporter.
func (p *Printer) Done(step, result string) { p.end(Line{Steps: step, Text: result, Mark: markDone}) }

// Failed implements Reporter.
func (p *Printer) Failed(step, how string) { p.end(Line{Steps: step, Text: how, Mark: markFailed}) }

// end prints the last line of a step.
func (p *Printer) end(l Line) {
	p.mu.Lock()
	defer p.mu.Unlock()
	step := l.Steps
	p.print(l, []string{step})
	delete(p.waiting, step)
	delete(p.begun, step)
}

// printWaiting prints the steps with new reasons, one line per reason, and one line for the steps whose reason was
// printed before.
func (p *Printer) printWaiting() {
	changed := map[string][]string{}
	var unchanged []string
	for _, step := range slices.Sorted(maps.Keys(p.waiting)) {
		text := p.waiting[step]
		if old := p.printed[step]; old.text == text && p.now().Sub(old.at) < repeatInterval {
			unchanged = append(unchanged, step)
			continue
		}
		p.printed[step] = printed{text, p.now()}
		changed[text] = append(changed[text], step)
	}
	type group struct {
		line  Line
		steps []string
	}
	var groups []group
	for text, steps := range changed {
		groups = append(groups, group{Line{Steps: strings.Join(steps, ", "), Text: text, Mark: markWaiting}, steps})
	}
	slices.SortFunc(groups, func(a, b group) int { return cmp.Compare(a.line.Steps, b.line.Steps) })
	for _, g := range groups {
		p.print(g.line, g.steps)
	}
	if len(unchanged) > 0 {
		p.print(Line{Text: "still waiting for " + strings.Join(unchanged, ", "), Mark: markWaiting}, unchanged)
	}
}

// print prints a line with the times of its steps.
func (p *Printer) print(l Line, steps []string) {
	now := p.now()
	l.Elapsed = now.Sub(p.started)
	for _, step := range steps {
		l.Took = max(l.Took, now.Sub(p.begun[step]))
	}
	_, _ = fmt.Fprint(p.out, p.layout(l)) // there is no other place to report that it failed
}

func seconds(d time.Duration) string { return fmt.Sprintf("%.1fs", d.Seconds()) }

package progress

import (
	"context"
	"sync"
	"time"

	"github.com/karmada-toolkit/karmada/internal/wait"
)

const (
	// checkInterval is the time between two checks of a step by a Reminder.
	checkInterval = wait.PublishInterval / 4
	// ownInterval is how long a step that reports by itself what it waits for may report nothing.
	ownInterval = 5 * wait.PublishInterval
)

// Reminder is a Reporter that also reports steps that have reported nothing for a while.
type Reminder struct {
	Reporter
	now func() time.Time

	mu   sync.Mutex
	last map[string]time.Time
	// own are the steps that report by themselves what they wait for.
	own map[string]bool
}

// NewReminder returns a Reminder that passes all reports on.
func NewReminder(to Reporter, now func() time.Time) *Reminder {
	return &Reminder{Reporter: to, now: now, last: map[string]time.Time{}, own: map[string]bool{}}
}

// Begin implements Reporter.
func (r *Reminder) Begin(step string) {
	r.note(step, false)
	r.Reporter.Begin(step)
}

// Waiting implements Reporter.
func (r *Reminder) Waiting(step, what string) {
	r.note(step, true)
	r.Reporter.Waiting(step, what)
}

// Watch reports what a step waits for whenever it has reported nothing for a while, until the returned function is
// called.
func (r *Reminder) Watch(ctx context.Context, step, what string) (stop func()) {
	return wait.Every(ctx, checkInterval, func() {
		if r.silent(step) {
			r.note(step, false)
			r.Reporter.Waiting(step, what)
		}
	})
}

func (r *Reminder) note(step string, own bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.last[step], r.own[step] = r.now(), r.own[step] || own
}

// silent reports whether nothing was reported of a step for a while.
func (r *Reminder) silent(step string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	limit := wait.PublishInterval
	if r.own[step] {
		limit = ownInterval
	}
	return r.now().Sub(r.last[step]) >= limit
}

// Package rollout waits for the workloads of a control plane, and finds out why their pods are not ready.
package rollout

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	utilwait "k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"

	"github.com/karmada-toolkit/karmada/internal/wait"
)

const (
	// listInterval is the time between two lists of the workloads.
	listInterval = 250 * time.Millisecond
	// explainAfter is how long a workload is waited for before the log and the events of its pods are read.
	explainAfter = 10 * time.Second
	// failAfter is how long a pod may be in a state that does not pass by itself.
	failAfter = 8 * time.Second
	// reportTimeout limits the requests for a report.
	reportTimeout = 5 * time.Second
)

// errNotListed is why a wait goes on before the first snapshot.
var errNotListed = errors.New("the workloads to be listed")

// Tracker observes all workloads of a control plane, for all that wait for one.
type Tracker struct {
	api       kubernetes.Interface
	namespace string
	now       func() time.Time
	names     func(workload string) string

	mu     sync.Mutex
	latest *snapshot
	err    error
}

// NewTracker returns a Tracker of the workloads in a namespace. It observes them while Run runs. names returns the name of a workload in
// the host cluster; nil for the same.
func NewTracker(api kubernetes.Interface, namespace string, now func() time.Time, names func(workload string) string) *Tracker {
	if names == nil {
		names = func(workload string) string { return workload }
	}
	return &Tracker{api: api, namespace: namespace, now: now, names: names}
}

// Run lists the workloads until ctx ends.
func (t *Tracker) Run(ctx context.Context) {
	utilwait.UntilWithContext(ctx, func(ctx context.Context) {
		latest, err := list(ctx, t.api, t.namespace, t.now())
		t.mu.Lock()
		defer t.mu.Unlock()
		if t.err = err; err == nil {
			t.latest = latest
		}
	}, listInterval)
}

// current returns the latest snapshot, or nil and the error of the list after it.
func (t *Tracker) current() (*snapshot, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.err != nil {
		return nil, t.err
	}
	return t.latest, nil
}

// Wait returns when a workload is rolled out, for timeout at most, and publishes every two seconds what it waits for.
// A pod that cannot start, and will not by waiting, is an error.
func (t *Tracker) Wait(ctx context.Context, workload string, timeout time.Duration, publish func(string)) error {
	now := t.now()
	w := &waiting{Tracker: t, workload: t.names(workload), begun: now, explained: now}
	return wait.Until(ctx, wait.Options{
		Interval: listInterval, Timeout: timeout,
		Publish: func(reason error) {
			if reason != nil && !errors.Is(reason, errNotListed) {
				publish(reason.Error())
			}
		},
	}, w.check)
}

// waiting is one wait for a workload.
type waiting struct {
	*Tracker
	workload string
	// begun is when the wait began, explained when its reason was last explained, and failing since when a pod is in a
	// state that does not pass.
	begun, explained, failing time.Time
	reason                    string
}

// check returns why a workload is not rolled out.
func (w *waiting) check(ctx context.Context) error {
	s, err := w.current()
	if err != nil || s == nil || s.at.Before(w.begun) {
		return errNotListed
	}
	left := s.unready(w.workload)
	if left == "" {
		return nil
	}
	now := w.now()
	reason, stuck := s.reason(w.workload)
	switch {
	case !stuck:
		w.failing = time.Time{}
	case w.failing.IsZero():
		w.failing = now
	case now.Sub(w.failing) > failAfter:
		return wait.Terminal(fmt.Errorf("%s: %s", left, w.explain(ctx, reason, true)))
	}
	w.reason = cmp.Or(w.reason, left)
	if now.Sub(w.explained) < wait.PublishInterval {
		return errors.New(w.reason)
	}
	if waited := now.Sub(w.begun); waited >= explainAfter {
		left += ": " + w.explain(ctx, reason, waited >= 2*explainAfter)
	}
	w.explained, w.reason = now, left
	if (reason.pending || reason.Crashed) && permanent(left) {
		return wait.Terminal(errors.New(left))
	}
	return errors.New(left)
}

// Explain returns the error of a wait. To a timeout, which a flag sets, it adds the workloads that are not ready.
func (t *Tracker) Explain(ctx context.Context, err error, flag string, timeout time.Duration, workloads ...string) error {
	if !errors.Is(err, wait.ErrTimeout) {
		return err
	}
	text := cmp.Or(t.Report(ctx, workloads...), "\n  it became ready just now; run the command again")
	return fmt.Errorf("not ready after %.0f seconds (%s):%s", timeout.Seconds(), flag, text)
}

// Report names those of the workloads that are not ready, with their reasons, one a line.
func (t *Tracker) Report(ctx context.Context, workloads ...string) string {
	s, err := t.current()
	if err != nil {
		return "\n  the host cluster does not answer: " + err.Error()
	}
	if s == nil {
		return ""
	}
	ctx, cancel := context.WithTimeout(ctx, reportTimeout)
	defer cancel()
	var out strings.Builder
	for _, name := range workloads {
		name = t.names(name)
		left := s.unready(name)
		if left == "" || !s.has(name) {
			continue
		}
		reason, _ := s.reason(name)
		fmt.Fprintf(&out, "\n  %s: %s: %s", name, left, t.explain(ctx, reason, true))
	}
	return out.String()
}

// Unready returns the first of some workloads that is not rolled out, with its state; empty when all are, or when
// their state is not known.
func (t *Tracker) Unready(workloads []string) string {
	s, err := t.current()
	if err != nil || s == nil {
		return ""
	}
	for _, name := range workloads {
		if left := s.unready(t.names(name)); left != "" {
			return name + ": " + left
		}
	}
	return ""
}

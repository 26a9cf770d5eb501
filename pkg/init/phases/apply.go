package phases

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"sigs.k8s.io/controller-runtime/pkg/client"

	ssa "github.com/karmada-toolkit/karmada/internal/apply"
	"github.com/karmada-toolkit/karmada/internal/wait"
)

const (
	// fieldManager owns what an installation writes.
	fieldManager = "karmadactl-init"
	// parallelWrites is how many objects are written at the same time.
	parallelWrites = 16
	// retryLimit is how long requests are tried again that failed because a server is busy or changes its leader.
	retryLimit = 30 * time.Second
)

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

// apply writes objects that are not as wanted.
func apply(ctx context.Context, to client.Client, objects []client.Object) (ssa.ChangeSet, error) {
	applier := &ssa.Applier{Client: to, Manager: fieldManager, Parallel: parallelWrites}
	var changes ssa.ChangeSet
	err := wait.Until(ctx, wait.Options{Interval: time.Second, Timeout: retryLimit}, func(context.Context) error {
		again, err := applier.Apply(ctx, objects...) // not the context of the wait: an attempt is not interrupted
		if changes = merge(changes, again); err != nil && !transient(err) {
			return wait.Terminal(err)
		}
		return err
	})
	if err != nil && ctx.Err() != nil {
		err = ctx.Err()
	}
	return changes, err
}

// merge adds what a second attempt did to what the first did.
func merge(first, second ssa.ChangeSet) ssa.ChangeSet {
	if first == nil {
		return second
	}
	for i := range first {
		if first[i].Action == "" || first[i].Action == ssa.Unchanged {
			first[i] = second[i]
		}
	}
	return first
}

// transient reports whether a retry may succeed after all the errors.
func transient(err error) bool {
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		return !slices.ContainsFunc(joined.Unwrap(), func(e error) bool { return !transient(e) })
	}
	return apierrors.IsServerTimeout(err) || apierrors.IsTimeout(err) || apierrors.IsTooManyRequests(err) ||
		apierrors.IsServiceUnavailable(err) || apierrors.IsInternalError(err) || strings.Contains(err.Error(), "etcdserver: ") ||
		utilnet.IsConnectionRefused(err) || utilnet.IsConnectionReset(err) || utilnet.IsProbableEOF(err) || utilnet.IsTimeout(err)
}

// summary counts changes.
func summary(changes ssa.ChangeSet) string {
	count := map[ssa.Action]int{}
	for _, c := range changes {
		count[c.Action]++
	}
	var parts []string
	for _, action := range []ssa.Action{ssa.Created, ssa.Configured, ssa.Deleted} {
		if count[action] > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", count[action], action))
		}
	}
	if len(parts) == 0 {
		return string(ssa.Unchanged)
	}
	return strings.Join(parts, ", ")
}

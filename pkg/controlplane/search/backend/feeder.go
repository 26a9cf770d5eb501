package backend

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/apimachinery/pkg/watch"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/karmada-toolkit/karmada/internal/controllers"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/search/cache"
	"github.com/karmada-toolkit/karmada/pkg/domain/search"
)

const (
	// queueLength is the number of events that wait for the server, beside those of the watch.
	queueLength = 500
	// maxWrites and maxBytes are the number and length of the documents of one request.
	maxWrites, maxBytes = 500, 4 << 20
	// pendingInterval is how often clusters are looked at that were not complete at the beginning.
	pendingInterval = 10 * time.Second
)

// errRestart ends a copy that is to begin again.
var errRestart = errors.New("the registries select more, or less")

// feeder copies the objects of one kind to one store.
type feeder struct {
	deps  *Deps
	kind  schema.GroupVersionKind
	index string
	// do makes a request to the server until it succeeds, and returns false when ctx ended.
	do func(ctx context.Context, of string, request func(*client) error) bool
	// fail records a failure of the store, or that there is none.
	fail func(of, failure string)
	// others returns the IDs of the copies to an index.
	others func(index string) []string
	cancel context.CancelFunc
	// done is closed when it ended.
	done chan struct{}
	wake controllers.Trigger

	mu   sync.Mutex
	want clusters
	// removed are clusters whose documents are to be deleted; restart reports that all objects are to be sent again.
	removed []string
	restart bool
	run     string
	// controlPlane is its ID.
	controlPlane string
	// refused is the number of documents that the server refused, reason why the last was.
	refused int
	reason  string
	// behind reports that changes were dropped, and not all objects were sent again yet.
	behind atomic.Bool
}

func newFeeder(s *store, kind schema.GroupVersionKind, want clusters, others func(string) []string) *feeder {
	return &feeder{
		deps: s.deps, do: s.do, fail: s.fail, kind: kind, index: search.Index(kind.GroupKind()), others: others, want: want,
		run: string(uuid.NewUUID()), done: make(chan struct{}), wake: controllers.NewTrigger(),
	}
}

func (f *feeder) start(ctx context.Context, group *sync.WaitGroup) {
	ctx, f.cancel = context.WithCancel(ctx)
	group.Go(func() {
		defer close(f.done)
		for ctx.Err() == nil {
			f.begin(errors.Is(f.copy(ctx), cache.ErrExpired))
			f.report()
			select {
			case <-ctx.Done():
			case <-f.deps.Clock.After(firstRetry):
			}
		}
	})
}

// begin begins another copy. Behind reports that the one before did not keep up with the changes.
func (f *feeder) begin(behind bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.run, f.removed, f.restart = string(uuid.NewUUID()), nil, false
	if behind {
		f.behind.Store(true)
	}
}

func (f *feeder) runID() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.run
}

// set replaces what is copied. Observed returns the state of the caches.
func (f *feeder) set(want clusters, observed func() []search.Observation) {
	f.mu.Lock()
	defer f.mu.Unlock()
	var added []string
	for name, namespaces := range want {
		before, ok := f.want[name]
		if !ok {
			added = append(added, name)
		} else if !before.Equal(namespaces) {
			f.restart = true
		}
	}
	for name := range f.want {
		if _, ok := want[name]; !ok {
			f.removed = append(f.removed, name)
		}
	}
	f.want = want
	if len(added) > 0 { // the watch passed on objects that are cached already for other registries
		for _, o := range observed() {
			f.restart = f.restart || o.Kind == f.kind && slices.Contains(added, o.Cluster)
		}
	}
	if f.restart || len(f.removed) > 0 {
		f.wake.Fire()
	}
}

// wants reports whether an object of a cluster is copied.
func (f *feeder) wants(cluster, namespace string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	namespaces, ok := f.want[cluster]
	return ok && (namespace == "" || namespaces.Has(namespace))
}

// copy sends all objects and then their changes, until ctx ends or the copy is to begin again.
func (f *feeder) copy(ctx context.Context) error {
	if !f.do(ctx, f.index, func(c *client) (err error) {
		id, err := f.deps.Identity(ctx)
		if err != nil {
			return err
		}
		f.mu.Lock()
		f.controlPlane = id
		f.mu.Unlock()
		return c.ensure(ctx, f.index)
	}) {
		return ctx.Err()
	}
	events := make(chan cache.Event, queueLength)
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error {
		err := f.deps.Caches.Watch(ctx, cache.Query{Kind: f.kind}, cache.Start{}, func(e cache.Event) error {
			select {
			case events <- e:
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		})
		if err == nil {
			err = ctx.Err()
		}
		return err
	})
	group.Go(func() error { return f.write(ctx, events) })
	return group.Wait()
}

// write sends events until ctx ends or the copy is to begin again.
func (f *feeder) write(ctx context.Context, events <-chan cache.Event) error {
	var pending clusters
	ticker := f.deps.Clock.NewTicker(pendingInterval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-f.wake:
			if err := f.remove(ctx); err != nil {
				return err
			}
		case <-ticker.C():
			pending = f.finish(ctx, pending, false)
		case e := <-events:
			batch, initial := []cache.Event{e}, e.Initial
			for more := true; more && !initial && len(batch) < maxWrites; {
				select {
				case e := <-events:
					batch, initial = append(batch, e), e.Initial
				default:
					more = false
				}
			}
			if err := f.send(ctx, batch); err != nil {
				return err
			}
			if initial {
				f.mu.Lock()
				pending = f.want
				f.mu.Unlock()
				pending = f.finish(ctx, pending, true)
				f.behind.Store(false)
			}
			f.report()
		}
	}
}

// remove deletes the documents of clusters that are not copied any more.
func (f *feeder) remove(ctx context.Context) error {
	f.mu.Lock()
	removed, restart := f.removed, f.restart
	f.removed = nil
	f.mu.Unlock()
	if restart {
		return errRestart
	}
	for _, cluster := range removed {
		if !f.purge(ctx, map[string]string{search.FieldCluster: cluster}) {
			return ctx.Err()
		}
	}
	return nil
}

// finish deletes the documents of clusters that this copy did not write, once all objects were sent, and returns the clusters
// that it has not come to.
func (f *feeder) finish(ctx context.Context, pending clusters, first bool) clusters {
	if len(pending) == 0 && !first {
		return nil
	}
	open := maps.Clone(pending)
	for _, o := range f.deps.Caches.States() {
		if o.Kind == f.kind && o.Failure == "" && !o.Since.IsZero() {
			delete(open, o.Cluster)
		}
	}
	if len(open) == len(pending) && !first {
		return pending
	}
	f.mu.Lock()
	incomplete := make([]string, 0, len(open))
	for name := range open {
		if _, ok := f.want[name]; ok {
			incomplete = append(incomplete, name)
		}
	}
	f.mu.Unlock()
	slices.Sort(incomplete)
	f.do(ctx, f.index, func(c *client) error {
		return c.purge(ctx, f.index, query{
			has: map[string]string{search.FieldControlPlane: f.controlPlane},
			not: map[string][]string{search.FieldRun: f.others(f.index), search.FieldCluster: incomplete},
		})
	})
	return open
}

// purge deletes documents of the control plane, other than those that copies of other stores wrote: they may be on the same
// server.
func (f *feeder) purge(ctx context.Context, has map[string]string) bool {
	has[search.FieldControlPlane] = f.controlPlane
	own := f.runID()
	return f.do(ctx, f.index, func(c *client) error {
		others := slices.DeleteFunc(f.others(f.index), func(run string) bool { return run == own })
		return c.purge(ctx, f.index, query{has: has, not: map[string][]string{search.FieldRun: others}})
	})
}

// forget deletes all documents of a feeder that has been stopped.
func (f *feeder) forget(ctx context.Context) {
	<-f.done
	if f.controlPlane == "" {
		return // it never wrote
	}
	timed, cancel := context.WithTimeout(ctx, forgetTimeout)
	defer cancel()
	if !f.purge(timed, map[string]string{}) && ctx.Err() == nil {
		ctrllog.FromContext(ctx).Info("Documents stay in an OpenSearch server that no ResourceRegistry names any more: it did not answer", "index", f.index)
	}
}

// send writes the objects of events.
func (f *feeder) send(ctx context.Context, events []cache.Event) error {
	run := f.runID()
	var writes []write
	size := 0
	for _, e := range events {
		if e.Object == nil || !f.wants(e.Cluster, e.Object.Namespace) {
			continue
		}
		u, err := e.Object.Decode()
		if err != nil {
			return err
		}
		w := write{id: string(u.GetUID())}
		if w.id == "" {
			f.refuse("an object without a UID")
			continue
		}
		if e.Type != watch.Deleted {
			if w.document, err = search.Document(u, search.Origin{Cluster: e.Cluster, ControlPlane: f.controlPlane, Run: run}); err != nil {
				return err
			}
		}
		if size += len(w.document); size > maxBytes && len(writes) > 0 {
			if !f.bulk(ctx, writes) {
				return ctx.Err()
			}
			writes, size = nil, len(w.document)
		}
		writes = append(writes, w)
	}
	if !f.bulk(ctx, writes) {
		return ctx.Err()
	}
	return nil
}

// bulk writes until each write succeeded or was refused. It returns false when ctx ended.
func (f *feeder) bulk(ctx context.Context, writes []write) bool {
	if len(writes) == 0 {
		return true
	}
	half := false
	ok := f.do(ctx, f.index, func(c *client) error {
		outcomes, err := c.bulk(ctx, f.index, writes)
		if errors.Is(err, errTooLarge) {
			half = true
			return nil
		}
		if err != nil {
			return err
		}
		var again []write
		var busy string
		for i, o := range outcomes {
			switch {
			case o.again:
				again, busy = append(again, writes[i]), o.reason
			case o.reason != "":
				f.refuse(o.reason)
			}
		}
		if writes = again; len(again) > 0 {
			return fmt.Errorf("%d documents are to be written again: %s", len(again), busy)
		}
		return nil
	})
	switch {
	case !ok:
		return false
	case half && len(writes) == 1:
		f.refuse(errTooLarge.Error())
	case half:
		return f.bulk(ctx, writes[:len(writes)/2]) && f.bulk(ctx, writes[len(writes)/2:])
	}
	return true
}

// refuse counts a document that the server refused.
func (f *feeder) refuse(reason string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.refused++
	f.reason = reason
}

// report makes what was dropped a failure of the store.
func (f *feeder) report() {
	f.mu.Lock()
	text := ""
	switch {
	case f.behind.Load():
		text = "changes were dropped, because the server did not keep up: all objects are sent again"
	case f.refused > 0:
		text = fmt.Sprintf("%d documents were refused, the last: %s", f.refused, f.reason)
	}
	f.mu.Unlock()
	f.fail(f.index+" (dropped)", text)
}

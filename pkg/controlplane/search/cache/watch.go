package cache

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/karmada-toolkit/karmada/internal/resourceversion"
	"github.com/karmada-toolkit/karmada/pkg/domain/search"
)

// ErrExpired ends a watch that cannot go on without a new list.
var ErrExpired = errors.New("the changes since the version of the watch are not known any more: list again")

// initialTimeout is how long the end of the initial objects waits for clusters that are not listed yet.
const initialTimeout = 5 * time.Second

// Event is a change of the objects that a watch selects.
type Event struct {
	// Type is watch.Added, Modified, Deleted, or Bookmark: the cluster has reached the version, and there is no object.
	Type    watch.EventType
	Cluster string
	Object  *Object
	// Version is the resource version of the change in the cluster; empty if it is no event of the cluster.
	Version string
	// Initial reports that the objects that existed at the beginning were sent. Type and all else are empty then.
	Initial bool
	// Left reports that the cluster left, and the deletion of all its objects was sent. All else but Cluster is empty then.
	Left bool
}

// Start is where a watch begins.
type Start struct {
	// Versions are the versions of clusters. A cluster that has none begins with all its objects.
	Versions search.Versions
	// Now leaves out the objects that exist, of clusters that have no version.
	Now bool
}

// watching is one watch over all clusters.
type watching struct {
	caches *Caches
	query  Query
	start  Start
	send   func(Event) error
	queue  *queue
	first  bool
	// opening reports that a cluster was not tried to be read yet.
	opening bool
	// sources are the stores that are watched, by cluster.
	sources map[string]*source
}

// source is a store that is watched.
type source struct {
	store      *store
	namespaces search.Namespaces
	// seen is the version up to which changes were sent.
	seen string
	// sent are the objects that were sent while the first list went on: the queue may have them, too.
	sent map[types.NamespacedName]*Object
}

// Watch calls send with each change of the objects that a query selects, until ctx or the caches end or send fails. Clusters that
// join or leave do not end it: their objects are added and deleted. It returns ErrExpired if the start is too old, or send too
// slow, when no registry selects the resource any more, and when the objects of a cluster that still exists are not known any more.
func (c *Caches) Watch(ctx context.Context, q Query, start Start, send func(Event) error) error {
	w := &watching{caches: c, query: q, start: start, send: send, queue: newQueue(), first: true, sources: map[string]*source{}}
	defer func() {
		for _, s := range w.sources {
			s.store.feed.leave(w.queue)
		}
	}()
	timer := c.deps.Clock.NewTimer(initialTimeout)
	defer timer.Stop()
	initial := false
	for late := false; ; {
		changed := c.changes.next()
		if c.ended.Load() {
			return nil
		}
		if err := w.follow(); err != nil {
			return err
		}
		w.first = false
		done := late || w.complete() // what was listed until now waits in the queue
		if err := w.drain(); err != nil {
			return err
		}
		if !initial && done {
			initial = true
			if err := w.send(Event{Initial: true}); err != nil {
				return err
			}
		}
		select {
		case <-ctx.Done():
			return nil
		case <-changed:
		case <-w.queue.wake:
		case <-timer.C():
			late = true
		}
	}
}

// follow begins to watch the stores of the resource that are new, and ends with those that are gone.
func (w *watching) follow() error {
	present := map[string]bool{}
	w.opening = false
	selected, _ := w.caches.Selects(w.query.Kind)
	for _, k := range w.caches.all() {
		found, namespaces, missing := k.find(w.query.Resource, w.query.Kind)
		selected = selected || found != nil || missing != ""
		if found == nil {
			w.opening = w.opening || missing == search.FailureListing
			continue
		}
		present[k.name] = true
		if err := w.use(k.name, found, namespaces); err != nil {
			return err
		}
	}
	for name, s := range w.sources {
		if !present[name] {
			if err := w.end(name, s); err != nil {
				return err
			}
		}
	}
	if !selected {
		return ErrExpired
	}
	if w.first {
		return w.startsWith(present)
	}
	return nil
}

// startsWith returns an error unless all clusters of which the client has objects are present: it would not get their changes.
func (w *watching) startsWith(present map[string]bool) error {
	for _, name := range w.start.Versions.Clusters() {
		if !present[name] {
			return fmt.Errorf("cluster %.253s: %w", name, ErrExpired)
		}
	}
	return nil
}

// use watches the store that a cluster has now.
func (w *watching) use(cluster string, found *store, namespaces search.Namespaces) error {
	s := w.sources[cluster]
	if s != nil && s.store == found {
		s.namespaces = namespaces
		return nil
	}
	if s != nil {
		if err := w.end(cluster, s); err != nil {
			return err
		}
	}
	return w.begin(cluster, &source{store: found, namespaces: namespaces})
}

// begin sends the objects of a store, or the changes since the version that the watch has of the cluster.
func (w *watching) begin(cluster string, s *source) error {
	since := ""
	if w.first && w.start.Versions.Has(cluster) {
		since = w.start.Versions.Get(cluster)
	}
	if since == "0" {
		since = "" // any version: the objects as they are
	}
	later, ok := s.store.feed.read(w.queue, cluster, since)
	if !ok {
		return fmt.Errorf("cluster %s: %w", cluster, ErrExpired)
	}
	w.sources[cluster] = s
	if since != "" {
		s.seen = since
		for _, c := range later {
			if err := w.pass(queued{cluster: cluster, change: c}); err != nil {
				return err
			}
		}
		return nil
	}
	s.seen = s.store.version()
	if s.seen == "" {
		s.sent = map[types.NamespacedName]*Object{}
	}
	if !w.first || !w.start.Now {
		for _, o := range s.store.list(s.namespaces, w.query.Namespace, w.query.Name) {
			if s.sent != nil {
				s.sent[o.key()] = o
			}
			if err := w.pass(queued{cluster, change{key: o.key(), now: o}}); err != nil {
				return err
			}
		}
	}
	if s.seen == "" {
		return nil
	}
	return w.send(Event{Type: watch.Bookmark, Cluster: cluster, Version: s.seen})
}

// end sends the deletion of the objects of a store that is gone because they are not selected any more.
func (w *watching) end(cluster string, s *source) error {
	if !s.store.unselected.Load() {
		return fmt.Errorf("cluster %s: %w", cluster, ErrExpired)
	}
	s.store.feed.leave(w.queue)
	for _, o := range s.store.list(search.Namespaces{All: true}, "", "") {
		if err := w.pass(queued{cluster, change{key: o.key(), old: o}}); err != nil {
			return err
		}
	}
	delete(w.sources, cluster)
	return w.send(Event{Cluster: cluster, Left: true})
}

// drain sends the changes that wait.
func (w *watching) drain() error {
	var listed []*source
	for _, s := range w.sources {
		if s.sent != nil && s.store.version() != "" {
			listed = append(listed, s) // all changes of the first list wait
		}
	}
	items, ok := w.queue.take()
	if !ok {
		return ErrExpired
	}
	for _, c := range items {
		s := w.sources[c.cluster]
		if s == nil || c.version != "" && s.seen != "" && !resourceversion.Older(s.seen, c.version) {
			continue // it was sent with the objects
		}
		if c, unsent := s.unsent(c); unsent {
			if err := w.pass(c); err != nil {
				return err
			}
		}
	}
	for _, s := range listed {
		s.sent = nil
	}
	return nil
}

// unsent returns a change as one since the objects that were sent while the first list went on, and false if it was sent.
func (s *source) unsent(c queued) (queued, bool) {
	o := s.sent[c.key]
	if o == nil {
		return c, true
	}
	if c.now != nil && !resourceversion.Older(o.Version, c.now.Version) {
		return c, false
	}
	delete(s.sent, c.key)
	if c.old == nil {
		c.old = o
	}
	return c, true
}

// pass sends a change if it is one of the selected objects.
func (w *watching) pass(c queued) error {
	if w.query.Namespace != "" && c.key.Namespace != w.query.Namespace || w.query.Name != "" && c.key.Name != w.query.Name {
		return nil
	}
	before, err := w.selects(c.old)
	if err != nil {
		return err
	}
	after, err := w.selects(c.now)
	if err != nil {
		return err
	}
	e := Event{Cluster: c.cluster, Object: c.now, Version: c.version}
	switch {
	case before && after:
		e.Type = watch.Modified
	case after:
		e.Type = watch.Added
	case before:
		e.Type, e.Object = watch.Deleted, c.old
	default:
		return nil
	}
	return w.send(e)
}

func (w *watching) selects(o *Object) (bool, error) {
	if o == nil {
		return false, nil
	}
	return w.query.selects(o)
}

// complete reports whether the objects of all clusters that can be read were listed.
func (w *watching) complete() bool {
	for _, s := range w.sources {
		if s.store.version() == "" && s.store.lostSince().IsZero() {
			return false
		}
	}
	return !w.opening
}

// key returns the namespace and name of an object.
func (o *Object) key() types.NamespacedName {
	return types.NamespacedName{Namespace: o.Namespace, Name: o.Name}
}

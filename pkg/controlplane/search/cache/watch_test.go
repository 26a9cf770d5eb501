package cache

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/labels"

	searchv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/search/v1alpha1"
	"github.com/karmada-toolkit/karmada/pkg/domain/search"
	"github.com/karmada-toolkit/karmada/pkg/member/access/accesstest"
)

// watcher collects the events of a watch.
type watcher struct {
	*federation
	err chan error

	mu       sync.Mutex
	events   []string
	versions search.Versions
}

func (f *federation) watch(q Query, start Start) *watcher {
	q.Resource = configMaps
	w := &watcher{federation: f, err: make(chan error, 1), versions: start.Versions}
	ctx, cancel := context.WithCancel(f.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		w.err <- f.Watch(ctx, q, start, w.add)
	}()
	f.Cleanup(func() { cancel(); <-done })
	return w
}

func (w *watcher) add(e Event) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if e.Version != "" {
		w.versions = w.versions.With(e.Cluster, e.Version)
	}
	if e.Left {
		w.versions = w.versions.Without(e.Cluster)
	}
	switch {
	case e.Initial:
		w.events = append(w.events, "initial")
	case e.Object != nil:
		w.events = append(w.events, fmt.Sprintf("%s %s %s/%s", e.Type, e.Cluster, e.Object.Namespace, e.Object.Name))
	}
	return nil
}

// ends waits until the watch has ended with an error.
func (w *watcher) ends(want error) {
	w.Helper()
	if err := <-w.err; !errors.Is(err, want) {
		w.Errorf("the watch ends with %v", err)
	}
	w.err <- nil
}

// seen returns the versions of the events so far.
func (w *watcher) seen() search.Versions {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.versions
}

// wants waits until exactly these events were sent since the last call.
func (w *watcher) wants(want ...string) {
	w.Helper()
	accesstest.Eventually(w.T, func() error {
		w.mu.Lock()
		defer w.mu.Unlock()
		if diff := cmp.Diff(want, w.events); diff != "" {
			return errors.New(diff)
		}
		return nil
	})
	w.mu.Lock()
	defer w.mu.Unlock()
	w.events = nil
}

func TestWatch_ClustersComeAndGo(t *testing.T) {
	f := newFederation(t, 0, "m1", "m2")
	f.put("m1", "a", "x", "")
	f.put("m2", "a", "y", "")
	f.follow(registry("r", []string{"m1"}, configMapsIn("")))
	f.has(Query{}, "m1 a/x")
	w := f.watch(Query{}, Start{})
	w.wants("ADDED m1 a/x", "initial")
	f.put("m1", "a", "x", "app=web")
	w.wants("MODIFIED m1 a/x")
	f.follow(registry("r", nil, configMapsIn("")))
	w.wants("ADDED m2 a/y")
	f.servers["m1"].Remove("/api/v1/namespaces/a/configmaps/x")
	w.wants("DELETED m1 a/x")
	// A lost cluster ends nothing; its objects stay for a while.
	f.ready("m2", false)
	accesstest.Eventually(t, func() error {
		if _, result := f.list(Query{}); len(result.Missing) != 1 {
			return fmt.Errorf("missing %v", result.Missing)
		}
		return nil
	})
	f.put("m1", "b", "z", "")
	w.wants("ADDED m1 b/z")
	// That a cluster is lost for longer says nothing of its objects: the client lists again.
	f.clock.Step(defaultLostGrace)
	w.ends(ErrExpired)
	w.wants()
	w = f.watch(Query{}, Start{Now: true})
	w.wants("initial")
	f.ready("m2", true)
	w.wants("ADDED m2 a/y")
	// Objects of a namespace that is not selected any more.
	f.follow(registry("r", nil, configMapsIn("a")))
	w.wants("DELETED m1 b/z")
	delete(f.clusters, "m2")
	f.follow(f.registries...)
	w.wants("DELETED m2 a/y")
	// A client that was away then has objects of the cluster, whose deletion it did not see.
	f.watch(Query{}, Start{Versions: w.seen()}).wants("initial")
	f.watch(Query{}, Start{Versions: w.seen().With("m2", "1")}).ends(ErrExpired)
	// The kind is not selected any more.
	f.follow()
	w.ends(ErrExpired)
}

// The end of the process is no change of the objects: watches end without events, whether the context or the caches end first.
func TestWatch_EndOfTheProcess(t *testing.T) {
	for range 20 {
		f := newFederation(t, 0, "m1", "m2")
		f.put("m1", "a", "x", "")
		f.put("m2", "a", "y", "")
		ctx, cancel := context.WithCancel(t.Context())
		f.Follow(ctx, []*searchv1alpha1.ResourceRegistry{registry("r", nil, configMapsIn(""))}, f.current())
		f.has(Query{}, "m1 a/x", "m2 a/y")
		w := f.watch(Query{}, Start{})
		w.wants("ADDED m1 a/x", "ADDED m2 a/y", "initial")
		cancel()
		f.End()
		w.ends(nil)
		w.wants()
		f.has(Query{}, "m1 a/x", "m2 a/y")
	}
}

func TestWatch_Selection(t *testing.T) {
	f := newFederation(t, 0, "m1")
	f.put("m1", "a", "x", "")
	f.put("m1", "a", "y", "app=web")
	f.follow(registry("r", nil, configMapsIn("")))
	f.has(Query{}, "m1 a/x", "m1 a/y")
	selected := f.watch(Query{Labels: labels.SelectorFromSet(labels.Set{"app": "web"})}, Start{})
	selected.wants("ADDED m1 a/y", "initial")
	named := f.watch(Query{Namespace: "a", Name: "x"}, Start{Now: true})
	named.wants("initial")
	f.put("m1", "a", "x", "app=web")
	selected.wants("ADDED m1 a/x")
	named.wants("MODIFIED m1 a/x")
	f.put("m1", "a", "y", "app=db")
	selected.wants("DELETED m1 a/y")
	f.put("m1", "a", "x", "app=web")
	selected.wants("MODIFIED m1 a/x")
	named.wants("MODIFIED m1 a/x")
}

// A watch from the version of a list has each change since the list once; one from before what is known is told to list again.
func TestWatch_Versions(t *testing.T) {
	f := newFederation(t, 0, "m1", "m2")
	f.put("m1", "a", "x", "")
	f.put("m2", "a", "x", "")
	f.follow(registry("r", nil, configMapsIn("")))
	f.has(Query{}, "m1 a/x", "m2 a/x")
	_, listed := f.list(Query{})
	start := Start{Versions: search.NewVersions(listed.Versions)}
	f.put("m1", "a", "y", "")
	f.servers["m2"].Remove("/api/v1/namespaces/a/configmaps/x")
	f.has(Query{}, "m1 a/x", "m1 a/y")
	first := f.watch(Query{}, start)
	first.wants("ADDED m1 a/y", "DELETED m2 a/x", "initial")
	second := f.watch(Query{}, Start{Versions: first.seen()})
	second.wants("initial")
	// What the cache has not reached yet is neither repeated nor refused.
	ahead := f.watch(Query{}, Start{Versions: first.seen().With("m1", "1000000")})
	ahead.wants("initial")
	f.put("m1", "a", "z", "")
	first.wants("ADDED m1 a/z")
	second.wants("ADDED m1 a/z")
	ahead.wants()
	for i := range feedLength {
		f.put("m1", "b", fmt.Sprint("c", i%8), "")
	}
	accesstest.Eventually(t, func() error {
		first.mu.Lock()
		defer first.mu.Unlock()
		if len(first.events) != feedLength {
			return fmt.Errorf("%d events", len(first.events))
		}
		return nil
	})
	late := f.watch(Query{}, start)
	if err := <-late.err; !errors.Is(err, ErrExpired) {
		t.Errorf("a watch from a version that is not known ends with %v", err)
	}
	late.err <- nil
	// A cluster that is restored from an older copy ends watches: versions have no order any more.
	backup := f.servers["m1"].Backup()
	f.put("m1", "d", "x", "")
	accesstest.Eventually(t, func() error {
		first.mu.Lock()
		defer first.mu.Unlock()
		if len(first.events) != feedLength+1 {
			return fmt.Errorf("%d events", len(first.events))
		}
		return nil
	})
	f.servers["m1"].Restore(backup, 0)
	if err := <-first.err; !errors.Is(err, ErrExpired) {
		t.Errorf("a watch of a restored cluster ends with %v", err)
	}
	first.err <- nil
}

// A kind that a registry selects is selected also while no cluster serves it: nobody takes another's objects for those of it.
func TestCaches_Selects(t *testing.T) {
	f := newFederation(t, 0, "m1")
	kind := configMaps.GroupVersion().WithKind("ConfigMap")
	if _, ok := f.Selects(kind); ok {
		t.Error("the registries are known before they were read")
	}
	f.ready("m1", false)
	f.follow(registry("r", nil, configMapsIn("")))
	if selected, ok := f.Selects(kind); !selected || !ok {
		t.Errorf("selected %t, known %t", selected, ok)
	}
	if _, ok := f.Kind(configMaps); ok {
		t.Error("a lost cluster has a store")
	}
	w := f.watch(Query{Kind: kind}, Start{})
	w.wants("initial")
	f.put("m1", "a", "x", "")
	f.ready("m1", true)
	w.wants("ADDED m1 a/x")
	f.follow()
	if selected, ok := f.Selects(kind); selected || !ok {
		t.Errorf("without a registry: selected %t, known %t", selected, ok)
	}
}

// A watch that is not read ends, and holds nothing else up.
func TestFeed_SlowReader(t *testing.T) {
	var f feed
	q := newQueue()
	if _, ok := f.read(q, "m1", ""); !ok {
		t.Fatal("refused")
	}
	for range queueLength + 1 {
		f.add(change{now: &Object{Name: "x"}})
	}
	if _, ok := q.take(); ok {
		t.Error("changes are missing and the watch goes on")
	}
}

// The changes that are kept, and those that wait for a watch, are bounded by their size.
func TestFeed_LargeChanges(t *testing.T) {
	var f feed
	f.begin("1")
	q := newQueue()
	if _, ok := f.read(q, "m1", ""); !ok {
		t.Fatal("refused")
	}
	object := func(i int) *Object { return &Object{Name: "x", Version: fmt.Sprint(i), data: make([]byte, 100_000)} }
	for i := 2; i < 2+2*queueSize/100_000; i++ {
		f.add(change{old: object(i - 1), now: object(i), version: fmt.Sprint(i)})
	}
	if f.size > feedSize || len(f.last) == 0 {
		t.Errorf("%d changes of %d bytes are kept", len(f.last), f.size)
	}
	if _, ok := f.read(newQueue(), "m1", "2"); ok {
		t.Error("a watch begins before what is known")
	}
	if _, ok := f.read(newQueue(), "m1", f.last[0].version); !ok {
		t.Error("a watch does not begin with what is known")
	}
	if items, ok := q.take(); ok || len(items) > 0 {
		t.Errorf("%d changes wait for a watch that is not read, which goes on: %t", len(items), ok)
	}
}

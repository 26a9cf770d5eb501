package lifetime

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
)

// world is a cache of Clusters, whose events come later than its changes.
type world struct {
	client.Reader

	mu       sync.Mutex
	clusters map[string]*clusterv1alpha1.Cluster
	events   []func(toolscache.ResourceEventHandler)
	uids     int
}

func newWorld() *world {
	return &world{clusters: map[string]*clusterv1alpha1.Cluster{}}
}

func (w *world) Get(_ context.Context, key client.ObjectKey, out client.Object, _ ...client.GetOption) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	c := w.clusters[key.Name]
	if c == nil {
		return apierrors.NewNotFound(schema.GroupResource{Resource: "clusters"}, key.Name)
	}
	*out.(*clusterv1alpha1.Cluster) = *c
	return nil
}

// create creates a cluster with a UID of its own. If there is one of this name, the informer does not notice its deletion.
func (w *world) create(name string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.uids++
	before, now := w.clusters[name], &clusterv1alpha1.Cluster{}
	now.Name, now.UID = name, types.UID(strconv.Itoa(w.uids))
	w.clusters[name] = now
	w.events = append(w.events, func(h toolscache.ResourceEventHandler) {
		if before == nil {
			h.OnAdd(now, false)
		} else {
			h.OnUpdate(before, now)
		}
	})
}

func (w *world) update(name string, change func(*clusterv1alpha1.Cluster)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	before := w.clusters[name]
	if before == nil {
		return
	}
	now := before.DeepCopy()
	change(now)
	w.clusters[name] = now
	w.events = append(w.events, func(h toolscache.ResourceEventHandler) { h.OnUpdate(before, now) })
}

func (w *world) remove(name string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if before := w.clusters[name]; before != nil {
		delete(w.clusters, name)
		w.events = append(w.events, func(h toolscache.ResourceEventHandler) { h.OnDelete(before) })
	}
}

func (w *world) get(name string) *clusterv1alpha1.Cluster {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.clusters[name]
}

// deliver hands the first n events to the handler.
func (w *world) deliver(h toolscache.ResourceEventHandler, n int) {
	w.mu.Lock()
	n = min(n, len(w.events))
	events := slices.Clone(w.events[:n])
	w.events = w.events[n:]
	w.mu.Unlock()
	for _, e := range events {
		e(h)
	}
}

// reader is a value: a goroutine that reads a member.
type reader struct {
	uid         types.UID
	credentials string
	ask         chan chan<- *reader
	quit, done  chan struct{}
}

func newReader(c *clusterv1alpha1.Cluster, running *atomic.Int64) *reader {
	r := &reader{uid: c.UID, credentials: c.Spec.APIEndpoint, ask: make(chan chan<- *reader), quit: make(chan struct{}), done: make(chan struct{})}
	running.Add(1)
	go func() {
		defer close(r.done)
		defer running.Add(-1)
		for {
			select {
			case <-r.quit:
				return
			case answer := <-r.ask:
				answer <- r
			}
		}
	}()
	return r
}

func (r *reader) stop() {
	close(r.quit) // twice is a panic
	<-r.done
}

// TestRegistry_NothingOutlivesItsCluster changes clusters at random, uses the registry with what was known of them at any
// time before, and delivers the events late.
func TestRegistry_NothingOutlivesItsCluster(t *testing.T) {
	for seed := range uint64(200) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) { nothingOutlivesItsCluster(t, rand.New(rand.NewPCG(seed, 1))) })
	}
}

func nothingOutlivesItsCluster(t *testing.T, rnd *rand.Rand) {
	t.Helper()
	names := []string{"a", "b", "c"}
	w, running := newWorld(), &atomic.Int64{}
	registry := New(w, (*reader).stop)
	// reconcile is what controllers do: open a cluster that is ready, and close one that is not.
	reconcile := func(c *clusterv1alpha1.Cluster) {
		if c.Spec.ID == "not ready" {
			registry.Close(c)
			return
		}
		got, ok := registry.Open(t.Context(), c, c.Spec.APIEndpoint, func() *reader { return newReader(c, running) })
		if ok && (got.uid != c.UID || got.credentials != c.Spec.APIEndpoint) {
			t.Errorf("cluster %s %s has the value of %s %s", c.UID, c.Spec.APIEndpoint, got.uid, got.credentials)
		}
	}
	var known []*clusterv1alpha1.Cluster
	for step := range 100 {
		if step == 10 { // the registry is added to the informer
			w.events = nil
			registry.Sync()
		}
		name := names[rnd.IntN(len(names))]
		switch rnd.IntN(8) {
		case 0:
			w.create(name)
		case 1:
			w.remove(name)
		case 2:
			w.update(name, func(c *clusterv1alpha1.Cluster) { c.Spec.APIEndpoint = strconv.Itoa(step) })
		case 3:
			w.update(name, func(c *clusterv1alpha1.Cluster) { c.Spec.ID = []string{"not ready", ""}[rnd.IntN(2)] })
		case 4:
			if step > 10 {
				w.deliver(registry, rnd.IntN(3))
			}
		default:
			if len(known) > 0 {
				reconcile(known[rnd.IntN(len(known))])
			}
		}
		if c := w.get(name); c != nil {
			known = append(known, c)
		}
	}
	w.deliver(registry, len(w.events))
	want := map[string]string{}
	for _, name := range names {
		if c := w.get(name); c != nil {
			reconcile(c)
			if c.Spec.ID == "" {
				want[name] = string(c.UID) + " " + c.Spec.APIEndpoint
			}
		}
	}
	registry.stopping.Wait()
	got := map[string]string{}
	for _, name := range names {
		r, ok := registry.Get(name)
		if !ok {
			continue
		}
		answer := make(chan *reader, 1)
		r.ask <- answer // blocks if it was stopped
		got[name] = string((<-answer).uid) + " " + r.credentials
	}
	if !maps.Equal(got, want) || int(running.Load()) != len(want) || len(registry.All()) != len(want) {
		t.Errorf("%d run, open are %v, want %v", running.Load(), got, want)
	}
	registry.End()
	if running.Load() != 0 || len(registry.All()) != 0 {
		t.Errorf("after the end %d run, %d are open", running.Load(), len(registry.All()))
	}
	for _, c := range known {
		reconcile(c)
	}
	if running.Load() != 0 {
		t.Error("opened after the end")
	}
}

// TestRegistry_Concurrent lets users, events and the end of the registry race.
func TestRegistry_Concurrent(t *testing.T) {
	w, running := newWorld(), &atomic.Int64{}
	registry := New(w, (*reader).stop)
	var users sync.WaitGroup
	for user := range uint64(4) {
		users.Go(func() {
			rnd := rand.New(rand.NewPCG(user, 2))
			for step := range 500 {
				name := strconv.Itoa(rnd.IntN(3))
				switch rnd.IntN(6) {
				case 0:
					w.create(name)
				case 1:
					w.remove(name)
				case 2:
					if c := w.get(name); c != nil {
						registry.Close(c)
					}
				default:
					if c := w.get(name); c != nil {
						registry.Open(t.Context(), c, rnd.IntN(2), func() *reader { return newReader(c, running) })
					}
				}
				if user == 0 {
					w.deliver(registry, 2)
				}
				if user == 1 && step == 400 {
					registry.End()
				}
			}
		})
	}
	users.Wait()
	registry.End()
	if running.Load() != 0 {
		t.Errorf("%d run", running.Load())
	}
}

func TestRegistry_CloseWaits(t *testing.T) {
	var stopped []string
	r := New(nil, func(v string) { stopped = append(stopped, v) })
	a := &clusterv1alpha1.Cluster{}
	a.Name = "a"
	for range 2 {
		r.Open(t.Context(), a, nil, func() string { return "value" })
	}
	earlier := a.DeepCopy()
	earlier.UID = "earlier"
	if r.Close(earlier) || !r.Close(a) || r.Close(a) || !slices.Equal(stopped, []string{"value"}) {
		t.Errorf("stopped %v", stopped)
	}
}

func TestRegistry_SyncClosesWhatWasDeletedBefore(t *testing.T) {
	w, closed := newWorld(), make(chan struct{})
	r := New(w, func(string) { close(closed) })
	w.create("a")
	r.Open(t.Context(), w.get("a"), nil, func() string { return "value" })
	w.remove("a")
	r.Sync()
	<-closed
}

func TestRegistry_Keep(t *testing.T) {
	r := New[string](nil, nil)
	for _, name := range []string{"a", "b", "c"} {
		c := &clusterv1alpha1.Cluster{}
		c.Name = name
		r.Open(t.Context(), c, nil, func() string { return name })
	}
	r.Keep(func(name string) bool { return name != "b" })
	if got := r.All(); !slices.Equal(got, []string{"a", "c"}) {
		t.Errorf("kept %v", got)
	}
}

package member

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"github.com/karmada-toolkit/karmada/internal/plaintext"
	workv1alpha2 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha2"
	"github.com/karmada-toolkit/karmada/pkg/member/access"
	"github.com/karmada-toolkit/karmada/pkg/member/access/informer"
	"github.com/karmada-toolkit/karmada/pkg/member/views"
)

// The limit of the objects of one type, in bytes. It depends on the number of Works
// only, which a member cannot raise.
const (
	maxSize        = 32 << 20
	maxSizePerWork = 64 << 10
)

// wentBackInterval is the shortest time between two lists of everything because the member has older versions than before.
const wentBackInterval = 10 * time.Second

// Config is what Informers need.
type Config struct {
	// Cluster is the name of the member, for logs.
	Cluster string
	Hasher  Hasher
	Clock   clock.PassiveClock
	// Works returns the number of Works of the cluster.
	Works func() int
	// Changed is called for every change of an object: old is nil for a new one, now
	// for one that was deleted. It must not block.
	Changed func(old, now *Snapshot)
	// Synced is called with the Works that use an informer after its first complete
	// list. It must not block.
	Synced func(works []string)
	// WentBack is called after the member was found to have an older version than before: at once the first time, and then
	// at most every wentBackInterval. It must not block.
	WentBack func(from, to string)
}

// Informers are the informers of a member: one for each type of the objects that Works
// own. An informer stops with the last Work that uses it.
type Informers struct {
	cfg     Config
	ctx     context.Context //nolint:containedctx // the life of the informers, which start when a Work needs them
	running sync.WaitGroup

	mu         sync.Mutex
	client     *access.Member
	byResource map[schema.GroupVersionResource]*Informer
	// gated reports whether the member went back less than wentBackInterval ago, and again is the call that then follows;
	// nil if it has not gone back since.
	gated bool
	again func()
}

// NewInformers returns Informers that stop when ctx ends.
func NewInformers(ctx context.Context, cfg Config) *Informers {
	return &Informers{cfg: cfg, ctx: ctx, byResource: map[schema.GroupVersionResource]*Informer{}}
}

// Wait returns when the informers stopped.
func (i *Informers) Wait() { i.running.Wait() }

// Bind sets the member. If it is another one than before, all informers are replaced.
func (i *Informers) Bind(client *access.Member) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.client == client {
		return
	}
	i.client = client
	for _, informer := range i.byResource {
		informer.run.Load().cancel()
		i.startLocked(informer)
	}
}

// Retry ends the backoff of the informers whose last request failed.
func (i *Informers) Retry() {
	i.mu.Lock()
	defer i.mu.Unlock()
	for _, informer := range i.byResource {
		informer.Retry()
	}
}

// WentBack lists everything anew and calls Config.WentBack.
func (i *Informers) WentBack(from, to string) { i.wentBack(nil, from, to) }

// wentBack lists everything anew but the objects of one informer. A member that reports ever older versions would cause lists
// without end: what it reports within wentBackInterval is handled once, at the end of the interval.
func (i *Informers) wentBack(but *Informer, from, to string) {
	i.mu.Lock()
	gated := i.gated
	if gated {
		i.again = func() { i.wentBack(nil, from, to) }
	} else {
		i.gated = true
		i.running.Go(func() {
			select {
			case <-i.ctx.Done():
			case <-time.After(wentBackInterval):
				i.openGate()
			}
		})
	}
	i.mu.Unlock()
	if !gated {
		i.restart(but)
		i.cfg.WentBack(from, to)
	}
}

func (i *Informers) openGate() {
	i.mu.Lock()
	again := i.again
	i.gated, i.again = false, nil
	i.mu.Unlock()
	if again != nil {
		again()
	}
}

// restart lists everything anew but the objects of one informer.
func (i *Informers) restart(but *Informer) {
	i.mu.Lock()
	defer i.mu.Unlock()
	for _, informer := range i.byResource {
		if informer != but {
			informer.run.Load().cancel()
			i.startLocked(informer)
		}
	}
}

// Acquire returns the informer of a type for an object of a Work, and starts it if
// necessary. It is released by Release.
func (i *Informers) Acquire(gvr schema.GroupVersionResource, gvk schema.GroupVersionKind, work string) *Informer {
	i.mu.Lock()
	defer i.mu.Unlock()
	informer := i.byResource[gvr]
	if informer == nil {
		informer = &Informer{gvr: gvr, gvk: gvk, works: map[string]int{}}
		i.byResource[gvr] = informer
		i.startLocked(informer)
	}
	informer.works[work]++
	return informer
}

// Release ends the use of an informer for an object of a Work.
func (i *Informers) Release(informer *Informer, work string) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if informer.works[work]--; informer.works[work] <= 0 {
		delete(informer.works, work)
	}
	if len(informer.works) == 0 {
		informer.run.Load().cancel()
		delete(i.byResource, informer.gvr)
	}
}

// Works returns the Works with objects of the selected kinds.
func (i *Informers) Works(selected func(schema.GroupVersionKind) bool) []string {
	i.mu.Lock()
	defer i.mu.Unlock()
	var out []string
	for _, informer := range i.byResource {
		if selected(informer.gvk) {
			out = append(out, informer.worksLocked()...)
		}
	}
	return out
}

func (i *Informers) startLocked(in *Informer) {
	selector := workv1alpha2.ManagedByKarmadaLabel + "=" + workv1alpha2.ManagedByKarmadaLabelValue
	projection := informer.New(informer.Config[Snapshot]{
		Name:     i.cfg.Cluster + " " + in.gvr.GroupResource().String(),
		Source:   views.Objects(i.client, in.gvr, views.Selection{Labels: selector}),
		Project:  informer.From(i.project),
		Size:     func(s Snapshot) int { return s.size() },
		MaxSize:  func() int { return maxSize + maxSizePerWork*i.cfg.Works() },
		Changed:  func(_ types.NamespacedName, old, now *Snapshot) { i.cfg.Changed(old, now) },
		Synced:   func() { i.synced(in) },
		Version:  func(s Snapshot) string { return s.Version },
		WentBack: func(from, to string) { i.wentBack(in, from, to) },
	})
	ctx, cancel := context.WithCancel(i.ctx)
	in.run.Store(&run{projection: projection, cancel: cancel, started: i.cfg.Clock.Now()})
	i.running.Go(func() { projection.Run(ctx) })
}

// project takes the snapshot of an object. It shares the content of the old one where
// only the status changed.
func (i *Informers) project(obj *unstructured.Unstructured, old *Snapshot) (Snapshot, error) {
	s, err := i.cfg.Hasher.Snapshot(obj)
	if err == nil && old != nil && old.Hash == s.Hash {
		s.content = old.content
	}
	return s, err
}

func (i *Informers) synced(informer *Informer) {
	i.mu.Lock()
	works := informer.worksLocked()
	i.mu.Unlock()
	i.cfg.Synced(works)
}

// Informer observes the objects of one type.
type Informer struct {
	gvr   schema.GroupVersionResource
	gvk   schema.GroupVersionKind
	works map[string]int // by Work: the number of its objects of this type; guarded by Informers.mu
	run   atomic.Pointer[run]
}

// run is the life of an informer with one client.
type run struct {
	projection *informer.Projection[Snapshot]
	cancel     context.CancelFunc
	started    time.Time
}

// View is what an informer knows about an object.
type View struct {
	// Snapshot is nil if the object was not observed.
	Snapshot *Snapshot
	// Synced reports whether the first list was complete before the snapshot was
	// taken: without a snapshot, the object did not exist then.
	Synced bool
	// Started is the time when the informer was started.
	Started time.Time
}

// Get returns the view of an object.
func (i *Informer) Get(key types.NamespacedName) View {
	run := i.run.Load()
	synced := run.projection.HasSynced()
	return View{Snapshot: run.projection.Get(key), Synced: synced, Started: run.started}
}

// Retry ends the backoff after a failed request.
func (i *Informer) Retry() { i.run.Load().projection.Retry() }

func (i *Informer) worksLocked() []string {
	out := make([]string, 0, len(i.works))
	for work := range i.works {
		out = append(out, work)
	}
	return out
}

// maxText is the limit of a text from a member, in bytes.
const maxText = 1024

// Text returns text from a member, such as an error, in a form fit for events and
// conditions.
func Text(s string) string { return plaintext.Line(s, maxText) }

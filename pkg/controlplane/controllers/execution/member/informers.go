package member

import (
	"context"
	"maps"
	"slices"
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
	"github.com/karmada-toolkit/karmada/pkg/member/follow"
)

// The limit of the objects of one type, in bytes. It depends on the number of Works only, which a member cannot raise.
const (
	maxSize        = 32 << 20
	maxSizePerWork = 64 << 10
)

// Config is what Informers need.
type Config struct {
	// Cluster is the name of the member, for logs.
	Cluster string
	Hasher  Hasher
	Clock   clock.PassiveClock
	// Works returns the number of Works of the cluster.
	Works func() int
	// Changed is called for every change of an object: old is nil for a new one, now for one that was deleted. It must not block.
	Changed func(old, now *Snapshot)
	// Synced is called with the Works that use an informer after its first complete list. It must not block.
	Synced func(works []string)
	// Closed is called when the member is closed that is used. It must not block.
	Closed func()
}

// Informers are the informers of a member: one for each type of the objects that Works own. An informer stops with the last Work that uses it.
type Informers struct {
	cfg Config
	ctx context.Context //nolint:containedctx // the life of the informers, which start when a Work needs them

	mu         sync.Mutex
	client     *access.Member
	byResource map[schema.GroupVersionResource]*Informer
}

// NewInformers returns Informers that stop when ctx ends.
func NewInformers(ctx context.Context, cfg Config) *Informers {
	return &Informers{cfg: cfg, ctx: ctx, byResource: map[schema.GroupVersionResource]*Informer{}}
}

// Stop stops the informers. Nothing is called any more when it returns.
func (i *Informers) Stop() {
	i.mu.Lock()
	all := slices.Collect(maps.Values(i.byResource))
	i.mu.Unlock()
	for _, informer := range all {
		informer.run.Load().Stop()
	}
}

// Bind sets the member, unless it was closed meanwhile. If it is another one than before, all informers are replaced.
func (i *Informers) Bind(client *access.Member) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.client == client || i.client != nil && client.Context().Err() != nil {
		return
	}
	i.client = client
	client.OnClose(i.cfg.Closed)
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
	projection := follow.New(follow.Config[Snapshot]{
		Name:    i.cfg.Cluster + " " + in.gvr.GroupResource().String(),
		Source:  follow.Objects(i.client, in.gvr, follow.Selection{Labels: selector}),
		Project: follow.From(i.project),
		Size:    func(s Snapshot) int { return s.size() },
		MaxSize: func() int { return maxSize + maxSizePerWork*i.cfg.Works() },
		Changed: func(_ types.NamespacedName, old, now *Snapshot) { i.cfg.Changed(old, now) },
		Synced:  func() { i.synced(in) },
		Version: func(s Snapshot) string { return s.Version },
	})
	ctx, cancel := context.WithCancel(i.ctx)
	in.run.Store(&run{Projection: projection, cancel: cancel, started: i.cfg.Clock.Now()})
	projection.Start(ctx)
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
	*follow.Projection[Snapshot]
	cancel  context.CancelFunc // does not wait for callbacks, which need the lock
	started time.Time
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
	synced := run.HasSynced() // before the snapshot is taken
	return View{Snapshot: run.Get(key), Synced: synced, Started: run.started}
}

// Retry ends the backoff after a failed request.
func (i *Informer) Retry() { i.run.Load().Retry() }

func (i *Informer) worksLocked() []string { return slices.Collect(maps.Keys(i.works)) }

// maxText is the limit of a text from a member, in bytes.
const maxText = 1024

// Text returns text from a member, such as an error, in a form fit for events and
// conditions.
func Text(s string) string { return plaintext.Line(s, maxText) }

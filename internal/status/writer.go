// Package status writes the status of objects in controllers that read them from a cache: once per change, although
// the cache may be behind their own writes, other controllers may write too, and a restore of etcd may undo a write.
package status

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	jsonpatch "github.com/evanphx/json-patch/v5"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"k8s.io/utils/lru"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/karmada-toolkit/karmada/internal/patch"
	"github.com/karmada-toolkit/karmada/internal/resourceversion"
)

// maxAttempts limits the writes of one status that conflict with those of others.
const maxAttempts = 5

// Status is the type of a status: a pointer that can be copied.
type Status[S any] interface{ DeepCopy() S }

// Options describe the objects of a Writer.
type Options[O client.Object, S Status[S]] struct {
	// Get returns the status of an object.
	Get func(O) S
	// Set replaces the status of an object. Only UpdateIfForbidden needs it.
	Set func(O, S)
	// Copy copies what changes of the status modify in place. Default: all of it.
	Copy func(S) S
	// Fields returns the fields of a status that are written. Default: all that its JSON has.
	Fields func(S) any
	// Shared are the JSON names of fields that other controllers write too. A patch that changes one of them requires the
	// resource version from which it was computed: a merge patch replaces a list such as conditions whole.
	Shared []string
	// UpdateIfForbidden updates the status where patching it is forbidden: agents that other tools registered may
	// update only.
	UpdateIfForbidden bool

	Client client.Client
	// Live reads from the API server after a conflict. Default: none, a conflict is returned.
	Live  client.Reader
	Clock clock.PassiveClock
}

// Writer writes the status of the objects of one kind. It is safe for concurrent use as long as each Written has one
// user at a time.
type Writer[O client.Object, S Status[S]] struct {
	opts       Options[O, S]
	updateOnly atomic.Bool
	written    *Memory[client.ObjectKey, *shared[S]]
}

// remembered is the number of objects whose last status a Writer knows by itself.
const remembered = 4096

// shared is a Written of several users.
type shared[S any] struct {
	mu sync.Mutex
	Written[S]
}

// NewWriter returns a Writer.
func NewWriter[O client.Object, S Status[S]](opts Options[O, S]) *Writer[O, S] {
	if opts.Fields == nil {
		opts.Fields = func(status S) any { return status }
	}
	if opts.Copy == nil {
		opts.Copy = func(status S) S { return status.DeepCopy() }
	}
	return &Writer[O, S]{opts: opts, written: NewMemory[client.ObjectKey, *shared[S]](remembered)}
}

// For returns a Writer of all fields of the status that get returns. shared is Options.Shared; live may be nil.
func For[O client.Object, S Status[S]](c client.Client, live client.Reader, clk clock.PassiveClock, get func(O) S, shared ...string) *Writer[O, S] {
	return NewWriter(Options[O, S]{Get: get, Shared: shared, Client: c, Live: live, Clock: clk})
}

// Put is Write for callers without a Written of their own. For each object, change is called by one caller at a time.
func (w *Writer[O, S]) Put(ctx context.Context, cached O, change func(S)) (bool, error) {
	var last *shared[S]
	w.written.Update(client.ObjectKeyFromObject(cached), func(known *shared[S], _ bool) (*shared[S], bool) {
		last = cmp.Or(known, &shared[S]{})
		return last, true
	})
	last.mu.Lock()
	defer last.mu.Unlock()
	return w.Write(ctx, cached, &last.Written, change)
}

// Current returns the status of an object as it is stored, as far as is known: as the cache shows it or, if the cache is
// behind, as it was written. The status is read-only.
func (w *Writer[O, S]) Current(cached O, written *Written[S]) S {
	status, _ := written.Latest(cached, w.opts.Get(cached), w.opts.Clock.Now())
	return status
}

// Write applies change to the status of the object that the cache shows and patches what differs. It reports whether it
// wrote: it does not if nothing differs or the object is gone. After a conflict, change is applied to the status that is
// stored by then.
func (w *Writer[O, S]) Write(ctx context.Context, cached O, written *Written[S], change func(S)) (bool, error) {
	out, _, err := w.write(ctx, cached, written, change)
	if err != nil || out == nil {
		return false, err
	}
	written.Record(*out, w.opts.Get(*out), w.opts.Clock.Now())
	return true, nil
}

// Store is Write for an object that is not behind. It returns the object as stored, or the given one if nothing was written, and whether others
// had written it meanwhile.
func (w *Writer[O, S]) Store(ctx context.Context, current O, change func(S)) (stored O, wrote, conflicted bool, err error) {
	out, conflicted, err := w.write(ctx, current, &Written[S]{}, change)
	if err != nil || out == nil {
		return current, false, conflicted, err
	}
	return *out, true, conflicted, nil
}

// DryRun returns the error that Write would return, without writing.
func (w *Writer[O, S]) DryRun(ctx context.Context, cached O, written *Written[S], change func(S)) error {
	_, _, err := w.write(ctx, cached, written, change, client.DryRunAll)
	return err
}

// write returns the object that the API server stored, or nil if nothing was written, and whether there was a conflict.
func (w *Writer[O, S]) write(ctx context.Context, cached O, written *Written[S], change func(S), opts ...client.SubResourcePatchOption) (stored *O, conflicted bool, err error) {
	key := client.ObjectKeyFromObject(cached)
	before, version := written.Latest(cached, w.opts.Get(cached), w.opts.Clock.Now())
	for attempt := 1; ; attempt++ {
		after := w.opts.Copy(before)
		change(after)
		if equality.Semantic.DeepEqual(before, after) {
			return nil, attempt > 1, nil
		}
		out, err := w.send(ctx, cached, version, before, after, opts)
		switch {
		case err == nil:
			return out, attempt > 1, nil
		case apierrors.IsNotFound(err):
			return nil, attempt > 1, nil
		case !apierrors.IsConflict(err) || w.opts.Live == nil || attempt == maxAttempts:
			return nil, attempt > 1, fmt.Errorf("writing the status of %T %s: %w", cached, key, err)
		}
		stored := patch.Named(cached)
		if err := w.opts.Live.Get(ctx, key, stored); err != nil {
			if apierrors.IsNotFound(err) {
				return nil, true, nil
			}
			return nil, true, fmt.Errorf("reading %T %s: %w", cached, key, err)
		}
		if stored.GetUID() != cached.GetUID() {
			return nil, true, nil
		}
		before, version = w.opts.Get(stored), stored.GetResourceVersion()
	}
}

// send returns nil if the two statuses have the same fields.
func (w *Writer[O, S]) send(ctx context.Context, cached O, version string, before, after S, opts []client.SubResourcePatchOption) (*O, error) {
	data, err := w.patch(cached.GetUID(), version, before, after)
	if err != nil || data == nil {
		return nil, err
	}
	if !w.updateOnly.Load() {
		out := patch.Named(cached)
		err := w.opts.Client.Status().Patch(ctx, out, client.RawPatch(types.MergePatchType, data), opts...)
		if !w.opts.UpdateIfForbidden || !apierrors.IsForbidden(err) {
			return &out, err
		}
		w.updateOnly.Store(true)
	}
	out := cached.DeepCopyObject().(O)
	out.SetResourceVersion(version)
	w.opts.Set(out, after)
	return &out, w.opts.Client.Status().Update(ctx, out)
}

// patch returns the merge patch from one status to another, or nil if it has no fields. Built-in kinds reject the UID of
// another object of the same name; custom resources ignore it, so that a status may be written to an object that was created
// since, and is corrected when that object is reconciled.
func (w *Writer[O, S]) patch(uid types.UID, version string, before, after S) ([]byte, error) {
	from, err := json.Marshal(map[string]any{"status": w.opts.Fields(before)})
	if err != nil {
		return nil, fmt.Errorf("encoding the stored status: %w", err)
	}
	to, err := json.Marshal(map[string]any{"status": w.opts.Fields(after)})
	if err != nil {
		return nil, fmt.Errorf("encoding the status: %w", err)
	}
	data, err := jsonpatch.CreateMergePatch(from, to)
	if err != nil {
		return nil, fmt.Errorf("comparing the status: %w", err)
	}
	var change struct {
		Metadata map[string]any             `json:"metadata,omitempty"`
		Status   map[string]json.RawMessage `json:"status,omitempty"`
	}
	if err := json.Unmarshal(data, &change); err != nil {
		return nil, fmt.Errorf("decoding the patch: %w", err)
	}
	if len(change.Status) == 0 {
		return nil, nil
	}
	change.Metadata = map[string]any{}
	if uid != "" {
		change.Metadata["uid"] = uid
	}
	for _, field := range w.opts.Shared {
		if _, ok := change.Status[field]; ok {
			change.Metadata["resourceVersion"] = version
		}
	}
	return json.Marshal(change)
}

// Memory records what a controller wrote last, by key, for controllers that have to recognize their own writes or
// to read around a cache that is behind them. It is safe for concurrent use.
type Memory[K comparable, V any] struct {
	mu      sync.Mutex
	entries *lru.Cache
}

// NewMemory returns an empty Memory. With a limit above 0 it drops the least recently used entry beyond that number.
func NewMemory[K comparable, V any](limit int) *Memory[K, V] {
	return &Memory[K, V]{entries: lru.New(limit)}
}

// Get returns the entry of a key and whether there is one.
func (m *Memory[K, V]) Get(key K) (V, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.getLocked(key)
}

// Set replaces the entry of a key.
func (m *Memory[K, V]) Set(key K, value V) {
	m.Update(key, func(V, bool) (V, bool) { return value, true })
}

// Delete removes the entry of a key.
func (m *Memory[K, V]) Delete(key K) {
	m.Update(key, func(value V, _ bool) (V, bool) { return value, false })
}

// Update replaces the entry of a key by what change returns for it, or removes it if change returns false. No other
// call sees or changes the Memory meanwhile, so change must not call it.
func (m *Memory[K, V]) Update(key K, change func(value V, found bool) (V, bool)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	value, keep := change(m.getLocked(key))
	if keep {
		m.entries.Add(key, value)
	} else {
		m.entries.Remove(key)
	}
}

func (m *Memory[K, V]) getLocked(key K) (V, bool) {
	value, found := m.entries.Get(key)
	if !found {
		var none V
		return none, false
	}
	return value.(V), true
}

// WrittenTTL is how long a written status counts as the stored one while the cache shows an older version. After a
// restore of etcd resource versions are lower than before, so the cache never reaches the version of the write.
// A controller that wrote a status must reconcile the object again after that to notice, see Written.Pending.
const WrittenTTL = 30 * time.Second

// Written is the last status that a controller wrote to one object. The zero value stands for none. It is not safe for
// concurrent use.
type Written[S any] struct {
	status  S
	uid     types.UID
	version string // empty: the cache has the current status
	at      time.Time
}

// Record stores the status of an object as a write at the time now returned it.
func (w *Written[S]) Record(obj metav1.Object, status S, now time.Time) {
	*w = Written[S]{status: status, uid: obj.GetUID(), version: obj.GetResourceVersion(), at: now}
}

// Latest returns the later of the status that the cache shows for obj and the written one, and its resource version.
func (w *Written[S]) Latest(obj metav1.Object, cached S, now time.Time) (S, string) {
	if w.version != "" && w.uid == obj.GetUID() && resourceversion.Newer(w.version, obj.GetResourceVersion()) && now.Sub(w.at) < WrittenTTL {
		return w.status, w.version
	}
	var none S
	w.status, w.version = none, ""
	return cached, obj.GetResourceVersion()
}

// Pending returns how long a written status still counts while the cache shows an older version, as of the last call
// of Latest: when to reconcile the object again. It returns 0 if the cache has caught up.
func (w *Written[S]) Pending(now time.Time) time.Duration {
	if w.version == "" {
		return 0
	}
	return max(0, w.at.Add(WrittenTTL).Sub(now))
}

// At returns the time of the last write; zero if there was none.
func (w *Written[S]) At() time.Time { return w.at }

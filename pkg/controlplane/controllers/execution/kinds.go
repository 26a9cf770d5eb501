package execution

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"hash/maphash"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	workv1alpha2 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha2"
	"github.com/karmada-toolkit/karmada/pkg/member/access/informer"
)

// burst is how long a change of status waits for the next one: controllers in
// members write several in a row.
const burst = 50 * time.Millisecond

const (
	// objectOverhead is what an object takes beside its content, in bytes.
	objectOverhead = 256
	// keptBase and keptPerWork are how many bytes of a member's objects of one kind are
	// kept: the control plane knows how much it delivered, and a member cannot raise it.
	keptBase    = 32 << 20
	keptPerWork = 64 << 10
)

// mayKeep returns how many bytes the objects of one kind may take.
func (r *runner) mayKeep() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return keptBase + keptPerWork*len(r.works)
}

// kind follows the objects of one type that Works own in a member. It stops with
// the last Work that uses it.
type kind struct {
	gvr    schema.GroupVersionResource
	gvk    schema.GroupVersionKind
	works  map[string]int // by Work: how many of its objects are of this type
	mirror *informer.Projection[copied]
	cancel context.CancelFunc
	// since is when the mirror started.
	since time.Time
}

// copied is what is kept of an object of a member: all of it, in two pieces of
// JSON, since that is a tenth of the size of the object in memory.
type copied struct {
	uid        types.UID
	version    string
	generation int64
	// work is the Work that the object says it comes from.
	work types.NamespacedName
	// content is the object without status and without what changes with every
	// write; hash is its hash.
	content []byte
	hash    uint64
	status  []byte
}

// follow returns the kind, started if need be, and counts the Work in.
func (r *runner) follow(gvr schema.GroupVersionResource, gvk schema.GroupVersionKind, work string) *kind {
	r.mu.Lock()
	defer r.mu.Unlock()
	k := r.kinds[gvr]
	if k == nil {
		k = &kind{gvr: gvr, gvk: gvk, works: map[string]int{}}
		r.kinds[gvr] = k
		r.mirrorLocked(k)
	}
	k.works[work]++
	return k
}

// releaseLocked counts the Work out of the kinds it uses.
func (r *runner) releaseLocked(work string, s *state) {
	for _, o := range s.objects {
		if o.kind == nil {
			continue
		}
		if o.kind.works[work]--; o.kind.works[work] <= 0 {
			delete(o.kind.works, work)
		}
		if len(o.kind.works) == 0 {
			o.kind.cancel()
			delete(r.kinds, o.kind.gvr)
		}
	}
	s.objects = nil
}

// mirrorLocked starts the mirror of a kind.
func (r *runner) mirrorLocked(k *kind) {
	resource := r.member.Dynamic().Resource(k.gvr)
	selector := workv1alpha2.ManagedByKarmadaLabel + "=" + workv1alpha2.ManagedByKarmadaLabelValue
	k.mirror = informer.New(informer.Config[copied]{
		Name: r.cluster + " " + k.gvr.GroupResource().String(),
		List: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			o.LabelSelector = selector
			return resource.List(ctx, o)
		},
		Watch: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			o.LabelSelector = selector
			return resource.Watch(ctx, o)
		},
		Example: &unstructured.Unstructured{},
		Project: func(obj runtime.Object, old *copied) (copied, error) { return r.keep(obj, old) },
		Size:    func(c copied) int { return len(c.content) + len(c.status) + objectOverhead },
		MaxSize: r.mayKeep,
		Changed: func(_ types.NamespacedName, old, now *copied) { r.observed(old, now) },
		Synced:  func() { r.listed(k) },
	})
	ctx, cancel := context.WithCancel(r.ctx)
	k.cancel, k.since = cancel, r.c.deps.Clock.Now()
	m := k.mirror
	r.done.Go(func() { m.Run(ctx) })
}

// listed enqueues the Works that waited to see what the member has.
func (r *runner) listed(k *kind) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for work := range k.works {
		r.queue.Add(work)
	}
}

// observed enqueues the Work of an object that changed: at once when its content
// did, a little later when only its status did.
func (r *runner) observed(old, now *copied) {
	work := now
	if now == nil || now.work.Name == "" {
		work = old
	}
	if work == nil || work.work.Namespace != r.namespace || work.work.Name == "" {
		return
	}
	name := work.work.Name
	switch {
	case now == nil:
		r.markGone(name, old.uid)
		r.queue.Add(name)
	case old != nil && old.uid != now.uid:
		r.markGone(name, old.uid)
		r.queue.Add(name)
	case old != nil && old.hash != now.hash:
		r.queue.Add(name)
	case old == nil || old.generation != now.generation || !bytes.Equal(old.status, now.status):
		r.later(name, burst)
	}
}

// markGone remembers that an object was deleted, so that it is not taken for one
// that has not been observed yet.
func (r *runner) markGone(work string, uid types.UID) {
	r.mu.Lock()
	s := r.works[work]
	r.mu.Unlock()
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.gone[uid] = true
}

func (r *runner) keep(in runtime.Object, old *copied) (copied, error) {
	obj, ok := in.(*unstructured.Unstructured)
	if !ok {
		return copied{}, fmt.Errorf("unexpected %T", in)
	}
	c, err := r.c.copy(obj)
	if err == nil && old != nil && old.hash == c.hash {
		c.content = old.content
	}
	return c, err
}

// copy takes an object of a member apart. obj is not used afterwards.
func (c *Controller) copy(obj *unstructured.Unstructured) (copied, error) {
	annotations := obj.GetAnnotations()
	out := copied{
		uid: obj.GetUID(), version: obj.GetResourceVersion(), generation: obj.GetGeneration(),
		work: types.NamespacedName{
			Namespace: annotations[workv1alpha2.WorkNamespaceAnnotation],
			Name:      annotations[workv1alpha2.WorkNameAnnotation],
		},
	}
	fields := make(map[string]any, len(obj.Object))
	for key, value := range obj.Object {
		switch key {
		case "status":
			status, err := json.Marshal(value)
			if err != nil {
				return copied{}, fmt.Errorf("encoding the status: %w", err)
			}
			out.status = status
		case "metadata":
			fields[key] = lastingMetadata(value)
		default:
			fields[key] = value
		}
	}
	content, err := json.Marshal(fields)
	if err != nil {
		return copied{}, fmt.Errorf("encoding the object: %w", err)
	}
	out.content, out.hash = content, maphash.Bytes(c.seed, content)
	return out, nil
}

func lastingMetadata(value any) any {
	metadata, ok := value.(map[string]any)
	if !ok {
		return value
	}
	out := make(map[string]any, len(metadata))
	for key, v := range metadata {
		switch key {
		case "managedFields", "resourceVersion", "generation":
		default:
			out[key] = v
		}
	}
	return out
}

// object puts the pieces together again.
func (c *copied) object() (*unstructured.Unstructured, error) {
	obj := &unstructured.Unstructured{}
	if err := obj.UnmarshalJSON(c.content); err != nil {
		return nil, fmt.Errorf("decoding the object: %w", err)
	}
	obj.SetResourceVersion(c.version)
	if c.generation != 0 {
		obj.SetGeneration(c.generation)
	}
	if c.status == nil {
		return obj, nil
	}
	var status any
	if err := unmarshal(c.status, &status); err != nil {
		return nil, fmt.Errorf("decoding the status: %w", err)
	}
	obj.Object["status"] = status
	return obj, nil
}

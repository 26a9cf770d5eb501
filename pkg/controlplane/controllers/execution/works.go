package execution

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/karmada-toolkit/karmada/internal/status"
	workv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha1"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/controllers/execution/apply"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/controllers/execution/member"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/controllers/execution/workstatus"
	"github.com/karmada-toolkit/karmada/pkg/member/access"
)

// workState is what is kept of a Work between two reconciliations. Only the worker that
// reconciles the Work uses it, except where noted.
type workState struct {
	uid types.UID
	// generation is that of the manifests of objects, and digest their hash.
	generation int64
	digest     uint64
	objects    []*object
	// removed are objects of earlier manifests that are still to be deleted.
	removed []*object

	// finalized reports that the finalizer was removed, and leaving is when an agent first observed the deletion.
	finalized bool
	leaving   time.Time
	// failing reports that the last attempt failed. Read by others.
	failing atomic.Bool
	// deleted has the UIDs of the objects whose deletion was observed. Written by others.
	deleted sync.Map

	written status.Written[*workv1alpha1.WorkStatus]
	// dirtySince is when the status first differed from what is written.
	dirtySince time.Time
	// published are the failures of the interpreter that were published, by reason and
	// object.
	published map[string]string
}

// object is one manifest of a Work.
type object struct {
	gvk schema.GroupVersionKind
	key types.NamespacedName
	gvr schema.GroupVersionResource
	// informer is nil until the resource of the kind is known.
	informer *member.Informer
	applied  apply.Applied
	observed workstatus.Observed
	// incarnation is that of the member for which applied and observed were recorded; 0 before the first.
	incarnation uint64
}

// contested returns a line for each field that another field manager in the member changes again after each write, and for each
// node port instead of which the member has another one.
func (s *workState) contested() (fields, ports []string) {
	for _, o := range s.objects {
		name := o.gvk.Kind + " " + strings.TrimPrefix(o.key.String(), "/")
		for _, f := range o.applied.Contested() {
			fields = append(fields, fmt.Sprintf("%s of %s by %q", f.Path, name, f.Manager))
		}
		for _, line := range o.applied.NodePorts() {
			ports = append(ports, line+" ("+name+")")
		}
	}
	return fields, ports
}

// works are the states of the Works of one cluster.
type works struct {
	hasher    member.Hasher
	informers *member.Informers

	mu     sync.Mutex
	byName map[string]*workState
}

func (w *works) len() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.byName)
}

// get returns the state of a Work. That of an earlier Work of the same name is dropped.
func (w *works) get(name string, uid types.UID) *workState {
	w.mu.Lock()
	defer w.mu.Unlock()
	s := w.byName[name]
	if s != nil && s.uid == uid {
		return s
	}
	if s != nil {
		w.release(name, s)
	}
	s = &workState{uid: uid}
	w.byName[name] = s
	return s
}

// forget drops the state of a Work.
func (w *works) forget(name string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if s := w.byName[name]; s != nil {
		w.release(name, s)
		delete(w.byName, name)
	}
}

// release drops the objects of a Work and ends their use of informers.
func (w *works) release(name string, s *workState) {
	for _, o := range s.objects {
		if o.informer != nil {
			w.informers.Release(o.informer, name)
		}
	}
	s.objects = nil
}

// deleted records that the deletion of an object of a Work was observed, so that the
// object is not taken for one that was not observed yet.
func (w *works) deleted(name string, uid types.UID) {
	w.mu.Lock()
	s := w.byName[name]
	w.mu.Unlock()
	if s != nil {
		s.deleted.Store(uid, true)
	}
}

// names returns the names of all Works.
func (w *works) names() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Collect(maps.Keys(w.byName))
}

// failing returns the Works whose last attempt failed.
func (w *works) failing() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	var out []string
	for name, s := range w.byName {
		if s.failing.Load() {
			out = append(out, name)
		}
	}
	return out
}

// load sets the objects to the manifests of the Work. What is known of an object that
// has another manifest now is kept.
func (w *works) load(work *workv1alpha1.Work, s *workState) error {
	digest := w.hasher.Manifests(work.Spec.Workload.Manifests)
	if s.generation == work.Generation && s.digest == digest && s.objects != nil {
		return nil
	}
	objects := make([]*object, len(work.Spec.Workload.Manifests))
	for i := range objects {
		o, err := identify(work.Spec.Workload.Manifests[i].Raw)
		if err != nil {
			return fmt.Errorf("reading manifest %d of work %s/%s: %w", i, work.Namespace, work.Name, err)
		}
		objects[i] = o
	}
	for _, o := range objects {
		// It may have failed before because it exists.
		o.applied = apply.Unknown(meta.IsStatusConditionFalse(work.Status.Conditions, workv1alpha1.WorkApplied))
		for _, old := range s.objects {
			if old.gvk == o.gvk && old.key == o.key {
				o.applied, o.observed, o.incarnation = old.applied.Outdated(), old.observed, old.incarnation
				o.gvr, o.informer, old.informer = old.gvr, old.informer, nil
			}
		}
	}
	s.removed = removed(work, s, objects)
	w.release(work.Name, s)
	s.objects, s.generation, s.digest = objects, work.Generation, digest
	return nil
}

// removed returns the objects that a Work had, as far as is known or listed in its status, and that are not among its objects any more.
// Another version of a kind is the same object.
func removed(work *workv1alpha1.Work, s *workState, objects []*object) []*object {
	had := slices.Concat(s.removed, s.objects)
	for i := range work.Status.ManifestStatuses {
		id := &work.Status.ManifestStatuses[i].Identifier
		had = append(had, &object{
			gvk: schema.GroupVersionKind{Group: id.Group, Version: id.Version, Kind: id.Kind}, key: types.NamespacedName{Namespace: id.Namespace, Name: id.Name},
		})
	}
	var out []*object
	for _, o := range had {
		same := func(other *object) bool { return other.gvk.GroupKind() == o.gvk.GroupKind() && other.key == o.key }
		if !slices.ContainsFunc(objects, same) && !slices.ContainsFunc(out, same) {
			out = append(out, &object{gvk: o.gvk, key: o.key})
		}
	}
	return out
}

// resolve finds the resource of the kind of an object and acquires its informer. It drops
// what is known of the object if the member was restored since.
func (w *works) resolve(mapper mapper, work string, o *object) error {
	if now := mapper.Incarnation().Number; o.incarnation < now {
		if o.incarnation > 0 {
			o.applied, o.observed = apply.Unknown(true), o.observed.Outdated()
		}
		o.incarnation = now
	}
	if o.informer != nil {
		return nil
	}
	mapping, err := mapper.Mapping(o.gvk)
	if err != nil {
		return fmt.Errorf("finding the resource of %s: %w", o.gvk, err)
	}
	o.gvr = mapping.Resource
	o.informer = w.informers.Acquire(o.gvr, o.gvk, work)
	return nil
}

// mapper returns the resources of kinds in a member.
type mapper interface {
	Mapping(gvk schema.GroupVersionKind) (*meta.RESTMapping, error)
	Incarnation() access.Incarnation
}

func identify(raw []byte) (*object, error) {
	var m metav1.PartialObjectMetadata
	if err := json.Unmarshal(raw, &m); err != nil {
		return nil, fmt.Errorf("decoding: %w", err)
	}
	gv, err := schema.ParseGroupVersion(m.APIVersion)
	if err != nil {
		return nil, fmt.Errorf("decoding: %w", err)
	}
	return &object{gvk: gv.WithKind(m.Kind), key: types.NamespacedName{Namespace: m.Namespace, Name: m.Name}}, nil
}

// statusObjects returns the objects as they are in the status of the Work.
func (s *workState) statusObjects() []workstatus.Object {
	out := make([]workstatus.Object, len(s.objects))
	for i, o := range s.objects {
		out[i] = workstatus.Object{GVK: o.gvk, Key: o.key, Observed: o.observed}
	}
	return out
}

// isNews reports whether a failure of an object has another message than the one that
// was published last.
func (s *workState) isNews(reason, object, message string) bool {
	key := reason + object
	if s.published[key] == message {
		return false
	}
	if s.published == nil {
		s.published = map[string]string{}
	}
	s.published[key] = message
	return true
}

// ruleRevisions count, by kind, the changes of the rules of the interpreter. An object
// that was applied or observed with another revision is so again.
type ruleRevisions struct {
	byKind sync.Map // of *atomic.Uint64 by schema.GroupVersionKind
}

// of returns the revision of the rules of a kind.
func (r *ruleRevisions) of(gvk schema.GroupVersionKind) uint64 {
	n, ok := r.byKind.Load(gvk)
	if !ok {
		n, _ = r.byKind.LoadOrStore(gvk, new(atomic.Uint64))
	}
	count, _ := n.(*atomic.Uint64)
	return count.Load()
}

// advance begins a new revision for the affected kinds.
func (r *ruleRevisions) advance(affects func(schema.GroupVersionKind) bool) {
	r.byKind.Range(func(key, n any) bool {
		gvk, ok1 := key.(schema.GroupVersionKind)
		count, ok2 := n.(*atomic.Uint64)
		if ok1 && ok2 && affects(gvk) {
			count.Add(1)
		}
		return true
	})
}

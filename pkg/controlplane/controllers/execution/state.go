package execution

import (
	"encoding/json"
	"fmt"
	"hash/maphash"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/resourceversion"

	workv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha1"
)

// state is what is remembered of a Work between two looks at it. Only the worker
// that handles the Work uses it, but for the fields that say otherwise.
type state struct {
	uid types.UID
	// generation is that of the manifests in objects, and digest their hash.
	generation int64
	digest     uint64
	objects    []*object

	// finalized says that the Work, which is being deleted, was let go.
	finalized bool
	// failing says that the last attempt failed. Others read it.
	failing atomic.Bool
	// reported are the messages about status that were told to the user.
	reported map[string]string

	// written is the status as it was written last, when the cache may not show it
	// yet.
	written        *workv1alpha1.WorkStatus
	writtenVersion string
	writtenAt      time.Time
	// dirtySince is when the status first differed from what is written.
	dirtySince time.Time

	mu sync.Mutex
	// gone are the objects that were seen to be deleted. Others write it.
	gone map[types.UID]bool
}

// object is one manifest of a Work and what is known of it in the member.
type object struct {
	gvk  schema.GroupVersionKind
	gvr  schema.GroupVersionResource
	key  types.NamespacedName
	kind *kind // nil until the type is known

	// exists says that the object is in the member, though not as wanted.
	exists bool
	// applied says that the member had the object as this generation of the Work
	// wants it; uid, version and hash are that of the object then.
	applied   bool
	uid       types.UID
	version   string
	hash      uint64
	appliedAt time.Time
	// response is the object as the member returned it, until it is observed.
	response *copied

	// taught is the edition of the rules by which the object was applied.
	taught uint64

	// seen is the version that status and health are from, and learned the edition
	// of the rules.
	seen    string
	learned uint64
	status  *runtime.RawExtension
	health  workv1alpha1.ResourceHealth
	// trouble is why status or health could not be found out.
	trouble trouble
}

// wasGone says whether the object with the uid was seen to be deleted.
func (s *state) wasGone(uid types.UID) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.gone[uid]
}

// buried forgets deletions once there is a new object.
func (s *state) buried(uid types.UID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.gone, uid)
}

// load makes the objects those of the Work's manifests. What is known of an
// object that stays is kept.
func (r *runner) load(work *workv1alpha1.Work, s *state) error {
	digest := r.c.digest(work.Spec.Workload.Manifests)
	if s.generation == work.Generation && s.digest == digest && s.objects != nil {
		return nil
	}
	objects := make([]*object, len(work.Spec.Workload.Manifests))
	for i := range work.Spec.Workload.Manifests {
		o, err := identify(work.Spec.Workload.Manifests[i].Raw)
		if err != nil {
			return fmt.Errorf("reading manifest %d of work %s/%s: %w", i, work.Namespace, work.Name, err)
		}
		// What failed before may have failed because it is there.
		o.exists = meta.IsStatusConditionFalse(work.Status.Conditions, workv1alpha1.WorkApplied)
		for _, old := range s.objects {
			if old.gvk == o.gvk && old.key == o.key {
				o.uid, o.version, o.hash, o.exists = old.uid, old.version, old.hash, old.exists
				o.seen, o.learned, o.status, o.health, o.trouble = old.seen, old.learned, old.status, old.health, old.trouble
				o.gvr, o.kind, old.kind = old.gvr, old.kind, nil
			}
		}
		objects[i] = o
	}
	r.mu.Lock()
	r.releaseLocked(work.Name, s)
	r.mu.Unlock()
	s.objects, s.generation, s.digest = objects, work.Generation, digest
	return nil
}

// digest returns the hash of manifests.
func (c *Controller) digest(manifests []workv1alpha1.Manifest) uint64 {
	var h maphash.Hash
	h.SetSeed(c.seed)
	for i := range manifests {
		_, _ = h.Write(manifests[i].Raw)
		_ = h.WriteByte(0)
	}
	return h.Sum64()
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

// memberMapper tells how a kind is reached.
type memberMapper interface {
	Mapping(gvk schema.GroupVersionKind) (*meta.RESTMapping, error)
}

// resolve finds out how the object is reached and follows its type.
func (r *runner) resolve(member memberMapper, work string, o *object) error {
	if o.kind != nil {
		return nil
	}
	mapping, err := member.Mapping(o.gvk)
	if err != nil {
		return fmt.Errorf("finding the resource of %s: %w", o.gvk, err)
	}
	o.gvr = mapping.Resource
	o.kind = r.follow(o.gvr, o.gvk, work)
	return nil
}

// unmarshal decodes JSON with integers as int64.
func unmarshal(data []byte, into *any) error {
	return utiljson.Unmarshal(data, into)
}

// newer says whether resource version a is later than b.
func newer(a, b string) bool {
	if order, err := resourceversion.CompareResourceVersion(a, b); err == nil {
		return order > 0
	}
	return a != b
}

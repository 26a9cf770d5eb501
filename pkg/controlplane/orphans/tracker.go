package orphans

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
	"github.com/karmada-toolkit/karmada/pkg/apis/names"
	workv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha1"
)

// Grace is the time that an object must be without a Work before it is reported: the Works of a cluster that joins, and
// those that a control plane deletes, change at about the same time as the objects.
const Grace = 10 * time.Second

// Reasons of the condition, and of the event about a deletion.
const (
	reasonFound   = "WorksMissing"
	reasonNone    = "NoOrphans"
	ReasonDeleted = "OrphansDeleted"
)

// Search returns the objects in a member whose Works are not in its execution namespace. A complete search lists all types
// that the member serves, any other those of the Works and of kinds.
func Search(ctx context.Context, controlPlane client.Reader, member API, cluster string, complete bool, kinds ...schema.GroupKind) ([]Object, error) {
	namespace := names.ExecutionNamespace(cluster)
	works := &workv1alpha1.WorkList{}
	if err := controlPlane.List(ctx, works, client.InNamespace(namespace), client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing works: %w", err)
	}
	known := make(map[string]bool, len(works.Items))
	for i := range works.Items {
		known[works.Items[i].Name] = true
	}
	if complete {
		return Find(ctx, member, namespace, known, nil)
	}
	return Find(ctx, member, namespace, known, kindsOf(works.Items).Insert(kinds...))
}

// kindsOf returns the kinds of the objects of Works.
func kindsOf(works []workv1alpha1.Work) sets.Set[schema.GroupKind] {
	out := sets.Set[schema.GroupKind]{}
	for i := range works {
		for _, m := range works[i].Spec.Workload.Manifests {
			var kind runtime.TypeMeta
			if json.Unmarshal(m.Raw, &kind) == nil {
				out.Insert(schema.FromAPIVersionAndKind(kind.APIVersion, kind.Kind).GroupKind())
			}
		}
	}
	return out
}

// Tracker records the results of the searches of one cluster. It is safe for concurrent use.
type Tracker struct {
	clock clock.PassiveClock

	mu sync.Mutex
	// since is when an object was first found.
	since map[types.UID]time.Time
	found []Object
	// kinds are those of the objects that were found last.
	kinds []schema.GroupKind
	// message is the one that was published last.
	message string
	// complete is set after a search of all types, until one is needed again, and completeAt is when the next may start;
	// zero if none is planned.
	complete   bool
	completeAt time.Time
	// searched is set after a search in which no object was within its grace.
	searched bool
	// member is the one that was searched last.
	member API
	// restored is nil until the cluster was restored from an older copy.
	restored *restored
}

// NewTracker returns a Tracker of a cluster that was not searched yet.
func NewTracker(c clock.PassiveClock) *Tracker { return &Tracker{clock: c} }

// Restart makes the next search a complete one: objects may have lost Works of types that no other Work has.
func (t *Tracker) Restart() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.complete = false
}

// NextComplete returns how long a complete search has to wait, and reports whether one is needed. plan returns when it
// may start; it is called once for each.
func (t *Tracker) NextComplete(plan func(now time.Time) time.Time) (wait time.Duration, needed bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.complete {
		return 0, false
	}
	now := t.clock.Now()
	if t.completeAt.IsZero() {
		t.completeAt = plan(now)
	}
	return max(0, t.completeAt.Sub(now)), true
}

// Searching records that a complete search starts. Restart undoes that if it fails.
func (t *Tracker) Searching() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.complete, t.completeAt = true, time.Time{}
}

// Kinds returns the kinds of the objects without a Work that were found last.
func (t *Tracker) Kinds() []schema.GroupKind {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.kinds
}

// Observe returns the objects that have been found for longer than Grace, and reports whether there are others.
func (t *Tracker) Observe(objects []Object) (found []Object, fresh bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := t.clock.Now()
	since := make(map[types.UID]time.Time, len(objects))
	kinds := sets.Set[schema.GroupKind]{}
	for _, o := range objects {
		first, ok := t.since[o.uid]
		if !ok {
			first = now
		}
		since[o.uid] = first
		kinds.Insert(schema.GroupKind{Group: o.gvr.Group, Kind: o.kind})
		if now.Sub(first) < Grace {
			fresh = true
			continue
		}
		found = append(found, o)
	}
	t.since, t.kinds = since, kinds.UnsortedList()
	return found, fresh
}

// Publish replaces the objects in the condition, and reports whether there are some and they differ from the previous
// ones. fresh is what Observe returned.
func (t *Tracker) Publish(cluster string, found []Object, fresh bool) (changed bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.found, t.searched = found, t.searched || len(found) > 0 || !fresh
	message := Message(cluster, found)
	changed = message != t.message && len(found) > 0
	t.message = message
	return changed
}

// Conditions returns the conditions OrphanedObjects and StoreRestored of the cluster.
func (t *Tracker) Conditions(cluster *clusterv1alpha1.Cluster) []metav1.Condition {
	t.mu.Lock()
	defer t.mu.Unlock()
	return append(t.orphanedCondition(cluster), t.restoredCondition(cluster)...)
}

// orphanedCondition returns the condition OrphanedObjects: none until there were such objects, and the previous one until
// a search has ended.
func (t *Tracker) orphanedCondition(cluster *clusterv1alpha1.Cluster) []metav1.Condition {
	out := metav1.Condition{Type: clusterv1alpha1.ClusterConditionOrphanedObjects, Status: metav1.ConditionFalse, Reason: reasonNone, Message: "every object has its work"}
	before := meta.FindStatusCondition(cluster.Status.Conditions, out.Type)
	switch {
	case len(t.found) > 0:
		out.Status, out.Reason, out.Message = metav1.ConditionTrue, reasonFound, t.message
	case before == nil:
		return nil
	case !t.searched:
		out = *before
	}
	return []metav1.Condition{out}
}

package orphans

import (
	"context"
	"fmt"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
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

// Search returns the objects in a member whose Works are not in its execution namespace.
func Search(ctx context.Context, controlPlane client.Reader, member API, cluster string) ([]Object, error) {
	namespace := names.ExecutionNamespace(cluster)
	works := &workv1alpha1.WorkList{}
	if err := controlPlane.List(ctx, works, client.InNamespace(namespace), client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing works: %w", err)
	}
	known := make(map[string]bool, len(works.Items))
	for i := range works.Items {
		known[works.Items[i].Name] = true
	}
	return Find(ctx, member, namespace, known)
}

// Tracker records the results of the searches of one cluster. It is safe for concurrent use.
type Tracker struct {
	clock clock.PassiveClock

	mu sync.Mutex
	// since is when an object was first found.
	since map[types.UID]time.Time
	found []Object
	// message is the one that was published last.
	message string
	// searched is set after a search in which no object was within its grace.
	searched bool
	// restored is nil until the cluster was restored from an older copy.
	restored *restored
}

// NewTracker returns a Tracker of a cluster that was not searched yet.
func NewTracker(c clock.PassiveClock) *Tracker { return &Tracker{clock: c} }

// Observe returns the objects that have been found for longer than Grace, and reports whether there are others.
func (t *Tracker) Observe(objects []Object) (found []Object, fresh bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := t.clock.Now()
	since := make(map[types.UID]time.Time, len(objects))
	for _, o := range objects {
		first, ok := t.since[o.uid]
		if !ok {
			first = now
		}
		since[o.uid] = first
		if now.Sub(first) < Grace {
			fresh = true
			continue
		}
		found = append(found, o)
	}
	t.since = since
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

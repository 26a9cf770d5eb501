package orphans

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/karmada-toolkit/karmada/internal/plaintext"
	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
)

const (
	// restoredFor is how long the condition StoreRestored is True.
	restoredFor = 10 * time.Minute
	// maxVersion is the limit of a resource version in a message, in bytes.
	maxVersion = 64
)

// Reasons of the condition StoreRestored.
const (
	reasonWentBack = "OlderVersion"
	reasonCompared = "ObjectsCompared"
)

// restored is the last restore of a cluster from an older copy of its store.
type restored struct {
	at       time.Time
	from, to string
}

func (r restored) message() string {
	return fmt.Sprintf("the cluster has data of an older copy: its resource version was %s and is %s; everything that was known of it was dropped, "+
		"and all objects of the control plane are compared with it again", plaintext.Line(r.from, maxVersion), plaintext.Line(r.to, maxVersion))
}

// Open records the member that is searched. If the cluster was restored from an older copy of its store since the last one, it may have objects
// again whose Works were deleted since: the next search is complete, and message is the text of an event. closed is called when the member is
// closed; it must not block.
func (t *Tracker) Open(member API, closed func()) (message string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.member == member {
		return ""
	}
	before := uint64(1)
	if t.member != nil {
		before = t.member.Incarnation().Number
	}
	t.member = member
	member.OnClose(closed)
	i := member.Incarnation()
	if i.Number <= before {
		return ""
	}
	t.complete = false
	t.restored = &restored{at: t.clock.Now(), from: i.From, to: i.To}
	return t.restored.message()
}

// restoredCondition returns the condition StoreRestored: none until the cluster was restored.
func (t *Tracker) restoredCondition(cluster *clusterv1alpha1.Cluster) []metav1.Condition {
	out := metav1.Condition{Type: clusterv1alpha1.ClusterConditionStoreRestored, Status: metav1.ConditionTrue, Reason: reasonWentBack}
	before := meta.FindStatusCondition(cluster.Status.Conditions, out.Type)
	at := time.Time{}
	switch {
	case t.restored != nil:
		at, out.Message = t.restored.at, t.restored.message()
	case before == nil:
		return nil
	case before.Status != metav1.ConditionTrue:
		return []metav1.Condition{*before}
	default: // an earlier process recorded it
		at, out = before.LastTransitionTime.Time, *before
	}
	if t.clock.Now().Sub(at) > restoredFor {
		out.Status, out.Reason = metav1.ConditionFalse, reasonCompared
		out.Message = "the cluster had data of an older copy at " + at.UTC().Format(time.RFC3339) + "; all objects were compared again"
	}
	return []metav1.Condition{out}
}

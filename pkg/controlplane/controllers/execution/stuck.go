package execution

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/karmada-toolkit/karmada/internal/plaintext"
	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
)

// maxStuckText is the limit of the text about one object in the condition ObjectsStuck, in bytes.
const maxStuckText = 512

// The kinds of problems that Stuck counts.
const (
	stuckRemoval = "%d of the objects that leave the cluster stay, such as: %s"
	stuckApply   = "%d of the objects that no binding has are not applied, such as: %s"
)

// Stuck are the objects that leave clusters and stay there, and those that no binding has and that are not applied. The zero value is empty.
type Stuck struct {
	mu sync.Mutex
	// byWork are texts by Work, by kind, by cluster.
	byWork map[string]map[string]map[string]string
}

// set records why the objects of a Work are stuck; with an empty text, that they are not.
func (s *Stuck) set(cluster, kind, work, text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if text == "" {
		delete(s.byWork[cluster][kind], work)
		return
	}
	if s.byWork == nil {
		s.byWork = map[string]map[string]map[string]string{}
	}
	if s.byWork[cluster] == nil {
		s.byWork[cluster] = map[string]map[string]string{stuckRemoval: {}, stuckApply: {}}
	}
	s.byWork[cluster][kind][work] = plaintext.Line(text, maxStuckText)
}

// clear forgets a Work, or all of a cluster if the Work is "".
func (s *Stuck) clear(cluster, work string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if work == "" {
		delete(s.byWork, cluster)
	}
	for _, works := range s.byWork[cluster] {
		delete(works, work)
	}
}

// Conditions returns the condition ObjectsStuck of a cluster: none until there were such objects.
func (s *Stuck) Conditions(cluster *clusterv1alpha1.Cluster) []metav1.Condition {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := metav1.Condition{Type: clusterv1alpha1.ClusterConditionObjectsStuck, Status: metav1.ConditionFalse, Reason: "None", Message: "no object is stuck"}
	var messages []string
	for _, kind := range []string{stuckRemoval, stuckApply} {
		if works := s.byWork[cluster.Name][kind]; len(works) > 0 {
			messages = append(messages, fmt.Sprintf(kind, len(works), works[slices.Min(slices.Collect(maps.Keys(works)))]))
		}
	}
	switch {
	case len(messages) > 0:
		out.Status, out.Reason, out.Message = metav1.ConditionTrue, "Found", strings.Join(messages, "; ")
	case meta.FindStatusCondition(cluster.Status.Conditions, out.Type) == nil:
		return nil
	}
	return []metav1.Condition{out}
}

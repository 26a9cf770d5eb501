package execution

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/tools/record"
)

// successDelay is the time for which the clusters of one event are collected: the members apply the same change within
// less than that, unless one is slow.
const successDelay = 2 * time.Second

// appliedObject is an object that was applied, and its template.
type appliedObject struct {
	template corev1.ObjectReference
	key      types.NamespacedName
}

// successes records that objects were applied: one event per object that names all clusters within a delay.
type successes struct {
	recorder record.EventRecorder
	// delay is the time before the event; with 0 every cluster gets an event at once.
	delay time.Duration

	mu      sync.Mutex
	pending map[appliedObject]sets.Set[string]
}

func newSuccesses(recorder record.EventRecorder, delay time.Duration) *successes {
	return &successes{recorder: recorder, delay: delay, pending: map[appliedObject]sets.Set[string]{}}
}

// add records that an object was applied in a cluster.
func (s *successes) add(o appliedObject, cluster string) {
	if s.delay <= 0 {
		s.record(o, cluster)
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	clusters, ok := s.pending[o]
	if !ok {
		clusters = sets.New[string]()
		s.pending[o] = clusters
		time.AfterFunc(s.delay, func() { s.flush(o) })
	}
	clusters.Insert(cluster)
}

func (s *successes) flush(o appliedObject) {
	s.mu.Lock()
	clusters := s.pending[o].UnsortedList()
	delete(s.pending, o)
	s.mu.Unlock()
	slices.Sort(clusters)
	s.record(o, strings.Join(clusters, ", "))
}

func (s *successes) record(o appliedObject, clusters string) {
	s.recorder.Event(&o.template, corev1.EventTypeNormal, reasonSyncSucceed, fmt.Sprintf("Successfully applied resource(%s) to cluster %s", o.key, clusters))
}

package execution

import (
	"maps"
	"slices"
	"sync"
)

// runners are the runners of the clusters. It is safe for concurrent use.
type runners struct {
	mu        sync.Mutex
	byCluster map[string]*runner
}

// get returns the runner of a cluster, or nil.
func (r *runners) get(cluster string) *runner {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.byCluster[cluster]
}

// getOrAdd returns the runner of a cluster. If there is none, it adds the one that start
// returns.
func (r *runners) getOrAdd(cluster string, start func() *runner) *runner {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.byCluster[cluster] == nil {
		if r.byCluster == nil {
			r.byCluster = map[string]*runner{}
		}
		r.byCluster[cluster] = start()
	}
	return r.byCluster[cluster]
}

// all returns the runners, in no order.
func (r *runners) all() []*runner {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Collect(maps.Values(r.byCluster))
}

// remove stops a runner, and reports whether it was still the one of its cluster: that of a later cluster of this name stays.
func (r *runners) remove(old *runner) bool {
	r.mu.Lock()
	current := r.byCluster[old.cluster] == old
	if current {
		delete(r.byCluster, old.cluster)
	}
	r.mu.Unlock()
	if current {
		old.stop()
	}
	return current
}

// stop stops all runners.
func (r *runners) stop() {
	for _, runner := range r.all() {
		r.remove(runner)
	}
}

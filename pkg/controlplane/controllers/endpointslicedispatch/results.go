package endpointslicedispatch

import (
	"maps"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/types"
)

// results are the failures of the slices, for the condition about all of them.
type results struct {
	mu       sync.Mutex
	failures map[types.NamespacedName]map[types.NamespacedName]string // Service, Work
}

func newResults() *results {
	return &results{failures: map[types.NamespacedName]map[types.NamespacedName]string{}}
}

// set stores the failure of the slice of a Work; an empty one is a success.
func (r *results) set(service, work types.NamespacedName, failure string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	of := r.failures[service]
	switch {
	case failure == "":
		delete(of, work)
	case of == nil:
		r.failures[service] = map[types.NamespacedName]string{work: failure}
	default:
		of[work] = failure
	}
	if len(of) == 0 && failure == "" {
		delete(r.failures, service)
	}
}

// forget removes a Work.
func (r *results) forget(work types.NamespacedName) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for service, of := range r.failures {
		if delete(of, work); len(of) == 0 {
			delete(r.failures, service)
		}
	}
}

// of returns the failures of a Service, in a fixed order.
func (r *results) of(service types.NamespacedName) []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Compact(slices.Sorted(maps.Values(r.failures[service])))
}

package endpointslicedispatch

import (
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/types"
)

// results are the failures of the slices, for the condition about all of them.
type results struct {
	mu       sync.Mutex
	failures map[types.NamespacedName]map[types.NamespacedName]string // Service, Work
	writing  map[types.NamespacedName]*sync.Mutex
}

func newResults() *results {
	return &results{failures: map[types.NamespacedName]map[types.NamespacedName]string{}, writing: map[types.NamespacedName]*sync.Mutex{}}
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

// locked calls write with the failures of a Service, for one caller at a time.
func (r *results) locked(service types.NamespacedName, write func(failures []string) error) error {
	r.mu.Lock()
	lock := r.writing[service]
	if lock == nil {
		lock = &sync.Mutex{}
		r.writing[service] = lock
	}
	r.mu.Unlock()
	lock.Lock()
	defer lock.Unlock()
	r.mu.Lock()
	var failures []string
	for _, failure := range r.failures[service] {
		failures = append(failures, failure)
	}
	r.mu.Unlock()
	slices.Sort(failures)
	return write(slices.Compact(failures))
}

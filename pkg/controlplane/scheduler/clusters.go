package scheduler

import (
	"maps"
	"slices"
	"sync"

	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
	"github.com/karmada-toolkit/karmada/pkg/domain/schedule/framework"
)

// clusters holds the facts about the clusters and makes snapshots of them.
type clusters struct {
	mu       sync.Mutex
	facts    framework.Facts
	byName   map[string]*framework.Cluster
	snapshot *framework.Snapshot
}

// set replaces a cluster and returns the facts before, or nil, and now.
func (c *clusters) set(object *clusterv1alpha1.Cluster) (before, now *framework.Cluster) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.byName == nil {
		c.byName = map[string]*framework.Cluster{}
	}
	before, now = c.byName[object.Name], c.facts.Cluster(object)
	c.byName[object.Name] = now
	c.snapshot = nil
	return before, now
}

func (c *clusters) remove(name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.byName, name)
	c.snapshot = nil
}

// Snapshot returns the clusters as they are now.
func (c *clusters) Snapshot() *framework.Snapshot {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.snapshot == nil {
		c.snapshot = framework.NewSnapshot(slices.Collect(maps.Values(c.byName)))
	}
	return c.snapshot
}

// marks collects the clusters that have got more room, so that the bindings
// that lack it are enqueued once for all of them.
type marks struct {
	mu  sync.Mutex
	set map[string]*framework.Cluster
}

func (m *marks) add(c *framework.Cluster) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.set == nil {
		m.set = map[string]*framework.Cluster{}
	}
	m.set[c.Name()] = c
}

func (m *marks) take() map[string]*framework.Cluster {
	m.mu.Lock()
	defer m.mu.Unlock()
	set := m.set
	m.set = nil
	return set
}

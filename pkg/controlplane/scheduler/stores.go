package scheduler

import (
	"strconv"
	"sync"

	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
	workv1alpha2 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha2"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/scheduler/framework"
)

// clusters holds the facts about the clusters and makes snapshots of them.
type clusters struct {
	mu       sync.Mutex
	facts    framework.Facts
	byName   map[string]*framework.Cluster
	snapshot *framework.Snapshot
}

// set takes a cluster as it is now and returns the facts before, if it was known,
// and now.
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
		all := make([]*framework.Cluster, 0, len(c.byName))
		for _, cluster := range c.byName {
			all = append(all, cluster)
		}
		c.snapshot = framework.NewSnapshot(all)
	}
	return c.snapshot
}

// known is a binding with its scope.
type known struct {
	workv1alpha2.Binding
	scope *scope
	// owned says whether it is this scheduler's; others count as peers only.
	owned bool
	// echoes are the versions that the scheduler's own last writes made: being told
	// of them is no news.
	echoes [2]string
}

// echo says whether a version is the scheduler's own doing.
func (k known) echo(version string) bool {
	return version != "" && (k.echoes[0] == version || k.echoes[1] == version)
}

// bindings holds the bindings as the informers tell them, or newer ones that the
// scheduler's own writes returned. They are shared and read-only.
type bindings struct {
	// schedulerName says which are this scheduler's.
	schedulerName string

	mu    sync.RWMutex
	byKey map[key]known
}

// set takes a binding unless a newer version is known.
func (b *bindings) set(s *scope, binding workv1alpha2.Binding) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.byKey == nil {
		b.byKey = map[key]known{}
	}
	k := keyOf(binding)
	have, ok := b.byKey[k]
	if ok && older(binding, have.Binding) {
		return
	}
	b.byKey[k] = known{Binding: binding, scope: s, owned: owned(binding, b.schedulerName), echoes: have.echoes}
}

// wrote takes what a write of the scheduler's own returned. With echo, being told
// of this version is no news.
func (b *bindings) wrote(s *scope, binding workv1alpha2.Binding, echo bool) {
	b.set(s, binding)
	if !echo {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if have, ok := b.byKey[keyOf(binding)]; ok {
		have.echoes = [2]string{have.echoes[1], binding.GetResourceVersion()}
		b.byKey[keyOf(binding)] = have
	}
}

// older says whether a is an older version than b.
func older(a, b workv1alpha2.Binding) bool {
	if a.GetUID() != b.GetUID() {
		return false
	}
	x, errX := strconv.ParseUint(a.GetResourceVersion(), 10, 64)
	y, errY := strconv.ParseUint(b.GetResourceVersion(), 10, 64)
	return errX == nil && errY == nil && x < y
}

func (b *bindings) remove(k key) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.byKey, k)
}

func (b *bindings) get(k key) (known, bool) {
	b.mu.RLock()
	defer b.mu.RUnlock()
	found, ok := b.byKey[k]
	return found, ok
}

// each calls a function for every binding, whoever's it is.
func (b *bindings) each(do func(key, known)) {
	b.mu.RLock()
	defer b.mu.RUnlock()
	for k, found := range b.byKey {
		do(k, found)
	}
}

package endpointslicecollect

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"

	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/karmada-toolkit/karmada/pkg/domain/services"
	"github.com/karmada-toolkit/karmada/pkg/member/access"
	"github.com/karmada-toolkit/karmada/pkg/member/follow"
)

const (
	// maxSelected is the number of Services that a selector names. It is part of the URL
	// of each request; with more, the slices of all Services are read and those of others
	// are not stored.
	maxSelected = 100
)

// cluster is the state of one cluster.
type cluster struct {
	name string
	// enqueue enqueues a slice, restart the cluster after restartInterval.
	enqueue func(types.NamespacedName)
	restart func()

	mu        sync.RWMutex
	permitted map[services.Manager]sets.Set[types.NamespacedName]
	// current is the watch that is synced, next the one that replaces it. Each may be nil. outdated reports that next is
	// for other Services than those that are wanted by now.
	current, next *slices
	outdated      bool
}

// slices is a watch of the slices of some Services.
type slices struct {
	member   *access.Member
	services sets.Set[types.NamespacedName]
	stored   *follow.Projection[stored]
	cancel   context.CancelFunc
}

// stored is what is kept of a slice: its JSON without what the member's server sets, or
// nothing for a slice that does not matter.
type stored struct{ raw string }

func newCluster(r *reconciler, name string, permitted map[services.Manager]sets.Set[types.NamespacedName]) *cluster {
	return &cluster{
		name: name, permitted: permitted, enqueue: func(slice types.NamespacedName) { r.slices.Add(sliceKey{name, slice}) },
		restart: func() { r.enqueueCluster(name) },
	}
}

func (c *cluster) permit(permitted map[services.Manager]sets.Set[types.NamespacedName]) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.permitted = permitted
}

func (c *cluster) stop() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, s := range []*slices{c.current, c.next} {
		if s != nil {
			s.cancel()
		}
	}
	c.current, c.next = nil, nil
}

// start watches the slices of Services, unless they are watched already, and calls synced
// when all are known. It reports whether it started a watch or one has not synced yet. A watch that has not synced is not
// replaced, or a stream of changes would delay all of them; the cluster is enqueued when it has.
func (c *cluster) start(ctx context.Context, member *access.Member, wanted sets.Set[types.NamespacedName], synced func(context.Context, *cluster)) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	same := func(s *slices) bool { return s != nil && s.member == member && s.services.Equal(wanted) }
	switch {
	case c.next != nil && c.next.member == member:
		c.outdated = !c.next.services.Equal(wanted)
		return true
	case c.next == nil && same(c.current):
		return false
	}
	if c.next != nil {
		c.next.cancel()
	}
	ctx, cancel := context.WithCancel(ctx)
	s := &slices{member: member, services: wanted, cancel: cancel}
	s.stored = follow.Start(ctx, c.config(s, func() {
		c.mu.Lock()
		current := c.next == s
		if current {
			if c.current != nil {
				c.current.cancel()
			}
			c.current, c.next = s, nil
		}
		outdated := current && c.outdated
		c.mu.Unlock()
		if outdated {
			c.restart()
		}
		if current {
			go synced(ctx, c) // the watch goes on meanwhile
		}
	}))
	c.next, c.outdated = s, false
	closed := member.OnClose(c.restart) // with a member that has the new settings
	context.AfterFunc(ctx, func() { closed() })
	return true
}

// config describes the watch.
func (c *cluster) config(s *slices, synced func()) follow.Config[stored] {
	selector, namespace := selectorOf(s.services)
	return follow.Config[stored]{
		Name:    s.member.Name() + " endpointslices",
		Source:  follow.Objects(s.member, discoveryv1.SchemeGroupVersion.WithResource("endpointslices"), follow.Selection{Namespace: namespace, Labels: selector}),
		Project: follow.From(func(obj *unstructured.Unstructured, _ *stored) (stored, error) { return project(obj, s.services) }),
		Size:    func(s stored) int { return len(s.raw) },
		Changed: func(key types.NamespacedName, old, now *stored) {
			if textOf(old) != textOf(now) {
				c.enqueue(key)
			}
		},
		Synced: synced,
	}
}

func textOf(s *stored) string {
	if s == nil {
		return ""
	}
	return s.raw
}

// selectorOf returns the label selector for the slices of Services, and their namespace
// if there is only one.
func selectorOf(all sets.Set[types.NamespacedName]) (selector, namespace string) {
	names, namespaces := sets.New[string](), sets.New[string]()
	for service := range all {
		names.Insert(service.Name)
		namespaces.Insert(service.Namespace)
	}
	foreign, _ := labels.NewRequirement(discoveryv1.LabelManagedBy, selection.NotIn, []string{services.DispatchedSlice, services.ImportedSlice})
	service, _ := labels.NewRequirement(discoveryv1.LabelServiceName, selection.Exists, nil)
	if names.Len() <= maxSelected {
		// Names of Services are valid values of labels, or they match nothing.
		if in, err := labels.NewRequirement(discoveryv1.LabelServiceName, selection.In, sets.List(names)); err == nil {
			service = in
		}
	}
	if namespaces.Len() == 1 {
		namespace = sets.List(namespaces)[0]
	}
	return labels.NewSelector().Add(*service, *foreign).String(), namespace
}

// project returns what is stored of a slice.
func project(obj *unstructured.Unstructured, wanted sets.Set[types.NamespacedName]) (stored, error) {
	if !wanted.Has(types.NamespacedName{Namespace: obj.GetNamespace(), Name: obj.GetLabels()[discoveryv1.LabelServiceName]}) || !services.Collectible(obj) {
		return stored{}, nil
	}
	obj = follow.Clone(obj)
	metadata, _ := obj.Object["metadata"].(map[string]any)
	for _, key := range []string{"managedFields", "ownerReferences", "resourceVersion", "generation", "creationTimestamp", "selfLink", "finalizers"} {
		delete(metadata, key)
	}
	raw, err := json.Marshal(obj.Object)
	if err != nil {
		return stored{}, fmt.Errorf("encoding the slice: %w", err)
	}
	return stored{string(raw)}, nil
}

// keys returns the slices that matter.
func (c *cluster) keys() []types.NamespacedName {
	c.mu.RLock()
	defer c.mu.RUnlock()
	var out []types.NamespacedName
	if c.current != nil {
		c.current.stored.Each(func(key types.NamespacedName, s *stored) {
			if s.raw != "" {
				out = append(out, key)
			}
		})
	}
	return out
}

// get returns a slice, or nil, whether nil means that it does not exist, and which slices
// are collected.
func (c *cluster) get(key types.NamespacedName) (slice *unstructured.Unstructured, known bool, permitted func(services.Manager, types.NamespacedName) bool) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	allowed := c.permitted
	permitted = func(m services.Manager, service types.NamespacedName) bool { return allowed[m].Has(service) }
	if c.current == nil {
		return nil, false, permitted
	}
	if text := textOf(c.current.stored.Get(key)); text != "" {
		slice = &unstructured.Unstructured{}
		if slice.UnmarshalJSON([]byte(text)) != nil {
			slice = nil
		}
	}
	return slice, c.next == nil, permitted
}

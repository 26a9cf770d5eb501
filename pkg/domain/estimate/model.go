package estimate

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"sync"
	"unique"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	resourcehelper "k8s.io/component-helpers/resource"
)

// maxResources limits the resources whose free amounts are kept for every node. Nodes with more of them count as if
// they did not have the rest.
const maxResources = 256

// Node has the fields of a node that estimates need.
type Node struct {
	Name   string
	Labels map[string]string
	// Taints are those that keep pods away; an unschedulable node has the taint of such nodes.
	Taints      []corev1.Taint
	Allocatable Amounts
}

// NodeOf returns the fields of a node that estimates need.
func NodeOf(n *corev1.Node) Node {
	out := Node{Name: n.Name, Labels: n.Labels, Allocatable: amountsOf(n.Status.Allocatable)}
	for _, t := range n.Spec.Taints {
		if t.Effect == corev1.TaintEffectNoSchedule || t.Effect == corev1.TaintEffectNoExecute {
			out.Taints = append(out.Taints, corev1.Taint{Key: t.Key, Value: t.Value, Effect: t.Effect})
		}
	}
	if n.Spec.Unschedulable {
		out.Taints = append(out.Taints, corev1.Taint{Key: corev1.TaintNodeUnschedulable, Effect: corev1.TaintEffectNoSchedule})
	}
	return out
}

// sameStatic reports whether two states of a node differ in amounts at most.
func (n *Node) sameStatic(other *Node) bool {
	return n.Name == other.Name && maps.Equal(n.Labels, other.Labels) && taintsKey(n.Taints) == taintsKey(other.Taints) &&
		slices.EqualFunc(n.Allocatable, other.Allocatable, func(a, b Amount) bool { return a.Name == b.Name })
}

// taintsKey is equal for equal taints. No part of a valid taint has a character below the blank.
func taintsKey(taints []corev1.Taint) string {
	var b strings.Builder
	for _, t := range taints {
		b.WriteString(t.Key + "\x01" + t.Value + "\x02" + string(t.Effect) + "\x03")
	}
	return b.String()
}

// Pod has the fields of a pod, assigned to a node and not terminated, that estimates need.
type Pod struct {
	Node     string
	Requests Amounts
}

// PodOf returns the fields of a pod that estimates need. It reports false if the pod takes nothing from any node.
func PodOf(p *corev1.Pod) (Pod, bool) {
	if p.Spec.NodeName == "" || p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed {
		return Pod{}, false
	}
	return Pod{Node: unique.Make(p.Spec.NodeName).Value(), Requests: requests(p)}, true
}

// requests returns what a pod takes from its node. Init containers that run beside the others count as those that
// end before: this is the contract of estimators.
func requests(p *corev1.Pod) Amounts {
	copied := corev1.Pod{Spec: p.Spec}
	copied.Spec.InitContainers = slices.Clone(p.Spec.InitContainers)
	for i := range copied.Spec.InitContainers {
		copied.Spec.InitContainers[i].RestartPolicy = nil
	}
	return amountsOf(resourcehelper.PodRequests(&copied, resourcehelper.PodResourcesOptions{}))
}

// Model keeps the free resources of every node. Its zero value is a cluster without nodes. It is safe for concurrent
// use.
type Model struct {
	mu    sync.Mutex
	nodes map[string]*Node
	// usage is what pods take, by the name of the node, which need not exist.
	usage map[string]*usage
	// dirty are the nodes whose free amounts in last are outdated.
	dirty map[string]bool
	// last is the newest snapshot; nil after a change of nodes that concerns more than amounts.
	last *Snapshot
}

// usage is what the pods of a node take.
type usage struct {
	pods      int64
	resources map[corev1.ResourceName]*used
}

// used is the sum of the requests for a resource, and the number of pods that have one.
type used struct {
	sum  total
	pods int64
}

// SetNode adds a node or replaces the node of that name.
func (m *Model) SetNode(n Node) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.nodes == nil {
		m.nodes = map[string]*Node{}
	}
	before := m.nodes[n.Name]
	m.nodes[n.Name] = &n
	if before == nil || !before.sameStatic(&n) {
		m.last = nil
		return
	}
	if !slices.Equal(before.Allocatable, n.Allocatable) {
		m.touch(n.Name)
	}
}

// RemoveNode removes a node.
func (m *Model) RemoveNode(name string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.nodes[name] != nil {
		delete(m.nodes, name)
		m.last = nil
	}
}

// ReplacePod replaces the state of a pod: old is nil for a pod that is new, now for one that was deleted.
func (m *Model) ReplacePod(old, now *Pod) {
	if old != nil && now != nil && old.Node == now.Node && slices.Equal(old.Requests, now.Requests) {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if old != nil {
		m.removePod(old)
		m.touch(old.Node)
	}
	if now != nil {
		m.addPod(now)
		m.touch(now.Node)
	}
}

func (m *Model) addPod(p *Pod) {
	if m.usage == nil {
		m.usage = map[string]*usage{}
	}
	u := m.usage[p.Node]
	if u == nil {
		u = &usage{resources: map[corev1.ResourceName]*used{}}
		m.usage[p.Node] = u
	}
	u.pods++
	for _, a := range p.Requests {
		r := u.resources[a.Name]
		if r == nil {
			r = &used{}
			u.resources[a.Name] = r
		}
		r.sum.add(a.Value)
		r.pods++
	}
}

func (m *Model) removePod(p *Pod) {
	u := m.usage[p.Node]
	if u == nil {
		return
	}
	if u.pods--; u.pods == 0 {
		delete(m.usage, p.Node)
		return
	}
	for _, a := range p.Requests {
		r := u.resources[a.Name]
		if r == nil {
			continue
		}
		r.sum.sub(a.Value)
		if r.pods--; r.pods == 0 {
			delete(u.resources, a.Name)
		}
	}
}

func (m *Model) touch(node string) {
	if m.last == nil || m.nodes[node] == nil {
		return
	}
	if m.dirty == nil {
		m.dirty = map[string]bool{}
	}
	m.dirty[node] = true
}

// Snapshot returns the state of the model. Its cost grows with the nodes that changed since the last one.
func (m *Model) Snapshot() *Snapshot {
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case m.last == nil:
		m.last = m.rebuild()
	case len(m.dirty) > 0:
		next := m.last.clone()
		for name := range m.dirty {
			m.fill(next, next.layout.index[name])
		}
		m.last = next
	}
	clear(m.dirty)
	return m.last
}

func (m *Model) rebuild() *Snapshot {
	l := newLayout(slices.SortedFunc(maps.Values(m.nodes), func(a, b *Node) int { return cmp.Compare(a.Name, b.Name) }))
	s := &Snapshot{layout: l, pods: make([]int64, len(l.nodes)), free: make([][]int64, len(l.resources))}
	for i := range s.free {
		s.free[i] = make([]int64, len(l.nodes))
	}
	for i := range l.nodes {
		m.fill(s, i)
	}
	return s
}

// fill computes the free amounts of a node.
func (m *Model) fill(s *Snapshot, at int) {
	node := m.nodes[s.layout.nodes[at].Name]
	u := m.usage[node.Name]
	if u == nil {
		u = &usage{}
	}
	s.pods[at] = max(node.Allocatable.get(corev1.ResourcePods)-u.pods, 0)
	for _, a := range node.Allocatable {
		column, ok := s.layout.resources[a.Name]
		if !ok {
			continue
		}
		var sum total
		if r := u.resources[a.Name]; r != nil {
			sum = r.sum
		}
		s.free[column][at] = sum.from(a.Value)
	}
}

// layout is what snapshots share until a node comes, goes, or changes in more than amounts.
type layout struct {
	// nodes are sorted by name and have names and labels only; index is the place of each.
	nodes []*corev1.Node
	index map[string]int
	// taints are the different lists of taints, class the one of each node.
	taints [][]corev1.Taint
	class  []int32
	// resources are the columns of the resources.
	resources map[corev1.ResourceName]int
}

func newLayout(nodes []*Node) *layout {
	l := &layout{
		nodes: make([]*corev1.Node, len(nodes)), index: make(map[string]int, len(nodes)), class: make([]int32, len(nodes)),
		resources: map[corev1.ResourceName]int{},
	}
	classes := map[string]int32{}
	for i, n := range nodes {
		l.nodes[i] = &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: n.Name, Labels: n.Labels}}
		l.index[n.Name] = i
		key := taintsKey(n.Taints)
		class, ok := classes[key]
		if !ok {
			class = int32(len(l.taints))
			classes[key] = class
			l.taints = append(l.taints, n.Taints)
		}
		l.class[i] = class
		for _, a := range n.Allocatable {
			if _, known := l.resources[a.Name]; !known && a.Name != corev1.ResourcePods && len(l.resources) < maxResources {
				l.resources[a.Name] = len(l.resources)
			}
		}
	}
	return l
}

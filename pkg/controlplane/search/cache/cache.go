// Package cache caches the objects of member clusters that ResourceRegistries select: one store for each kind of each
// cluster.
package cache

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/clock"

	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
	searchv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/search/v1alpha1"
	"github.com/karmada-toolkit/karmada/pkg/domain/search"
	"github.com/karmada-toolkit/karmada/pkg/member/access"
	"github.com/karmada-toolkit/karmada/pkg/member/follow"
)

// Deps are the dependencies and options of Caches.
type Deps struct {
	// Members opens a cluster.
	Members func(ctx context.Context, cluster *clusterv1alpha1.Cluster) (*access.Member, error)
	// LostGrace is how long the objects of a cluster that is not Ready are kept. Default: 5 min.
	LostGrace time.Duration
	// MemoryLimit is how much all objects may take together, in bytes. A kind of a cluster that exceeds it is not cached.
	// Default: 0, no limit.
	MemoryLimit int64
	// Clock defaults to the real one.
	Clock clock.Clock
}

// defaultLostGrace is the default of Deps.LostGrace.
const defaultLostGrace = 5 * time.Minute

// Caches are the caches of all clusters. They are safe for concurrent use.
type Caches struct {
	deps   Deps
	codec  codec
	budget *follow.Budget
	// changes are told to watches when stores begin, are complete, or end.
	changes broadcast

	mu       sync.RWMutex
	clusters map[string]*cluster
	// named are the kinds that registries select: nil before they are known.
	named map[schema.GroupVersionKind]bool
	// ended reports that the process ends.
	ended atomic.Bool
}

// New returns empty caches.
func New(d Deps) *Caches {
	d.LostGrace = cmp.Or(d.LostGrace, defaultLostGrace)
	d.Clock = cmp.Or[clock.Clock](d.Clock, clock.RealClock{})
	return &Caches{deps: d, budget: follow.NewBudget(int(d.MemoryLimit)), clusters: map[string]*cluster{}}
}

// Follow makes the caches those that registries select. It does not wait for clusters. The watches end with ctx.
func (c *Caches) Follow(ctx context.Context, registries []*searchv1alpha1.ResourceRegistry, clusters []*clusterv1alpha1.Cluster) {
	want := map[string]map[schema.GroupVersionKind]search.Namespaces{}
	for source, namespaces := range search.Want(registries, clusters) {
		if want[source.Cluster] == nil {
			want[source.Cluster] = map[schema.GroupVersionKind]search.Namespaces{}
		}
		want[source.Cluster][source.Kind] = namespaces
	}
	named := map[schema.GroupVersionKind]bool{}
	for _, r := range registries {
		for kind := range search.Kinds(r) {
			named[kind] = true
		}
	}
	var ended []*cluster
	c.mu.Lock()
	c.named = named
	present := map[string]*clusterv1alpha1.Cluster{}
	for _, object := range clusters {
		present[object.Name] = object
	}
	for name, k := range c.clusters {
		if object := present[name]; object == nil || object.UID != k.uid || len(want[name]) == 0 {
			ended = append(ended, k)
			k.set(nil, nil)
			delete(c.clusters, name)
		}
	}
	for name, kinds := range want {
		k := c.clusters[name]
		if k == nil {
			k = newCluster(c, present[name])
			c.clusters[name] = k
			k.start(ctx)
		}
		k.set(present[name], kinds)
	}
	c.mu.Unlock()
	for _, k := range ended {
		go k.leave()
	}
	c.changes.notify()
}

// End stops the caches at the end of the process. The watches of clients end without events: the objects still exist.
func (c *Caches) End() {
	c.ended.Store(true)
	c.changes.notify()
	for _, k := range c.all() {
		k.stop()
	}
}

// Listed reports whether the registries are known and the objects that they select were listed once in each cluster that can
// be read.
func (c *Caches) Listed() bool {
	c.mu.RLock()
	known := c.named != nil
	c.mu.RUnlock()
	return known && !slices.ContainsFunc(c.States(), func(o search.Observation) bool { return o.Failure == search.FailureListing })
}

// States returns the state of all caches, in the order of clusters and kinds.
func (c *Caches) States() []search.Observation {
	var out []search.Observation
	for _, k := range c.all() {
		k.read(func(kind schema.GroupVersionKind, _ search.Namespaces, s *store, failure string) {
			state := search.Observation{Source: search.Source{Cluster: k.name, Kind: kind}, Failure: failure}
			if s != nil {
				state.Objects, state.Since, state.Failure = s.state()
			}
			out = append(out, state)
		})
	}
	slices.SortFunc(out, func(a, b search.Observation) int {
		return cmp.Or(cmp.Compare(a.Cluster, b.Cluster), cmp.Compare(a.Kind.String(), b.Kind.String()))
	})
	return out
}

// all returns the clusters, sorted by name.
func (c *Caches) all() []*cluster {
	c.mu.RLock()
	defer c.mu.RUnlock()
	out := make([]*cluster, 0, len(c.clusters))
	for _, name := range slices.Sorted(maps.Keys(c.clusters)) {
		out = append(out, c.clusters[name])
	}
	return out
}

// Query selects objects.
type Query struct {
	// Resource of the objects. If it is empty, it is that of the kind.
	Resource schema.GroupVersionResource
	// Kind is that of the resource, if it is known: it names clusters that do not serve it.
	Kind schema.GroupVersionKind
	// Namespace and Name select all if they are empty.
	Namespace, Name string
	// Labels selects all if it is nil.
	Labels labels.Selector
	// Selected reports whether an object is selected otherwise; nil selects all.
	Selected func(*Object) (bool, error)
	// Limit is the number of objects at most; 0 for all.
	Limit int64
	// Continue is the token of a page; empty for the first.
	Continue string
}

// selects reports whether the labels and the content of an object are selected.
func (q *Query) selects(o *Object) (bool, error) {
	if q.Labels != nil && !q.Labels.Matches(o.Labels) {
		return false, nil
	}
	if q.Selected == nil {
		return true, nil
	}
	return q.Selected(o)
}

// Item is an object with its cluster.
type Item struct {
	Cluster string
	*Object
}

// Missing is a cluster whose objects are missing or out of date.
type Missing struct{ Cluster, Reason string }

// Result is an answer to a Query.
type Result struct {
	// Items are in the order of clusters, namespaces and names.
	Items []Item
	// Continue is the token of the next page; empty if there is none.
	Continue string
	// Missing are the clusters whose objects are missing or out of date.
	Missing []Missing
	// Versions are the resource versions of the clusters whose objects are complete: those that a watch can begin with.
	Versions map[string]string
}

// Kind returns the kind of a resource, and reports whether a cluster has a store of it.
func (c *Caches) Kind(resource schema.GroupVersionResource) (found schema.GroupVersionKind, ok bool) {
	for _, k := range c.all() {
		k.read(func(kind schema.GroupVersionKind, _ search.Namespaces, s *store, _ string) {
			if s != nil && s.resource() == resource {
				found, ok = kind, true
			}
		})
	}
	return found, ok
}

// Selects reports whether a registry selects a kind, whether it is cached of any cluster or not. It is false, with ok false,
// before the registries are known.
func (c *Caches) Selects(kind schema.GroupVersionKind) (selected, ok bool) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.named[kind], c.named != nil
}

// Source is a kind of a cluster that is cached, with the namespaces that are.
type Source struct {
	Cluster    string
	Kind       schema.GroupVersionKind
	Namespaces search.Namespaces
}

// Sources returns where the objects of a resource are cached from, in the order of clusters, and the clusters of which they
// should be and are not. Kind is that of the resource.
func (c *Caches) Sources(resource schema.GroupVersionResource, kind schema.GroupVersionKind) ([]Source, []Missing) {
	var out []Source
	var absent []Missing
	for _, k := range c.all() {
		found, namespaces, missing := k.find(resource, kind)
		switch {
		case found != nil:
			out = append(out, Source{Cluster: k.name, Kind: kind, Namespaces: namespaces})
		case missing != "":
			absent = append(absent, Missing{k.name, missing})
		}
	}
	return out, absent
}

// position is where a page begins: after an object.
type position struct {
	Cluster   string `json:"cluster"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
}

// TokenError is the error for a token that no answer had.
type TokenError struct{}

// Error implements error.
func (TokenError) Error() string {
	return "the continue token is not valid: list again from the beginning"
}

// decodePosition returns the position of a token; an empty one is the beginning.
func decodePosition(token string) (position, error) {
	var out position
	if token == "" {
		return out, nil
	}
	data, err := base64.RawURLEncoding.DecodeString(token)
	if err != nil || json.Unmarshal(data, &out) != nil || out.Cluster == "" {
		return out, TokenError{}
	}
	return out, nil
}

// List returns cached objects. It never waits for a cluster. It returns a TokenError for a token that is not valid.
func (c *Caches) List(q Query) (Result, error) {
	after, err := decodePosition(q.Continue)
	if err != nil {
		return Result{}, err
	}
	out := Result{Versions: map[string]string{}}
	full := false
	for _, k := range c.all() {
		matching, namespaces, missing := k.find(q.Resource, q.Kind)
		if missing != "" {
			out.Missing = append(out.Missing, Missing{k.name, missing})
		}
		if matching == nil {
			continue
		}
		version := matching.listVersion() // before the objects are read: what comes later is in a watch too
		if version != "" {
			out.Versions[k.name] = version
		}
		if full || k.name < after.Cluster {
			continue
		}
		if _, _, failure := matching.state(); failure != "" {
			out.Missing = append(out.Missing, Missing{k.name, failure})
		}
		if version == "" {
			continue // a watch would not send the deletion of what the list has
		}
		if full, err = out.add(k.name, matching.list(namespaces, q.Namespace, q.Name), q, after); err != nil {
			return out, err
		}
	}
	return out, nil
}

// find returns the store of a resource with the namespaces that are wanted, or why there is none.
func (k *cluster) find(resource schema.GroupVersionResource, of schema.GroupVersionKind) (matching *store, namespaces search.Namespaces, missing string) {
	k.read(func(kind schema.GroupVersionKind, wanted search.Namespaces, s *store, failure string) {
		switch {
		case s != nil && (s.resource() == resource || resource.Empty() && kind == of):
			matching, namespaces = s, wanted
		case s == nil && (kind == of || kind.GroupVersion() == resource.GroupVersion() && plural(kind) == resource.Resource):
			missing = failure
		}
	})
	return matching, namespaces, missing
}

// add adds the objects of one cluster that are selected and come after a position. It reports whether the page is full.
func (r *Result) add(cluster string, objects []*Object, q Query, after position) (full bool, err error) {
	for _, o := range objects {
		if cluster == after.Cluster && cmp.Or(cmp.Compare(o.Namespace, after.Namespace), cmp.Compare(o.Name, after.Name)) <= 0 {
			continue
		}
		if selected, err := q.selects(o); err != nil || !selected {
			if err != nil {
				return false, fmt.Errorf("cluster %s: %w", cluster, err)
			}
			continue
		}
		if q.Limit > 0 && int64(len(r.Items)) == q.Limit {
			last := r.Items[len(r.Items)-1]
			data, err := json.Marshal(position{Cluster: last.Cluster, Namespace: last.Namespace, Name: last.Name})
			if err != nil {
				return false, fmt.Errorf("encoding the continue token: %w", err)
			}
			r.Continue = base64.RawURLEncoding.EncodeToString(data)
			return true, nil
		}
		r.Items = append(r.Items, Item{Cluster: cluster, Object: o})
	}
	return false, nil
}

// plural returns the resource that a kind most likely has. It only names clusters that do not serve it.
func plural(kind schema.GroupVersionKind) string {
	resource, _ := meta.UnsafeGuessKindToResource(kind)
	return resource.Resource
}

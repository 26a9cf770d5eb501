package cache

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"github.com/karmada-toolkit/karmada/internal/plaintext"
	"github.com/karmada-toolkit/karmada/internal/resourceversion"
	"github.com/karmada-toolkit/karmada/pkg/domain/search"
	"github.com/karmada-toolkit/karmada/pkg/member/access"
	"github.com/karmada-toolkit/karmada/pkg/member/follow"
)

// store caches the objects of one kind in one cluster: all of them, or those of some namespaces, with a watch for each
// namespace.
type store struct {
	cluster string
	// member is used by the goroutine of the cluster alone.
	member  *access.Member
	mapping *meta.RESTMapping
	codec   *codec
	budget  *follow.Budget
	clock   clock.PassiveClock
	// feed has the last changes. changed is called when the objects of a namespace are complete.
	feed    feed
	changed func()
	// doubt is called when the cluster seems to serve the kind in another scope, or not any more.
	doubt    func()
	rescoped atomic.Bool
	// unselected reports that the cluster was deleted or no registry selects the kind any more. Only then the end of the store is
	// the deletion of its objects for watches; otherwise they end.
	unselected atomic.Bool

	mu sync.Mutex
	// parts are by namespace; "" has the objects of all namespaces, and those without one.
	parts map[string]*part
	// lost is since when the objects are not watched; zero while they are.
	lost time.Time
}

// part caches the objects of one namespace, or of all.
type part struct {
	projection *follow.Projection[Object]
	// before is the version that the objects had through other connections.
	before string
	mu     sync.Mutex
	// listed is when the objects were first listed completely.
	listed time.Time
	// known are objects that other parts had, until they are listed: watches have sent them already.
	known map[types.NamespacedName]*Object
}

// resource returns the resource that is cached.
func (s *store) resource() schema.GroupVersionResource { return s.mapping.Resource }

// watch watches the objects of namespaces, and drops those of others.
func (s *store) watch(ctx context.Context, want search.Namespaces) {
	names := want.Names
	if want.All || s.mapping.Scope.Name() == meta.RESTScopeNameRoot {
		names = []string{""}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lost = time.Time{}
	known := map[types.NamespacedName]*Object{}
	for namespace, p := range s.parts {
		if !slices.Contains(names, namespace) {
			p.projection.Drop()
			p.projection.Each(func(key types.NamespacedName, o *Object) { known[key] = o })
			delete(s.parts, namespace)
		}
	}
	for _, namespace := range names {
		p := s.parts[namespace]
		if p == nil {
			p = s.newPart(namespace, known)
			s.parts[namespace] = p
		}
		p.projection.Start(ctx)
	}
	for key, o := range known {
		s.feed.add(change{key: key, old: o})
	}
}

// doubtful reports whether the cluster seems to serve the kind in another scope, or not any more.
func (s *store) doubtful() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.rescoped.Load() {
		return true
	}
	for _, p := range s.parts {
		if apierrors.IsNotFound(p.projection.Failure()) {
			return true
		}
	}
	return false
}

// connect makes the store use other connections. The objects stay known: watches get only what changed.
func (s *store) connect(member *access.Member) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.rescoped.Store(false)
	if s.member == member {
		return
	}
	restored := s.member.Incarnation() != member.Incarnation()
	s.member = member
	if restored { // versions have no order any more
		defer s.feed.restart()
	}
	for namespace, p := range s.parts {
		p.projection.Drop()
		known := map[types.NamespacedName]*Object{}
		p.projection.Each(func(key types.NamespacedName, o *Object) { known[key] = o })
		p.mu.Lock()
		maps.Copy(known, p.known)
		p.mu.Unlock()
		next := s.newPart(namespace, known)
		if !restored {
			next.before = cmp.Or(p.projection.Version(), p.before)
		}
		s.parts[namespace] = next
	}
}

// project returns an object to be cached. It refuses one of another scope than that of the kind.
func (s *store) project(in *unstructured.Unstructured, old *Object) (Object, error) {
	out, err := s.codec.keep(in, old, s.cluster)
	if err == nil && (out.Namespace != "") != (s.mapping.Scope.Name() == meta.RESTScopeNameNamespace) {
		s.rescoped.Store(true)
		s.doubt()
		err = fmt.Errorf("%s %s/%s has another scope than its kind had before", s.mapping.Resource.Resource, out.Namespace, out.Name)
	}
	return out, err
}

// newPart returns a part. It takes the objects of its namespace from those that are known from other parts.
func (s *store) newPart(namespace string, known map[types.NamespacedName]*Object) *part {
	p := &part{known: map[types.NamespacedName]*Object{}}
	for key, o := range known {
		if namespace == "" || key.Namespace == namespace {
			p.known[key] = o
			delete(known, key)
		}
	}
	p.projection = follow.New(follow.Config[Object]{
		Name:    fmt.Sprintf("%s %s of the search cache", s.cluster, s.mapping.Resource.Resource),
		Source:  follow.Objects(s.member, s.mapping.Resource, follow.Selection{Namespace: namespace}),
		Project: follow.From(s.project),
		Settle:  settle,
		Size:    func(o Object) int { return o.size() },
		Version: func(o Object) string { return o.Version },
		MaxSize: func() int { return math.MaxInt },
		Budget:  s.budget,
		Changed: func(key types.NamespacedName, old, now *Object) { s.feed.add(p.change(key, old, now)) },
		Failed: func(err error) {
			if apierrors.IsNotFound(err) {
				s.doubt()
			}
		},
		Synced: func() {
			p.mu.Lock()
			p.listed = s.clock.Now()
			known := p.known
			p.known = nil
			p.mu.Unlock()
			for key, o := range known {
				s.feed.add(change{key: key, old: o})
			}
			version := p.projection.Version()
			if resourceversion.Older(version, p.before) {
				s.feed.restart()
			}
			s.feed.begin(version)
			s.changed()
		},
	})
	return p
}

// change returns a change with its version: none before the first list is complete.
func (p *part) change(key types.NamespacedName, old, now *Object) change {
	out := change{key: key, old: old, now: now}
	p.mu.Lock()
	if o := p.known[key]; o != nil && old == nil {
		out.old = o
		delete(p.known, key)
	}
	p.mu.Unlock()
	switch {
	case !p.projection.HasSynced():
	case now != nil:
		out.version = now.Version
	default:
		out.version = p.projection.Version()
	}
	return out
}

// each calls fn for the objects, in no order, or for the one with a name that is not empty. Objects that other parts had are
// included until they are listed.
func (p *part) each(namespace, name string, fn func(key types.NamespacedName, o *Object)) {
	p.mu.Lock()
	known := maps.Clone(p.known)
	p.mu.Unlock()
	visit := func(key types.NamespacedName, o *Object) {
		delete(known, key)
		fn(key, o)
	}
	if name == "" {
		p.projection.Each(visit)
		for key, o := range known {
			fn(key, o)
		}
		return
	}
	key := types.NamespacedName{Namespace: namespace, Name: name}
	if o := cmp.Or(p.projection.Get(key), known[key]); o != nil {
		fn(key, o)
	}
}

// pause ends the watches of a cluster that was lost at a time. The objects stay.
func (s *store) pause(at time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.lost.IsZero() {
		s.lost = at
	}
	for _, p := range s.parts {
		p.projection.Stop()
	}
}

// lostSince returns since when the objects are not watched; zero if they are.
func (s *store) lostSince() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.lost
}

// drop ends the watches and gives the memory of the objects back. Watches of clients read the objects once more, to send
// their deletion.
func (s *store) drop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range s.parts {
		p.projection.Drop()
	}
}

// state returns how many objects there are, since when they are complete, and why they are not or are out of date.
func (s *store) state() (objects int, since time.Time, failure string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range s.parts {
		objects += p.projection.Len()
		p.mu.Lock()
		if p.listed.After(since) {
			since = p.listed
		}
		p.mu.Unlock()
		if err := p.projection.Failure(); err != nil {
			failure = plaintext.WithoutURLs(err.Error())
		} else if !p.projection.HasSynced() {
			failure = cmp.Or(failure, search.FailureListing)
		}
	}
	if !s.lost.IsZero() {
		failure = "not Ready since " + s.lost.UTC().Format(time.RFC3339)
	}
	return objects, since, failure
}

// version returns the resource version that the objects have at least: empty until all of them are listed.
func (s *store) version() string { return s.least(func(*part) string { return "" }) }

// listVersion is version for a list. Through other connections than before, it is that of before until all of them are listed again.
func (s *store) listVersion() string { return s.least(func(p *part) string { return p.before }) }

// least returns the smallest resource version of the parts, empty if one has none. unlisted returns that of a part before its
// first list is complete.
func (s *store) least(unlisted func(*part) string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out string
	for _, p := range s.parts {
		version := unlisted(p)
		if p.projection.HasSynced() {
			version = p.projection.Version()
		}
		if version == "" {
			return ""
		}
		if out == "" || resourceversion.Older(version, out) {
			out = version
		}
	}
	return out
}

// list returns the objects of the namespaces that are wanted, in the order of their namespaces and names. An empty name
// selects all.
func (s *store) list(want search.Namespaces, namespace, name string) []*Object {
	s.mu.Lock()
	parts := slices.Collect(maps.Values(s.parts))
	s.mu.Unlock()
	namespaced := s.mapping.Scope.Name() == meta.RESTScopeNameNamespace
	var out []*Object
	for _, p := range parts {
		p.each(namespace, name, func(key types.NamespacedName, o *Object) {
			if (namespace == "" || key.Namespace == namespace) && (!namespaced || want.Has(key.Namespace)) {
				out = append(out, o)
			}
		})
	}
	slices.SortFunc(out, func(a, b *Object) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	return out
}

package cache

import (
	"context"
	"fmt"
	"maps"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/karmada-toolkit/karmada/internal/controllers"
	"github.com/karmada-toolkit/karmada/internal/plaintext"
	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
	"github.com/karmada-toolkit/karmada/pkg/domain/search"
	"github.com/karmada-toolkit/karmada/pkg/member/access"
	"github.com/karmada-toolkit/karmada/pkg/member/follow"
)

const (
	// retryInterval is the time until a cluster is opened again that could not be opened, or does not serve a kind.
	retryInterval = 10 * time.Second
	// reopenInterval is how often the credentials of a cluster are compared with those of its connections.
	reopenInterval = time.Minute
)

// cluster caches the objects of one cluster. Its goroutine alone waits for the cluster; those that read do not.
type cluster struct {
	deps *Deps
	name string
	uid  types.UID
	wake controllers.Trigger
	// member is the one that is used.
	member *access.Member
	stop   func()

	mu     sync.RWMutex
	object *clusterv1alpha1.Cluster
	want   map[schema.GroupVersionKind]search.Namespaces
	stores map[schema.GroupVersionKind]*store
	// failures are why kinds have no store.
	failures map[schema.GroupVersionKind]string
	codec    *codec
	budget   *follow.Budget
	// changed is called when a store begins, is complete, or ends.
	changed func()
}

func newCluster(c *Caches, object *clusterv1alpha1.Cluster) *cluster {
	return &cluster{
		deps: &c.deps, name: object.Name, uid: object.UID, wake: controllers.NewTrigger(), codec: &c.codec, budget: c.budget, changed: c.changes.notify,
		stores: map[schema.GroupVersionKind]*store{}, failures: map[schema.GroupVersionKind]string{},
	}
}

// start begins to follow what is set, until stop is called or ctx ends.
func (k *cluster) start(ctx context.Context) {
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		k.run(ctx)
	}()
	k.stop = func() {
		cancel()
		<-done
	}
}

// set replaces what is cached of the cluster. What is not wanted any more is not read any more at once.
func (k *cluster) set(object *clusterv1alpha1.Cluster, want map[schema.GroupVersionKind]search.Namespaces) {
	k.mu.Lock()
	k.object, k.want = object, want
	for kind, s := range k.stores {
		_, ok := want[kind]
		s.unselected.Store(!ok)
	}
	k.mu.Unlock()
	k.wake.Fire()
}

// leave drops the objects of a cluster that was deleted or is not selected any more. It may wait for the cluster.
func (k *cluster) leave() {
	k.stop()
	k.keepOnly(nil)
}

func (k *cluster) run(ctx context.Context) {
	for {
		timer := k.deps.Clock.NewTimer(k.follow(ctx))
		select {
		case <-ctx.Done():
			timer.Stop()
			return // the end of the process is no change of the objects
		case <-k.wake:
		case <-timer.C():
		}
		timer.Stop()
	}
}

// follow starts and ends stores, and returns when to look again.
func (k *cluster) follow(ctx context.Context) time.Duration {
	k.mu.RLock()
	object, want := k.object, k.want
	k.mu.RUnlock()
	k.keepOnly(want)
	if object == nil {
		return reopenInterval
	}
	if !object.Ready() {
		return k.lose(want, search.FailureNotReady)
	}
	member, err := k.deps.Members(ctx, object)
	if err != nil {
		return min(retryInterval, k.lose(want, err.Error()))
	}
	if k.member != member {
		k.member = member
		member.OnClose(k.wake.Fire)
	}
	next := reopenInterval
	for kind, namespaces := range want {
		err := k.open(ctx, member, kind, namespaces)
		switch {
		case meta.IsNoMatchError(err):
			k.forget(kind)
			k.fail(kind, search.FailureUnknownKind)
		case err != nil:
			k.fail(kind, err.Error())
		default:
			continue
		}
		next = retryInterval
	}
	return next
}

// open watches one kind, through other connections than before if the cluster has others.
func (k *cluster) open(ctx context.Context, member *access.Member, kind schema.GroupVersionKind, namespaces search.Namespaces) error {
	k.mu.RLock()
	s, failure := k.stores[kind], k.failures[kind]
	k.mu.RUnlock()
	if s == nil || s.member != member || s.doubtful() {
		mapping, err := member.Mapping(kind)
		if err != nil {
			return err
		}
		if s != nil && s.doubtful() || failure == search.FailureUnknownKind {
			if mapping, err = served(member, mapping); err != nil {
				return err
			}
		}
		if s != nil && mapping.Resource == s.mapping.Resource && mapping.Scope.Name() == s.mapping.Scope.Name() {
			s.connect(member)
		} else {
			k.forget(kind)
			s = k.newStore(member, mapping)
			k.mu.Lock()
			k.stores[kind] = s
			delete(k.failures, kind)
			k.mu.Unlock()
			k.changed()
		}
	}
	s.watch(ctx, namespaces)
	return nil
}

func (k *cluster) newStore(member *access.Member, mapping *meta.RESTMapping) *store {
	return &store{
		cluster: k.name, member: member, mapping: mapping, codec: k.codec, budget: k.budget, clock: k.deps.Clock, changed: k.changed, doubt: k.wake.Fire,
		parts: map[string]*part{},
	}
}

// served returns a mapping with the scope that the cluster serves now, and a NoKindMatchError if it does not serve the kind.
// The definition of a kind may be replaced by one with another scope.
func served(member *access.Member, mapping *meta.RESTMapping) (*meta.RESTMapping, error) {
	kind := mapping.GroupVersionKind
	list, err := member.Discovery().ServerResourcesForGroupVersion(kind.GroupVersion().String())
	if err != nil && !apierrors.IsNotFound(err) {
		return nil, fmt.Errorf("reading what the cluster serves: %w", err)
	}
	if err == nil {
		for _, r := range list.APIResources {
			if r.Name != mapping.Resource.Resource || r.Kind != kind.Kind {
				continue
			}
			out := &meta.RESTMapping{Resource: mapping.Resource, GroupVersionKind: kind, Scope: meta.RESTScopeRoot}
			if r.Namespaced {
				out.Scope = meta.RESTScopeNamespace
			}
			return out, nil
		}
	}
	return nil, &meta.NoKindMatchError{GroupKind: kind.GroupKind(), SearchedVersions: []string{kind.Version}}
}

// lose ends the watches of a member that cannot be read for a reason, and drops its objects after a while. It returns when to
// look again.
func (k *cluster) lose(want map[schema.GroupVersionKind]search.Namespaces, reason string) time.Duration {
	now := k.deps.Clock.Now()
	next := reopenInterval
	for kind := range want {
		k.mu.RLock()
		s := k.stores[kind]
		k.mu.RUnlock()
		if s == nil {
			k.fail(kind, reason)
			continue
		}
		s.pause(now)
		if rest := k.deps.LostGrace - now.Sub(s.lostSince()); rest > 0 {
			next = min(next, rest)
			continue
		}
		k.forget(kind)
		k.fail(kind, reason)
	}
	return next
}

// fail records why a kind has no store.
func (k *cluster) fail(kind schema.GroupVersionKind, reason string) {
	reason = plaintext.WithoutURLs(reason)
	k.mu.Lock()
	changed := k.failures[kind] != reason
	k.failures[kind] = reason
	k.mu.Unlock()
	if changed {
		k.changed() // watches wait for it no longer
	}
}

// forget drops the store of a kind.
func (k *cluster) forget(kind schema.GroupVersionKind) {
	k.mu.Lock()
	s := k.stores[kind]
	delete(k.stores, kind)
	k.mu.Unlock()
	if s != nil {
		s.drop()
		k.changed()
	}
}

// keepOnly drops the stores of all other kinds.
func (k *cluster) keepOnly(want map[schema.GroupVersionKind]search.Namespaces) {
	k.mu.RLock()
	stores := maps.Clone(k.stores)
	k.mu.RUnlock()
	for kind, s := range stores {
		if _, ok := want[kind]; !ok {
			s.unselected.Store(true)
			k.forget(kind)
		}
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	maps.DeleteFunc(k.failures, func(kind schema.GroupVersionKind, _ string) bool {
		_, ok := want[kind]
		return !ok
	})
}

// read returns the kinds that are wanted, with their namespaces, and calls fn for each: with its store, or with nil and why it
// has none.
func (k *cluster) read(fn func(kind schema.GroupVersionKind, namespaces search.Namespaces, s *store, failure string)) {
	k.mu.RLock()
	defer k.mu.RUnlock()
	for kind, namespaces := range k.want {
		s := k.stores[kind]
		failure := ""
		if s == nil {
			if failure = k.failures[kind]; failure == "" {
				failure = search.FailureListing
			}
		}
		fn(kind, namespaces, s, failure)
	}
}

package cache

import (
	"context"
	"maps"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/domain/search"
	"github.com/karmada-toolkit/karmada/pkg/member/access"
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
	wake chan struct{}
	stop func()

	mu     sync.RWMutex
	object *clusterv1alpha1.Cluster
	want   map[schema.GroupVersionKind]search.Namespaces
	stores map[schema.GroupVersionKind]*store
	// failures are why kinds have no store.
	failures map[schema.GroupVersionKind]string
	codec    *codec
	budget   *budget
	// changed is called when a store begins, is complete, or ends.
	changed func()
}

func newCluster(c *Caches, object *clusterv1alpha1.Cluster) *cluster {
	return &cluster{
		deps: &c.deps, name: object.Name, uid: object.UID, wake: make(chan struct{}, 1), codec: &c.codec, budget: &c.budget, changed: c.changes.notify,
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
	k.mu.Unlock()
	select {
	case k.wake <- struct{}{}:
	default:
	}
}

func (k *cluster) run(ctx context.Context) {
	for {
		timer := k.deps.Clock.NewTimer(k.follow(ctx))
		select {
		case <-ctx.Done():
			timer.Stop()
			k.keepOnly(nil)
			return
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
	next := reopenInterval
	for kind, namespaces := range want {
		err := k.open(ctx, member, kind, namespaces)
		switch {
		case meta.IsNoMatchError(err):
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
	s := k.stores[kind]
	k.mu.RUnlock()
	if s == nil || s.member != member {
		mapping, err := member.Mapping(kind)
		if err != nil {
			return err
		}
		if s != nil {
			s.drop()
		}
		s = &store{member: member, mapping: mapping, codec: k.codec, budget: k.budget, clock: k.deps.Clock, changed: k.changed, parts: map[string]*part{}}
		k.mu.Lock()
		k.stores[kind] = s
		delete(k.failures, kind)
		k.mu.Unlock()
		k.changed()
	}
	s.watch(ctx, namespaces)
	return nil
}

// lose ends the watches of a cluster that cannot be read for a reason, and drops its objects after a while. It returns when to
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
	k.mu.Lock()
	defer k.mu.Unlock()
	k.failures[kind] = reason
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
	for kind := range stores {
		if _, ok := want[kind]; !ok {
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

// Package backend copies cached objects to the OpenSearch servers that ResourceRegistries name. It reads the caches by watches,
// so that a server that is slow or unreachable never delays them: a watch that falls behind ends, and all objects are sent
// again.
package backend

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/clock"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/karmada-toolkit/karmada/internal/controllers"
	"github.com/karmada-toolkit/karmada/internal/plaintext"
	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
	searchv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/search/v1alpha1"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/search/cache"
	"github.com/karmada-toolkit/karmada/pkg/domain/search"
)

// Caches have the objects.
type Caches interface {
	Watch(ctx context.Context, q cache.Query, start cache.Start, send func(cache.Event) error) error
	States() []search.Observation
}

// Deps are the dependencies of Stores.
type Deps struct {
	Caches Caches
	// Secret returns a Secret of the control plane.
	Secret func(ctx context.Context, namespace, name string) (*corev1.Secret, error)
	// Identity returns the ID of the control plane. Documents of other control planes are never deleted.
	Identity func(ctx context.Context) (string, error)
	// Clock defaults to the real one.
	Clock clock.WithTicker
}

const (
	// firstRetry and lastRetry are the times until a request is repeated: the first doubles up to the last.
	firstRetry, lastRetry = time.Second, time.Minute
	// forgetTimeout is how long the documents of a store that no registry names any more are tried to be deleted.
	forgetTimeout = 10 * time.Minute
)

// Stores are the servers that registries name. They are safe for concurrent use.
type Stores struct {
	deps Deps
	wake controllers.Trigger

	mu      sync.Mutex
	wanted  map[string]wanted
	running map[string]*store
}

// wanted is what a server is to have.
type wanted struct {
	config *searchv1alpha1.OpenSearchConfig
	kinds  map[schema.GroupVersionKind]clusters
}

// clusters are the clusters of a kind, with the namespaces of each.
type clusters map[string]search.Namespaces

// New returns stores that copy nothing.
func New(d Deps) *Stores {
	d.Clock = cmp.Or[clock.WithTicker](d.Clock, clock.RealClock{})
	return &Stores{deps: d, wake: controllers.NewTrigger(), running: map[string]*store{}}
}

// key identifies the settings of a store; empty if a registry has none.
func key(r *searchv1alpha1.ResourceRegistry) string {
	if r.DeletionTimestamp != nil || r.Spec.BackendStore == nil || r.Spec.BackendStore.OpenSearch == nil {
		return ""
	}
	c := r.Spec.BackendStore.OpenSearch
	return strings.Join(append(slices.Sorted(slices.Values(c.Addresses)), c.SecretRef.Namespace, c.SecretRef.Name), " ")
}

// Follow makes the stores those that registries name. It is called before the caches follow them, and does not wait.
func (s *Stores) Follow(registries []*searchv1alpha1.ResourceRegistry, known []*clusterv1alpha1.Cluster) {
	byKey := map[string][]*searchv1alpha1.ResourceRegistry{}
	for _, r := range registries {
		if k := key(r); k != "" {
			byKey[k] = append(byKey[k], r)
		}
	}
	all := make(map[string]wanted, len(byKey))
	for k, of := range byKey {
		w := wanted{config: of[0].Spec.BackendStore.OpenSearch, kinds: map[schema.GroupVersionKind]clusters{}}
		for source, namespaces := range search.Want(of, known) {
			if w.kinds[source.Kind] == nil {
				w.kinds[source.Kind] = clusters{}
			}
			w.kinds[source.Kind][source.Cluster] = namespaces
		}
		all[k] = w
	}
	s.mu.Lock()
	s.wanted = all
	for k, running := range s.running {
		for kind, f := range running.feeders {
			if want := all[k].kinds[kind]; want != nil {
				f.set(want, s.deps.Caches.States)
			}
		}
	}
	s.mu.Unlock()
	s.wake.Fire()
}

// Failure returns why the store of a registry lacks documents; empty if it has none, or as far as this process knows.
func (s *Stores) Failure(r *searchv1alpha1.ResourceRegistry) string {
	s.mu.Lock()
	running := s.running[key(r)]
	s.mu.Unlock()
	if running == nil {
		return ""
	}
	return running.failure()
}

// Run copies until ctx ends, or the fence refuses writes. Of all replicas only one runs it. A nil fence refuses nothing.
func (s *Stores) Run(ctx context.Context, fence *controllers.Fence) {
	var feeders, purges sync.WaitGroup
	defer purges.Wait()
	defer feeders.Wait()
	defer func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		clear(s.running)
	}()
	for ctx.Err() == nil {
		for _, ended := range s.apply(ctx, &feeders, fence) {
			purges.Go(func() { ended.forget(ctx) })
		}
		select {
		case <-ctx.Done():
		case <-s.wake:
		}
	}
}

// apply starts the feeders that are wanted, and stops and returns those that are not.
func (s *Stores) apply(ctx context.Context, group *sync.WaitGroup, fence *controllers.Fence) []*feeder {
	s.mu.Lock()
	defer s.mu.Unlock()
	var ended []*feeder
	for k, running := range s.running {
		for kind, f := range running.feeders {
			if s.wanted[k].kinds[kind] == nil {
				f.cancel()
				delete(running.feeders, kind)
				ended = append(ended, f)
			}
		}
		if _, ok := s.wanted[k]; !ok {
			delete(s.running, k)
		}
	}
	for k, w := range s.wanted {
		running := s.running[k]
		if running == nil {
			running = &store{
				deps: &s.deps, config: w.config, fence: fence, feeders: map[schema.GroupVersionKind]*feeder{}, failures: map[string]string{},
			}
			s.running[k] = running
			group.Go(func() { running.clean(ctx, s.indices) })
		}
		for kind, want := range w.kinds {
			if running.feeders[kind] == nil {
				f := newFeeder(running, kind, want, s.runs)
				running.feeders[kind] = f
				f.start(ctx, group)
			}
		}
	}
	return ended
}

// indices returns the indices that are wanted of any store.
func (s *Stores) indices() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	names := map[string]bool{}
	for _, w := range s.wanted {
		for kind := range w.kinds {
			names[search.Index(kind.GroupKind())] = true
		}
	}
	return slices.Sorted(maps.Keys(names))
}

// runs returns the IDs of the copies to an index that go on, of all stores: two may be the same server.
func (s *Stores) runs(index string) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []string
	for _, running := range s.running {
		for _, f := range running.feeders {
			if f.index == index {
				out = append(out, f.runID())
			}
		}
	}
	return out
}

// store is one server.
type store struct {
	deps   *Deps
	config *searchv1alpha1.OpenSearchConfig
	fence  *controllers.Fence
	// feeders are guarded by Stores.
	feeders map[schema.GroupVersionKind]*feeder

	mu     sync.Mutex
	client *client
	// failures are by what fails.
	failures map[string]string
}

// failure returns the first failure.
func (s *store) failure() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, of := range slices.Sorted(maps.Keys(s.failures)) {
		return of + ": " + s.failures[of]
	}
	return ""
}

// fail records a failure, or that there is none.
func (s *store) fail(of, failure string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if failure == "" {
		delete(s.failures, of)
		return
	}
	s.failures[of] = plaintext.WithoutURLs(failure)
}

// do makes a request until it succeeds, with the credentials that the Secret has then. It returns false when ctx ended.
func (s *store) do(ctx context.Context, of string, request func(*client) error) bool {
	for delay := firstRetry; ; delay = min(2*delay, lastRetry) {
		c, err := s.connection(ctx)
		if err == nil {
			if err = request(c); err == nil {
				s.fail(of, "")
				return true
			}
			s.disconnect(c)
		}
		if ctx.Err() != nil {
			return false
		}
		s.fail(of, err.Error())
		ctrllog.FromContext(ctx).V(2).Info("Writing to OpenSearch failed, trying again", "of", of, "after", delay, "err", err.Error())
		select {
		case <-ctx.Done():
			return false
		case <-s.deps.Clock.After(delay):
		}
	}
}

// connection returns the client.
func (s *store) connection(ctx context.Context) (*client, error) {
	s.mu.Lock()
	c := s.client
	s.mu.Unlock()
	if c != nil {
		return c, nil
	}
	var secret *corev1.Secret
	if ref := s.config.SecretRef; ref.Name != "" {
		var err error
		if secret, err = s.deps.Secret(ctx, ref.Namespace, ref.Name); err != nil {
			return nil, fmt.Errorf("reading the credentials of OpenSearch: %w", err)
		}
	}
	c, err := connect(s.config, secret, s.fence)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.client == nil {
		s.client = c
	}
	return s.client, nil
}

// disconnect makes the next request read the Secret again.
func (s *store) disconnect(c *client) {
	s.mu.Lock()
	if s.client == c {
		s.client = nil
	}
	s.mu.Unlock()
	c.close()
}

// clean deletes the documents of kinds that no registry names any more, which may have happened while no replica ran.
func (s *store) clean(ctx context.Context, wanted func() []string) {
	const of = "documents of earlier registries"
	id := ""
	s.do(ctx, of, func(c *client) (err error) {
		if id, err = s.deps.Identity(ctx); err != nil {
			return err
		}
		return c.purge(ctx, search.Indices, query{has: map[string]string{search.FieldControlPlane: id}, not: map[string][]string{"_index": wanted()}})
	})
}

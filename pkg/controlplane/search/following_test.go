package search

import (
	"context"
	"testing"

	toolscache "k8s.io/client-go/tools/cache"

	"github.com/karmada-toolkit/karmada/internal/testenv/memory"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/search/backend"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/search/cache"
	searchlisters "github.com/karmada-toolkit/karmada/pkg/generated/listers/search/v1alpha1"
)

// A control plane without registries and clusters has nothing that changes; the server is ready all the same.
func TestFollowing_BeginsWithNothing(t *testing.T) {
	caches := cache.New(cache.Deps{})
	f := &following{
		caches: caches, stores: backend.New(backend.Deps{Caches: caches}), clusters: memory.New(t).Client,
		began: make(chan struct{}), ready: make(chan struct{}),
	}
	ctx, stop := context.WithCancel(t.Context())
	none, ended := toolscache.NewIndexer(toolscache.MetaNamespaceKeyFunc, nil), make(chan error)
	go func() {
		ended <- f.watchAll(ctx, searchlisters.NewResourceRegistryLister(none), make(chan struct{}))
	}()
	select {
	case <-f.began:
	case err := <-ended:
		t.Fatalf("it ended: %v", err)
	}
	if !caches.Listed() {
		t.Error("the caches wait for something")
	}
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

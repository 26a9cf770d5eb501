package search

import (
	"context"
	"testing"

	toolscache "k8s.io/client-go/tools/cache"

	"github.com/karmada-toolkit/karmada/pkg/controlplane/search/backend"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/search/cache"
	clusterlisters "github.com/karmada-toolkit/karmada/pkg/generated/listers/cluster/v1alpha1"
	searchlisters "github.com/karmada-toolkit/karmada/pkg/generated/listers/search/v1alpha1"
	"github.com/karmada-toolkit/karmada/pkg/member/access"
)

// A control plane without registries and clusters has nothing that changes; the server is ready all the same.
func TestFollowing_BeginsWithNothing(t *testing.T) {
	caches := cache.New(cache.Deps{})
	f := &following{
		caches: caches, stores: backend.New(backend.Deps{Caches: caches}), pool: access.NewPool(access.Options{}),
		began: make(chan struct{}), ready: make(chan struct{}),
	}
	ctx, stop := context.WithCancel(t.Context())
	none, ended := toolscache.NewIndexer(toolscache.MetaNamespaceKeyFunc, nil), make(chan error)
	go func() {
		ended <- f.watchAll(ctx, searchlisters.NewResourceRegistryLister(none), clusterlisters.NewClusterLister(none), make(chan struct{}))
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

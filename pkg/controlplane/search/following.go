package search

import (
	"context"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/kubernetes"
	restclient "k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/karmada-toolkit/karmada/pkg/controlplane/search/cache"
	"github.com/karmada-toolkit/karmada/pkg/generated/clientset/versioned"
	"github.com/karmada-toolkit/karmada/pkg/generated/informers/externalversions"
	clusterlisters "github.com/karmada-toolkit/karmada/pkg/generated/listers/cluster/v1alpha1"
	searchlisters "github.com/karmada-toolkit/karmada/pkg/generated/listers/search/v1alpha1"
	"github.com/karmada-toolkit/karmada/pkg/member/access"
)

// followInterval is the least time between two changes of what is cached: many clusters may join at once.
const followInterval = 200 * time.Millisecond

// newCaches returns the caches of the role, and a function that makes them follow the registries and clusters of the control
// plane until its context ends. The role itself may serve the registries, so that nothing waits for them.
func newCaches(o *Options, controlPlane *restclient.Config, mapper meta.RESTMapper) (*cache.Caches, func(context.Context) error, error) {
	client, err := versioned.NewForConfig(controlPlane)
	if err != nil {
		return nil, nil, fmt.Errorf("connecting to the control plane: %w", err)
	}
	core, err := kubernetes.NewForConfig(controlPlane)
	if err != nil {
		return nil, nil, fmt.Errorf("connecting to the control plane: %w", err)
	}
	pool := access.NewPool(access.Options{
		Secrets: func(ctx context.Context, namespace, name string) (*corev1.Secret, error) {
			return core.CoreV1().Secrets(namespace).Get(ctx, name, metav1.GetOptions{})
		},
		Mapper: mapper, QPS: o.ClusterAPIQPS.QPS(), Burst: o.ClusterAPIBurst, UserAgent: controlPlane.UserAgent,
	})
	caches := cache.New(cache.Deps{Members: pool.Member, LostGrace: o.LostClusterGrace, MemoryLimit: o.CacheMemoryLimit.Value()})
	return caches, func(ctx context.Context) error { return follow(ctx, caches, pool, client, core) }, nil
}

// follow makes caches follow the registries and clusters, and the status of registries the caches, until ctx ends.
func follow(ctx context.Context, caches *cache.Caches, pool *access.Pool, client versioned.Interface, core kubernetes.Interface) error {
	factory := externalversions.NewSharedInformerFactory(client, 0)
	clusters, registries := factory.Cluster().V1alpha1().Clusters(), factory.Search().V1alpha1().ResourceRegistries()
	changed := make(chan struct{}, 1)
	notify := func() {
		select {
		case changed <- struct{}{}:
		default:
		}
	}
	for _, informer := range []toolscache.SharedIndexInformer{clusters.Informer(), registries.Informer()} {
		handler := toolscache.ResourceEventHandlerFuncs{
			AddFunc: func(any) { notify() }, UpdateFunc: func(any, any) { notify() }, DeleteFunc: func(any) { notify() },
		}
		if _, err := informer.AddEventHandler(handler); err != nil {
			return fmt.Errorf("watching clusters and registries: %w", err)
		}
	}
	factory.Start(ctx.Done())
	defer factory.Shutdown()
	defer caches.End()
	if !toolscache.WaitForCacheSync(ctx.Done(), clusters.Informer().HasSynced, registries.Informer().HasSynced) {
		return nil
	}
	writer := &statuses{
		caches: caches, client: client, core: core, registries: registries.Lister(), clusters: clusters.Lister(), clock: clock.RealClock{},
	}
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return writer.run(ctx) })
	group.Go(func() error { return watchAll(ctx, caches, pool, registries.Lister(), clusters.Lister(), changed) })
	return group.Wait()
}

// watchAll makes caches follow each change of the registries and clusters until ctx ends.
func watchAll(ctx context.Context, caches *cache.Caches, pool *access.Pool, registries searchlisters.ResourceRegistryLister, clusters clusterlisters.ClusterLister, changed <-chan struct{}) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-changed:
		}
		wanted, err := registries.List(labels.Everything())
		if err != nil {
			return fmt.Errorf("listing registries: %w", err)
		}
		known, err := clusters.List(labels.Everything())
		if err != nil {
			return fmt.Errorf("listing clusters: %w", err)
		}
		caches.Follow(ctx, wanted, known)
		names := make(map[string]bool, len(known))
		for _, c := range known {
			names[c.Name] = true
		}
		pool.Keep(func(name string) bool { return names[name] })
		ctrllog.FromContext(ctx).V(4).Info("Following registries", "registries", len(wanted), "clusters", len(known))
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(followInterval):
		}
	}
}

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

	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/search/backend"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/search/cache"
	"github.com/karmada-toolkit/karmada/pkg/generated/clientset/versioned"
	"github.com/karmada-toolkit/karmada/pkg/generated/informers/externalversions"
	clusterlisters "github.com/karmada-toolkit/karmada/pkg/generated/listers/cluster/v1alpha1"
	searchlisters "github.com/karmada-toolkit/karmada/pkg/generated/listers/search/v1alpha1"
	"github.com/karmada-toolkit/karmada/pkg/member/access"
)

// followInterval is the least time between two changes of what is cached: many clusters may join at once.
const followInterval = 200 * time.Millisecond

// following are the caches of the role, which follow the registries and clusters of the control plane.
type following struct {
	caches  *cache.Caches
	stores  *backend.Stores
	pool    *access.Pool
	client  versioned.Interface
	core    kubernetes.Interface
	factory externalversions.SharedInformerFactory
}

func newFollowing(o *Options, controlPlane *restclient.Config, mapper meta.RESTMapper) (*following, error) {
	client, err := versioned.NewForConfig(controlPlane)
	if err != nil {
		return nil, fmt.Errorf("connecting to the control plane: %w", err)
	}
	core, err := kubernetes.NewForConfig(controlPlane)
	if err != nil {
		return nil, fmt.Errorf("connecting to the control plane: %w", err)
	}
	f := &following{client: client, core: core, factory: externalversions.NewSharedInformerFactory(client, 0)}
	f.pool = access.NewPool(access.Options{
		Secrets: f.secret, Mapper: mapper, QPS: o.ClusterAPIQPS.QPS(), Burst: o.ClusterAPIBurst, UserAgent: controlPlane.UserAgent,
	})
	f.caches = cache.New(cache.Deps{Members: f.pool.Member, LostGrace: o.LostClusterGrace, MemoryLimit: o.CacheMemoryLimit.Value()})
	f.stores = backend.New(backend.Deps{Caches: f.caches, Secret: f.secret, Identity: f.identity})
	return f, nil
}

// identity returns what tells the documents of this control plane from those of others.
func (f *following) identity(ctx context.Context) (string, error) {
	namespace, err := f.core.CoreV1().Namespaces().Get(ctx, clusterv1alpha1.NamespaceKarmadaSystem, metav1.GetOptions{})
	if err != nil {
		return "", fmt.Errorf("reading the ID of the control plane: %w", err)
	}
	return string(namespace.UID), nil
}

// secret returns a Secret of the control plane.
func (f *following) secret(ctx context.Context, namespace, name string) (*corev1.Secret, error) {
	return f.core.CoreV1().Secrets(namespace).Get(ctx, name, metav1.GetOptions{})
}

// cluster returns a Cluster.
func (f *following) cluster(_ context.Context, name string) (*clusterv1alpha1.Cluster, error) {
	return f.factory.Cluster().V1alpha1().Clusters().Lister().Get(name)
}

// run makes the caches follow the registries and clusters, and the status of registries the caches, until ctx ends. The role
// itself may serve the registries, so that nothing waits for them.
func (f *following) run(ctx context.Context) error {
	caches, client, core, factory := f.caches, f.client, f.core, f.factory
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
		caches: caches, stores: f.stores, client: client, core: core, registries: registries.Lister(), clusters: clusters.Lister(), clock: clock.RealClock{},
	}
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return writer.run(ctx) })
	group.Go(func() error { return f.watchAll(ctx, registries.Lister(), clusters.Lister(), changed) })
	return group.Wait()
}

// watchAll makes caches and stores follow each change of the registries and clusters until ctx ends.
func (f *following) watchAll(ctx context.Context, registries searchlisters.ResourceRegistryLister, clusters clusterlisters.ClusterLister, changed <-chan struct{}) error {
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
		f.stores.Follow(wanted, known)
		f.caches.Follow(ctx, wanted, known)
		names := make(map[string]bool, len(known))
		for _, c := range known {
			names[c.Name] = true
		}
		f.pool.Keep(func(name string) bool { return names[name] })
		ctrllog.FromContext(ctx).V(4).Info("Following registries", "registries", len(wanted), "clusters", len(known))
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(followInterval):
		}
	}
}

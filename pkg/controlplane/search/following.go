package search

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/client-go/kubernetes"
	restclient "k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"
	ctrlcache "sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/karmada-toolkit/karmada/internal/controllers"
	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/search/backend"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/search/cache"
	searchlisters "github.com/karmada-toolkit/karmada/pkg/generated/listers/search/v1alpha1"
	"github.com/karmada-toolkit/karmada/pkg/member/access"
)

// followInterval is the least time between two changes of what is cached: many clusters may join at once.
const followInterval = 200 * time.Millisecond

// readyInterval is the time between two checks whether the caches are complete for the first time.
const readyInterval = 100 * time.Millisecond

// following are the caches of the role, which follow the registries and clusters of the control plane.
type following struct {
	caches *cache.Caches
	stores *backend.Stores
	config *restclient.Config
	core   kubernetes.Interface
	// informers has the informer of Clusters, which clusters reads.
	informers ctrlcache.Informers
	clusters  client.Reader
	// registries are sent by the server. They are not read through the control plane, which sends requests to ready servers only.
	registries chan toolscache.SharedIndexInformer
	// timeout bounds the wait for the first lists of clusters.
	timeout time.Duration
	// began is closed when the caches follow the registries and clusters, ready when they are complete or the timeout is over.
	began, ready chan struct{}
}

func newFollowing(o *Options, mgr manager.Manager) (*following, error) {
	config := mgr.GetConfig()
	core, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("connecting to the control plane: %w", err)
	}
	f := &following{
		config: config, core: core, informers: mgr.GetCache(), clusters: mgr.GetClient(), timeout: o.Run.StorageInitializationTimeout,
		registries: make(chan toolscache.SharedIndexInformer, 1), began: make(chan struct{}), ready: make(chan struct{}),
	}
	pool := access.NewPool(access.Options{
		Clusters: f.clusters, Secrets: f.secret, Mapper: mgr.GetRESTMapper(), QPS: o.ClusterAPIQPS.QPS(), Burst: o.ClusterAPIBurst, UserAgent: config.UserAgent,
	})
	f.caches = cache.New(cache.Deps{Members: pool.Member, LostGrace: o.LostClusterGrace, MemoryLimit: o.CacheMemoryLimit.Value()})
	f.stores = backend.New(backend.Deps{Caches: f.caches, Secret: f.secret, Identity: f.identity})
	return f, errors.Join(controllers.Follow(mgr, &clusterv1alpha1.Cluster{}, pool), mgr.Add(controllers.Everywhere(f.run)))
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
func (f *following) cluster(ctx context.Context, name string) (*clusterv1alpha1.Cluster, error) {
	out := &clusterv1alpha1.Cluster{}
	err := f.clusters.Get(ctx, client.ObjectKey{Name: name}, out, client.UnsafeDisableDeepCopy)
	return out, err
}

// clusterList returns all Clusters.
func (f *following) clusterList(ctx context.Context) ([]*clusterv1alpha1.Cluster, error) {
	list := &clusterv1alpha1.ClusterList{}
	if err := f.clusters.List(ctx, list, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing clusters: %w", err)
	}
	out := make([]*clusterv1alpha1.Cluster, len(list.Items))
	for i := range list.Items {
		out[i] = &list.Items[i]
	}
	return out, nil
}

// run makes the caches follow the registries and clusters, and the status of registries the caches, until ctx ends.
func (f *following) run(ctx context.Context) error {
	defer f.caches.End()
	var registries toolscache.SharedIndexInformer
	select {
	case registries = <-f.registries:
	case <-ctx.Done():
		return nil
	}
	changed := controllers.NewTrigger()
	handler := toolscache.ResourceEventHandlerFuncs{
		AddFunc: func(any) { changed.Fire() }, UpdateFunc: func(any, any) { changed.Fire() }, DeleteFunc: func(any) { changed.Fire() },
	}
	forget, err := controllers.Handle(ctx, f.informers, &clusterv1alpha1.Cluster{}, handler)
	if err != nil {
		return err
	}
	defer forget()
	if _, err := registries.AddEventHandler(handler); err != nil {
		return fmt.Errorf("watching registries: %w", err)
	}
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error {
		registries.RunWithContext(ctx)
		return nil
	})
	lister := searchlisters.NewResourceRegistryLister(registries.GetIndexer())
	if toolscache.WaitForCacheSync(ctx.Done(), registries.HasSynced) {
		writer := &statuses{
			caches: f.caches, stores: f.stores, config: f.config, registries: lister, clusters: f.clusterList, clock: clock.RealClock{},
			discovered: &discovered{client: f.core.Discovery().RESTClient(), versions: map[schema.GroupVersion]discoveredVersion{}},
		}
		group.Go(func() error { return writer.run(ctx) })
		group.Go(func() error { return f.watchAll(ctx, lister, changed) })
		group.Go(func() error { return f.awaitListed(ctx) })
	}
	return group.Wait()
}

// awaitListed closes ready when all that registries select was listed once in the clusters that can be read. A list from caches
// that are not complete would show the deletion of what it lacks to clients that have it.
func (f *following) awaitListed(ctx context.Context) error {
	limit, cancel := context.WithTimeout(ctx, f.timeout)
	defer cancel()
	ticker := time.NewTicker(readyInterval)
	defer ticker.Stop()
	for !f.caches.Listed() && limit.Err() == nil {
		select {
		case <-limit.Done():
		case <-ticker.C:
		}
	}
	if ctx.Err() == nil {
		close(f.ready)
	}
	return nil
}

// notReady returns an error while the caches may lack objects because they were not listed yet.
func (f *following) notReady() error {
	select {
	case <-f.ready:
		return nil
	default:
	}
	err := apierrors.NewServiceUnavailable("the objects of the clusters are not listed yet: try again")
	err.ErrStatus.Details = &metav1.StatusDetails{RetryAfterSeconds: 1}
	return err
}

// addHooks makes the server ready when the caches are. The names of the hooks are those of the contract. Without an answer of the
// control plane a hook ends all the same, since a process that is started again would not get one either.
func (f *following) addHooks(server *genericapiserver.GenericAPIServer) error {
	for name, done := range map[string]chan struct{}{
		"start-karmada-informers": f.began, "start-karmada-search-informers": f.began,
		"start-karmada-search-controller": f.began, "start-karmada-proxy-controller": f.began,
		"search-storage-cache-readiness": f.ready,
	} {
		if err := server.AddPostStartHook(name, func(hook genericapiserver.PostStartHookContext) error {
			select {
			case <-done:
			case <-hook.Done():
			case <-time.After(f.timeout):
			}
			return nil
		}); err != nil {
			return fmt.Errorf("adding the check %s: %w", name, err)
		}
	}
	return nil
}

// watchAll makes caches and stores follow each change of the registries and clusters until ctx ends.
func (f *following) watchAll(ctx context.Context, registries searchlisters.ResourceRegistryLister, changed <-chan struct{}) error {
	for began := sync.OnceFunc(func() { close(f.began) }); ; {
		wanted, err := registries.List(labels.Everything())
		if err != nil {
			return fmt.Errorf("listing registries: %w", err)
		}
		known, err := f.clusterList(ctx)
		if err != nil {
			return err
		}
		f.stores.Follow(wanted, known)
		f.caches.Follow(ctx, wanted, known)
		began()
		ctrllog.FromContext(ctx).V(4).Info("Following registries", "registries", len(wanted), "clusters", len(known))
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(followInterval):
		}
		select {
		case <-ctx.Done():
			return nil
		case <-changed:
		}
	}
}

package kubelite

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/controller/namespace/deletion"
)

const (
	// namespaceGrace is how long after a namespace was marked for deletion its content is deleted. The API server
	// may let new content in until it has seen the mark, which takes one process a few milliseconds. Kubernetes
	// waits for five seconds, for the sake of several API servers.
	namespaceGrace = 200 * time.Millisecond
	// namespaceRetry and namespaceRetryMax are the intervals between checks of what is left in a namespace.
	namespaceRetry    = 50 * time.Millisecond
	namespaceRetryMax = 5 * time.Second
	namespaceWorkers  = 4
)

// namespaceReaper empties namespaces that are being deleted. It replaces the namespace controller of
// kube-controller-manager, with the same code for the deletion itself and shorter waits.
type namespaceReaper struct {
	queue   workqueue.TypedRateLimitingInterface[string]
	deleter deletion.NamespacedResourcesDeleterInterface
}

// runNamespaceReaper works until ctx ends.
func runNamespaceReaper(ctx context.Context, config *rest.Config) error {
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	metadataClient, err := metadata.NewForConfig(config)
	if err != nil {
		return err
	}
	limiter := workqueue.NewTypedItemExponentialFailureRateLimiter[string](namespaceRetry, namespaceRetryMax)
	reaper := &namespaceReaper{
		queue: workqueue.NewTypedRateLimitingQueue(limiter),
		deleter: deletion.NewNamespacedResourcesDeleter(ctx, client.CoreV1().Namespaces(), metadataClient, client.CoreV1(),
			client.Discovery().ServerPreferredNamespacedResources, corev1.FinalizerKubernetes),
	}
	factory := informers.NewSharedInformerFactoryWithOptions(client, 0, informers.WithTransform(dropManagedFields))
	informer := factory.Core().V1().Namespaces().Informer()
	if _, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    reaper.enqueue,
		UpdateFunc: func(_, object any) { reaper.enqueue(object) },
	}); err != nil {
		return fmt.Errorf("watching namespaces: %w", err)
	}
	factory.Start(ctx.Done())
	defer factory.Shutdown()
	defer reaper.queue.ShutDown()
	var group wait.Group
	for range namespaceWorkers {
		group.Start(func() { reaper.work(ctx) })
	}
	<-ctx.Done()
	return nil
}

func dropManagedFields(object any) (any, error) {
	if accessor, err := meta.Accessor(object); err == nil {
		accessor.SetManagedFields(nil)
	}
	return object, nil
}

func (r *namespaceReaper) enqueue(object any) {
	if namespace, ok := object.(*corev1.Namespace); ok && !namespace.DeletionTimestamp.IsZero() {
		r.queue.AddAfter(namespace.Name, namespaceGrace)
	}
}

func (r *namespaceReaper) work(ctx context.Context) {
	for {
		name, stop := r.queue.Get()
		if stop {
			return
		}
		err := r.deleter.Delete(ctx, name)
		var remaining *deletion.ResourcesRemainingError
		switch {
		case err == nil:
			r.queue.Forget(name)
		case errors.As(err, &remaining):
			r.queue.AddRateLimited(name)
		default:
			klog.ErrorS(err, "Emptying a namespace failed", "namespace", name)
			r.queue.AddRateLimited(name)
		}
		r.queue.Done(name)
	}
}

package detector

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/util/workqueue"

	"github.com/karmada-toolkit/karmada/internal/controllers"
)

// objectKey identifies a template.
type objectKey struct {
	gvk             schema.GroupVersionKind
	namespace, name string
}

func keyOf(obj *unstructured.Unstructured) objectKey {
	return objectKey{gvk: obj.GroupVersionKind(), namespace: obj.GetNamespace(), name: obj.GetName()}
}

// templateKey is a request to the template reconciler.
type templateKey struct {
	objectKey
	// byPolicy is true if no user changed the template, so that a lazy policy is not
	// applied.
	byPolicy bool
}

// String returns the template in logs.
func (k templateKey) String() string {
	return fmt.Sprintf("%s, %s/%s", k.gvk, k.namespace, k.name)
}

type workQueue = workqueue.TypedRateLimitingInterface[templateKey]

// queue is the queue of the template reconciler, to which the policy reconcilers add.
type queue struct {
	ready chan struct{}
	inner workQueue
}

func newQueue() *queue { return &queue{ready: make(chan struct{})} }

func (q *queue) start(inner workQueue) {
	q.inner = inner
	close(q.ready)
}

// wait blocks until keys can be added.
func (q *queue) wait(ctx context.Context) error {
	select {
	case <-q.ready:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("waiting for the detector: %w", context.Cause(ctx))
	}
}

// addLowPriority adds a template after those that users changed.
func (q *queue) addLowPriority(key templateKey) { controllers.AddLowPriority(q.inner, key) }

// addAfter adds a template when a duration has passed.
func (q *queue) addAfter(key templateKey, d time.Duration) { q.inner.AddAfter(key, d) }

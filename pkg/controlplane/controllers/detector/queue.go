package detector

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/util/workqueue"

	"github.com/karmada-toolkit/karmada/internal/controllers"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/interpreter/notify"
)

// objectKey names a template.
type objectKey struct {
	gvk             schema.GroupVersionKind
	namespace, name string
}

func keyOf(obj *unstructured.Unstructured) objectKey {
	return objectKey{gvk: obj.GroupVersionKind(), namespace: obj.GetNamespace(), name: obj.GetName()}
}

// templateKey is what the template reconciler works on.
type templateKey struct {
	objectKey
	// byPolicy says that no user touched the template, so that a lazy policy must
	// not take effect.
	byPolicy bool
}

// String names the template in logs.
func (k templateKey) String() string {
	return fmt.Sprintf("%s, %s/%s", k.gvk, k.namespace, k.name)
}

type workQueue = workqueue.TypedRateLimitingInterface[templateKey]

// queue is the queue of the template reconciler, which others add to.
type queue struct {
	ready chan struct{}
	inner workQueue
}

func newQueue() *queue { return &queue{ready: make(chan struct{})} }

func (q *queue) start(inner workQueue) {
	q.inner = inner
	close(q.ready)
}

// wait waits until keys can be added.
func (q *queue) wait(ctx context.Context) error {
	select {
	case <-q.ready:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("waiting for the detector: %w", context.Cause(ctx))
	}
}

// addLowPriority adds a template whose change no user waits for.
func (q *queue) addLowPriority(key templateKey) { controllers.AddLowPriority(q.inner, key) }

// templateSource feeds the template reconciler.
type templateSource struct{ d *detector }

// Start begins to listen.
func (s templateSource) Start(ctx context.Context, q workQueue) error {
	s.d.queue.start(q)
	notify.Subscribe(s.d.interpreter, func(affects func(schema.GroupVersionKind) bool) { s.d.relearn(ctx, affects) })
	return s.d.store.Subscribe(s.d.onTemplate)
}

// WaitForSync waits for the first list of all templates.
func (s templateSource) WaitForSync(ctx context.Context) error { return s.d.store.WaitForSync(ctx) }

package templates

import (
	"context"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"
)

// Reader reads templates and publishes their changes. A Store is one.
type Reader interface {
	Get(ctx context.Context, gvk schema.GroupVersionKind, namespace, name string) (*unstructured.Unstructured, error)
	Subscribe(handler Handler, kinds ...schema.GroupKind) error
	WaitForSync(ctx context.Context) error
}

// Source is the source of requests that follow from changes of templates. It delays the
// start of its controller until the templates were listed once.
type Source struct {
	Store Reader
	// Kinds are those of the templates. Default: all.
	Kinds []schema.GroupKind
	// Requests returns the requests that follow from a change. Default: none.
	Requests func(context.Context, Event) []reconcile.Request
}

var _ source.SyncingSource = Source{}

// Start enqueues the requests of every change.
func (s Source) Start(ctx context.Context, q workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
	if s.Requests == nil {
		return nil
	}
	return s.Store.Subscribe(func(e Event) {
		for _, req := range s.Requests(ctx, e) {
			q.Add(req)
		}
	}, s.Kinds...)
}

// WaitForSync waits for the first list of all templates.
func (s Source) WaitForSync(ctx context.Context) error { return s.Store.WaitForSync(ctx) }

// Same returns the request for namespace and name of the template itself.
func Same(_ context.Context, e Event) []reconcile.Request {
	return []reconcile.Request{{NamespacedName: client.ObjectKeyFromObject(e.Object())}}
}

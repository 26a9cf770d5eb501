// Package notify has objects looked at again when their kind gets other rules,
// and no others.
package notify

import (
	"context"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	workv1alpha2 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha2"
)

// Priority is that of work that nobody waits for.
const Priority = -100

// Announcer is an interpreter whose rules change.
type Announcer interface {
	// OnChange has f called after every change, with a function that says whether
	// the rules of a kind may be other than before.
	OnChange(f func(affects func(schema.GroupVersionKind) bool))
}

// Listen has f called when the rules of an interpreter change. The rules of an
// interpreter that is no Announcer never do.
func Listen(interpreter any, f func(affects func(schema.GroupVersionKind) bool)) {
	if a, ok := interpreter.(Announcer); ok {
		a.OnChange(f)
	}
}

// Bindings returns a source of the bindings whose templates are of a kind that
// gets other rules. wanted may leave some out; nil leaves out none.
func Bindings(interpreter any, reader client.Reader, newList func() workv1alpha2.BindingList, wanted func(workv1alpha2.Binding) bool) source.Source {
	return source.Func(func(ctx context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
		Listen(interpreter, func(affects func(schema.GroupVersionKind) bool) {
			if ctx.Err() != nil {
				return
			}
			list := newList()
			if err := reader.List(ctx, list, client.UnsafeDisableDeepCopy); err != nil {
				log.FromContext(ctx).Error(err, "Listing bindings whose rules changed")
				return
			}
			for _, b := range list.Bindings() {
				ref := &b.GetSpec().Resource
				if affects(schema.FromAPIVersionAndKind(ref.APIVersion, ref.Kind)) && (wanted == nil || wanted(b)) {
					add(queue, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(b)})
				}
			}
		})
		return nil
	})
}

func add(queue workqueue.TypedRateLimitingInterface[reconcile.Request], r reconcile.Request) {
	if q, ok := queue.(priorityqueue.PriorityQueue[reconcile.Request]); ok {
		q.AddWithOpts(priorityqueue.AddOpts{Priority: new(Priority)}, r)
		return
	}
	queue.Add(r)
}

// Package notify requeues the objects of a kind when the rules of that kind
// change.
package notify

import (
	"context"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/karmada-toolkit/karmada/internal/controllers"
	workv1alpha2 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha2"
	"github.com/karmada-toolkit/karmada/pkg/domain/interpreter"
)

// Subscribe has f called when the rules of an interpreter change, with a function
// that reports whether those of a kind may have. The rules of an interpreter
// without a Notifier never change.
func Subscribe(of any, f func(affects func(schema.GroupVersionKind) bool)) {
	if i, ok := of.(interface{ Notifier() *interpreter.Notifier }); ok {
		i.Notifier().Subscribe(f)
	}
}

// Bindings returns a source of the bindings whose templates are of a kind with
// changed rules, with low priority. wanted selects among them; nil selects all.
func Bindings(of any, reader client.Reader, newList func() workv1alpha2.BindingList, wanted func(workv1alpha2.Binding) bool) source.Source {
	return source.Func(func(ctx context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
		Subscribe(of, func(affects func(schema.GroupVersionKind) bool) {
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
					controllers.AddLowPriority(queue, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(b)})
				}
			}
		})
		return nil
	})
}

// Package hpatarget marks the targets of propagated HorizontalPodAutoscalers, so that members keep the replicas that
// the autoscalers there set.
package hpatarget

import (
	"context"
	"fmt"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/karmada-toolkit/karmada/internal/controllers"
	"github.com/karmada-toolkit/karmada/internal/patch"
	workv1alpha2 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha2"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/env"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/templates"
	"github.com/karmada-toolkit/karmada/pkg/domain/autoscaling"
)

// Component is the name of the controller.
const Component = "hpa-scale-target-marker"

type reconciler struct {
	client client.Client
	live   client.Reader
}

// target is the key of the queue: what is marked, not the autoscaler, so that changes of several autoscalers of one
// target cannot be applied in the wrong order.
type target struct {
	namespace string
	ref       autoscalingv2.CrossVersionObjectReference
}

type queue = workqueue.TypedRateLimitingInterface[target]

// Setup adds the controller to the manager.
func Setup(_ context.Context, e *env.Env) error {
	r := &reconciler{client: e.Client, live: e.Live}
	return builder.TypedControllerManagedBy[target](e.Manager).Named(Component).
		Watches(&autoscalingv2.HorizontalPodAutoscaler{}, enqueue()).
		WatchesRawSource(source.TypedFunc[target](func(ctx context.Context, q queue) error {
			return e.Store.Subscribe(func(e templates.Event) {
				for _, t := range r.unmarked(ctx, e) {
					q.Add(t)
				}
			})
		})).
		WithOptions(controllers.OptionsOf(1, 1, e.Retry, func(t target) string { return t.namespace })).
		Complete(r)
}

func enqueue() handler.TypedEventHandler[client.Object, target] {
	add := func(q queue, obj client.Object) {
		if h, ok := obj.(*autoscalingv2.HorizontalPodAutoscaler); ok {
			q.Add(target{h.Namespace, h.Spec.ScaleTargetRef})
		}
	}
	return handler.TypedFuncs[client.Object, target]{
		CreateFunc: func(_ context.Context, e event.CreateEvent, q queue) { add(q, e.Object) },
		UpdateFunc: func(_ context.Context, e event.UpdateEvent, q queue) {
			add(q, e.ObjectOld)
			add(q, e.ObjectNew)
		},
		DeleteFunc: func(_ context.Context, e event.DeleteEvent, q queue) { add(q, e.Object) },
	}
}

// unmarked returns the targets that an object is, if another client changed its label. Of an object of another version than
// an autoscaler refers to, the target is the same.
func (r *reconciler) unmarked(ctx context.Context, e templates.Event) []target {
	if e.Old == nil || e.New == nil || e.Old.GetLabels()[workv1alpha2.RetainReplicasLabel] == e.New.GetLabels()[workv1alpha2.RetainReplicasLabel] {
		return nil
	}
	var out []target
	of := client.InNamespace(e.New.GetNamespace())
	for _, h := range controllers.Listed(ctx, r.client, &autoscalingv2.HorizontalPodAutoscalerList{}, of).Items {
		ref, gvk := h.Spec.ScaleTargetRef, e.New.GroupVersionKind()
		gv, err := schema.ParseGroupVersion(ref.APIVersion)
		if err == nil && gv.Group == gvk.Group && ref.Kind == gvk.Kind && ref.Name == e.New.GetName() {
			out = append(out, target{h.Namespace, ref})
		}
	}
	return out
}

// Reconcile sets or removes the label of a target.
func (r *reconciler) Reconcile(ctx context.Context, t target) (reconcile.Result, error) {
	hpas := &autoscalingv2.HorizontalPodAutoscalerList{}
	if err := r.client.List(ctx, hpas, client.InNamespace(t.namespace)); err != nil {
		return reconcile.Result{}, fmt.Errorf("listing HorizontalPodAutoscalers: %w", err)
	}
	marking := autoscaling.Mark(t.ref, hpas.Items)
	if marking == autoscaling.KeepMark {
		return reconcile.Result{}, nil
	}
	return reconcile.Result{}, r.mark(ctx, t, marking == autoscaling.AddMark)
}

func (r *reconciler) mark(ctx context.Context, t target, marked bool) error {
	obj := &metav1.PartialObjectMetadata{}
	gv, err := schema.ParseGroupVersion(t.ref.APIVersion)
	if err != nil {
		return reconcile.TerminalError(fmt.Errorf("target %s %q in namespace %q: %w", t.ref.Kind, t.ref.Name, t.namespace, err))
	}
	obj.SetGroupVersionKind(gv.WithKind(t.ref.Kind))
	// A reference is to an object of the autoscaler's namespace, never to one without.
	namespaced, err := r.client.IsObjectNamespaced(obj)
	if err != nil || !namespaced {
		return err
	}
	if err := r.live.Get(ctx, types.NamespacedName{Namespace: t.namespace, Name: t.ref.Name}, obj); err != nil {
		return client.IgnoreNotFound(err)
	}
	value, has := obj.Labels[workv1alpha2.RetainReplicasLabel]
	if marked && value == "true" || !marked && !has {
		return nil
	}
	var label *string
	if marked {
		label = new("true")
	}
	change := patch.Merge(map[string]any{"metadata": map[string]any{"labels": map[string]any{workv1alpha2.RetainReplicasLabel: label}}})
	log.FromContext(ctx).Info("Marking target", "kind", t.ref.Kind, "target", klog.KObj(obj), "marked", marked)
	return client.IgnoreNotFound(r.client.Patch(ctx, obj, change))
}

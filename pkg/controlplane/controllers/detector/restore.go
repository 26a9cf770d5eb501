package detector

import (
	"context"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"

	"github.com/karmada-toolkit/karmada/internal/controllers"
	workv1alpha2 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha2"
	"github.com/karmada-toolkit/karmada/pkg/domain/scope"
)

// restorer enqueues the templates of bindings that others deleted, or in which others
// changed what the detector writes.
type restorer struct{ bindings *bindings }

// handler handles the events of the bindings of both scopes.
func (r *restorer) handler() handler.TypedEventHandler[client.Object, templateKey] {
	return handler.TypedFuncs[client.Object, templateKey]{
		UpdateFunc: func(_ context.Context, e event.TypedUpdateEvent[client.Object], q workQueue) {
			r.changed(e.ObjectOld, e.ObjectNew, q)
		},
		DeleteFunc: func(_ context.Context, e event.TypedDeleteEvent[client.Object], q workQueue) { r.deleted(e.Object, q) },
	}
}

// deleted enqueues the template of a binding that is gone. A lazy policy is applied as
// well: without a binding nothing of the template is in any cluster.
func (r *restorer) deleted(obj client.Object, q workQueue) {
	if key, ok := templateOf(obj); ok {
		r.bindings.remember(key, obj.(workv1alpha2.Binding))
		q.Add(templateKey{objectKey: key})
	}
}

// changed enqueues the template of a binding that differs from what the detector wrote.
// No user changed the template, so a lazy policy is not applied.
func (r *restorer) changed(before, after client.Object, q workQueue) {
	old, okOld := before.(workv1alpha2.Binding)
	now, okNow := after.(workv1alpha2.Binding)
	if !okOld || !okNow || now.GetDeletionTimestamp() != nil || !ownDiffers(old, now) {
		return
	}
	key, ok := templateOf(now)
	if !ok || r.bindings.wrote(key, now) {
		return
	}
	controllers.AddLowPriority(q, templateKey{objectKey: key, byPolicy: true})
}

// templateOf returns the template that a binding is named for. Bindings that users
// create have other names.
func templateOf(obj client.Object) (objectKey, bool) {
	binding, ok := obj.(workv1alpha2.Binding)
	if !ok {
		return objectKey{}, false
	}
	ref := &binding.GetSpec().Resource
	if !scope.Canonical(binding) {
		return objectKey{}, false
	}
	return objectKey{gvk: schema.FromAPIVersionAndKind(ref.APIVersion, ref.Kind), namespace: ref.Namespace, name: ref.Name}, true
}

// ownDiffers reports whether two versions of a binding differ in what the detector
// writes.
func ownDiffers(a, b workv1alpha2.Binding) bool {
	if a.GetGeneration() != b.GetGeneration() || a.GetGeneration() == 0 {
		if !equality.Semantic.DeepEqual(ownSpec(a.GetSpec()), ownSpec(b.GetSpec())) {
			return true
		}
	}
	return !maps.Equal(ownMetadata(a), ownMetadata(b)) || !slices.Equal(a.GetFinalizers(), b.GetFinalizers()) ||
		!equality.Semantic.DeepEqual(a.GetOwnerReferences(), b.GetOwnerReferences())
}

// ownSpec returns a spec without the fields of other writers.
func ownSpec(spec *workv1alpha2.ResourceBindingSpec) *workv1alpha2.ResourceBindingSpec {
	out := *spec
	out.Clusters, out.GracefulEvictionTasks, out.RequiredBy, out.RescheduleTriggeredAt = nil, nil, nil, nil
	if out.Suspension != nil {
		rest := *out.Suspension
		rest.Scheduling = nil
		if out.Suspension = &rest; rest == (workv1alpha2.Suspension{}) {
			out.Suspension = nil
		}
	}
	return &out
}

// ownMetadata returns the labels and annotations that the detector writes on bindings.
func ownMetadata(binding metav1.Object) map[string]string {
	out := map[string]string{}
	for _, key := range append(ownKeys(),
		workv1alpha2.ResourceBindingPermanentIDLabel, workv1alpha2.ClusterResourceBindingPermanentIDLabel) {
		for _, from := range []map[string]string{binding.GetLabels(), binding.GetAnnotations()} {
			if value, ok := from[key]; ok {
				out[key] = value
			}
		}
	}
	return out
}

package binding

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/karmada-toolkit/karmada/internal/patch"
	configv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/config/v1alpha1"
	"github.com/karmada-toolkit/karmada/pkg/apis/names"
	workv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha1"
	workv1alpha2 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha2"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/delivery"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/override"
)

// ReasonNotDeliverable is the reason of events on bindings whose template is not
// delivered because it must not be.
const ReasonNotDeliverable = "NotDeliverable"

// refusal returns why the template of a binding must not be delivered, or nil.
func (r *reconciler) refusal(ctx context.Context, b workv1alpha2.Binding) (*delivery.Refusal, error) {
	ref := &b.GetSpec().Resource
	if refusal := delivery.Check(b.GetNamespace(), ref); refusal != nil || !r.scope.Namespaced || ref.Namespace != "" {
		return refusal, nil
	}
	needed, err := r.needed(ctx, b)
	if err != nil || needed {
		return nil, err
	}
	return &delivery.Refusal{Reason: delivery.ReasonWrongScope, Message: fmt.Sprintf(
		"spec.resource.namespace is empty and no template of namespace %q that propagates its dependencies depends on %s %q",
		b.GetNamespace(), ref.Kind, ref.Name)}, nil
}

// needed reports whether the interpreter names the cluster-scoped object of a
// ResourceBinding as a dependency of a template in the namespace of the binding,
// which follows another binding that propagates dependencies. What the binding
// itself says proves nothing: it can be written by hand.
func (r *reconciler) needed(ctx context.Context, b workv1alpha2.Binding) (bool, error) {
	ref := &b.GetSpec().Resource
	if ref.APIVersion == "" || ref.Kind == "" || ref.Name == "" {
		return false, nil
	}
	for i := range b.GetSpec().RequiredBy {
		by := &b.GetSpec().RequiredBy[i]
		if by.Namespace != b.GetNamespace() {
			continue
		}
		referrer := &workv1alpha2.ResourceBinding{}
		err := r.client.Get(ctx, client.ObjectKey{Namespace: by.Namespace, Name: by.Name}, referrer, client.UnsafeDisableDeepCopy)
		if apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			return false, fmt.Errorf("getting binding %s/%s: %w", by.Namespace, by.Name, err)
		}
		named, err := r.depends(ctx, referrer, ref)
		if err != nil || named {
			return named, err
		}
	}
	return false, nil
}

// depends reports whether the template of a binding depends on a cluster-scoped
// object.
func (r *reconciler) depends(ctx context.Context, referrer *workv1alpha2.ResourceBinding, on *workv1alpha2.ObjectReference) (bool, error) {
	from := &referrer.Spec.Resource
	if referrer.DeletionTimestamp != nil || !referrer.Spec.PropagateDeps || from.Namespace != referrer.Namespace ||
		delivery.Check(referrer.Namespace, from) != nil {
		return false, nil //nolint:nilerr // what is not delivered has no dependencies that are
	}
	gvk := schema.FromAPIVersionAndKind(from.APIVersion, from.Kind)
	if !r.interpreter.HookEnabled(gvk, configv1alpha1.InterpreterOperationInterpretDependency) {
		return false, nil
	}
	template, err := r.store.Get(ctx, gvk, from.Namespace, from.Name)
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	deps, err := r.interpreter.GetDependencies(template.DeepCopy())
	if err != nil {
		return false, fmt.Errorf("getting the dependencies of %s %s/%s: %w", from.Kind, from.Namespace, from.Name, err)
	}
	for i := range deps {
		if named, err := r.refersTo(ctx, &deps[i], on); err != nil || named {
			return named, err
		}
	}
	return false, nil
}

// refersTo reports whether a dependency is on a cluster-scoped object.
func (r *reconciler) refersTo(ctx context.Context, dep *configv1alpha1.DependentObjectReference, on *workv1alpha2.ObjectReference) (bool, error) {
	if dep.APIVersion != on.APIVersion || dep.Kind != on.Kind || dep.Namespace != "" {
		return false, nil
	}
	if dep.Name != "" || dep.LabelSelector == nil {
		return dep.Name == on.Name, nil
	}
	selector, err := metav1.LabelSelectorAsSelector(dep.LabelSelector)
	if err != nil {
		return false, nil //nolint:nilerr // a selector that is invalid selects nothing
	}
	obj, err := r.store.Get(ctx, schema.FromAPIVersionAndKind(on.APIVersion, on.Kind), "", on.Name)
	if err != nil {
		return false, client.IgnoreNotFound(err)
	}
	return selector.Matches(labels.Set(obj.GetLabels())), nil
}

// refuse deletes the Works of a binding that must not deliver, and says why.
func (r *reconciler) refuse(ctx context.Context, b workv1alpha2.Binding, id string, refusal *delivery.Refusal) error {
	if err := r.deleteAll(ctx, b, id); err != nil {
		return err
	}
	r.events.Warning(b, ReasonNotDeliverable, refusal.Message)
	return r.record(ctx, b, refusal)
}

// deleteAll deletes all Works of a binding.
func (r *reconciler) deleteAll(ctx context.Context, b workv1alpha2.Binding, id string) error {
	existing, err := r.worksOf(ctx, b, id)
	if err != nil {
		return err
	}
	owner := ledgerKey(b, id)
	if err := r.deleteWorks(ctx, owner, r.unwanted(owner, existing, "", nil)); err != nil {
		return r.cleanupFailed(b, err)
	}
	return nil
}

// hold returns the binding with the finalizer that keeps it until its Works are
// deleted: bindings made by hand come without.
func (r *reconciler) hold(ctx context.Context, b workv1alpha2.Binding) (workv1alpha2.Binding, error) {
	if slices.Contains(b.GetFinalizers(), r.scope.Finalizer) {
		return b, nil
	}
	next := b.DeepCopyObject().(workv1alpha2.Binding)
	next.SetFinalizers(append(next.GetFinalizers(), r.scope.Finalizer))
	return r.patched(b, next, func(answer client.Object, change client.Patch) error { return r.client.Patch(ctx, answer, change) })
}

// recordOverrides records on the binding that overrides were refused, or that none
// is any more. Other errors do not show which.
func (r *reconciler) recordOverrides(ctx context.Context, b workv1alpha2.Binding, failed error) error {
	switch {
	case errors.Is(failed, override.ErrForbidden):
		return r.record(ctx, b, &delivery.Refusal{Reason: delivery.ReasonOverrideForbidden, Message: failed.Error()})
	case failed == nil:
		return r.record(ctx, b, nil)
	}
	return nil
}

// longestMessage is the length of the message of a condition that the API server
// accepts, in bytes.
const longestMessage = 32768

// record writes the condition that a refusal makes. A binding that is not refused
// has none.
func (r *reconciler) record(ctx context.Context, b workv1alpha2.Binding, refusal *delivery.Refusal) error {
	next := b.DeepCopyObject().(workv1alpha2.Binding)
	changed := false
	if refusal == nil {
		changed = meta.RemoveStatusCondition(&next.GetStatus().Conditions, delivery.Condition)
	} else {
		message := refusal.Message
		if len(message) > longestMessage {
			message = message[:longestMessage]
		}
		changed = meta.SetStatusCondition(&next.GetStatus().Conditions, metav1.Condition{
			Type: delivery.Condition, Status: metav1.ConditionFalse, Reason: refusal.Reason, Message: message,
			LastTransitionTime: metav1.NewTime(r.clock.Now()),
		})
	}
	if !changed {
		return nil
	}
	_, err := r.patched(b, next, func(answer client.Object, change client.Patch) error {
		return r.client.Status().Patch(ctx, answer, change)
	})
	return client.IgnoreNotFound(err)
}

// patched writes what differs, unless the binding changed meanwhile, and returns
// the binding as it is then. before is only read.
func (r *reconciler) patched(before, after workv1alpha2.Binding, write func(client.Object, client.Patch) error) (workv1alpha2.Binding, error) {
	unversioned := before.DeepCopyObject().(workv1alpha2.Binding)
	unversioned.SetResourceVersion("") // lists are patched as a whole: refuse to undo what another writer added
	change, _, err := patch.Diff(unversioned, after)
	if err != nil {
		return nil, err
	}
	answer := r.scope.New()
	answer.SetNamespace(before.GetNamespace())
	answer.SetName(before.GetName())
	if err := write(answer, change); err != nil {
		return nil, fmt.Errorf("patching %s %s: %w", r.scope.Kind, client.ObjectKeyFromObject(before), err)
	}
	return answer, nil
}

// discard deletes the Work that a cluster still has from before an override was
// refused, if it carries another object than the template.
func (s *syncing) discard(ctx context.Context, cluster string, refused error) error {
	if !errors.Is(refused, override.ErrForbidden) {
		return nil
	}
	for i := range s.existing {
		w := &s.existing[i]
		if w.Namespace != names.ExecutionNamespace(cluster) || w.DeletionTimestamp != nil || carries(w, s.template) {
			continue
		}
		if err := s.client.Delete(ctx, &workv1alpha1.Work{ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: w.Name}}); err != nil {
			return client.IgnoreNotFound(err)
		}
	}
	return nil
}

// carries reports whether every manifest of a Work is the template.
func carries(w *workv1alpha1.Work, template *unstructured.Unstructured) bool {
	want := override.IdentityOf(template)
	for i := range w.Spec.Workload.Manifests {
		obj := map[string]any{}
		if json.Unmarshal(w.Spec.Workload.Manifests[i].Raw, &obj) != nil || want.Check(obj) != nil {
			return false
		}
	}
	return true
}

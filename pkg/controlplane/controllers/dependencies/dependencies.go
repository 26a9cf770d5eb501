// Package dependencies propagates the objects that a template refers to into the
// clusters of the template: it attaches to each a binding that follows the clusters of
// the template's own binding.
package dependencies

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/karmada-toolkit/karmada/internal/controllers"
	"github.com/karmada-toolkit/karmada/internal/events"
	"github.com/karmada-toolkit/karmada/internal/status"
	configv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/config/v1alpha1"
	workv1alpha2 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha2"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/delivery"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/env"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/interpretation/notify"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/templates"
	"github.com/karmada-toolkit/karmada/pkg/domain/dependency"
	"github.com/karmada-toolkit/karmada/pkg/domain/scope"
)

// Component is the name of the controller and the source of its events.
const Component = "dependencies-distributor"

// reconciler attaches bindings to the dependencies of the templates of others.
type reconciler struct {
	client   client.Client
	store    *templates.Store
	pending  *delivery.Pending
	resolver *resolver
	bindings *bindings
	attacher *attacher
	events   *recorder
}

func newReconciler(e *env.Env, recorded *events.Recorder) *reconciler {
	rec, bindings := &recorder{recorded}, &bindings{client: e.Client, live: e.Live}
	return &reconciler{
		client: e.Client, store: e.Store, bindings: bindings, events: rec, pending: delivery.NewPending(e.Clock),
		resolver: &resolver{store: e.Store, interpreter: e.Interpreter},
		attacher: &attacher{bindings: bindings, events: rec, contents: status.NewMemory[types.NamespacedName, content](0)},
	}
}

// Setup adds the controller to the manager.
func Setup(ctx context.Context, e *env.Env) error {
	if err := errors.Join(e.Index(ctx, &workv1alpha2.ResourceBinding{}, followsIndex, follows), e.Index(ctx, &workv1alpha2.ResourceBinding{}, dependsIndex, depends)); err != nil {
		return err
	}
	r := newReconciler(e, e.Recorder(Component))
	return e.Controller(Component, e.DependentSyncs, 2).
		For(&workv1alpha2.ResourceBinding{}, builder.WithPredicates(propagating())).
		Watches(&workv1alpha2.ResourceBinding{}, controllers.Enqueue(referrersOf), builder.WithPredicates(detached())).
		WatchesRawSource(templates.Source{Store: e.Store, Requests: r.changed}).
		WatchesRawSource(notify.Bindings(e.Interpreter, r.client, newBindings, following)).
		Complete(r)
}

func newBindings() workv1alpha2.BindingList { return &workv1alpha2.ResourceBindingList{} }

// following reports whether the dependencies of a template follow it.
func following(b workv1alpha2.Binding) bool { return b.GetSpec().PropagateDeps }

// Reconcile attaches bindings to what the template of one binding refers to.
func (r *reconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	b := &workv1alpha2.ResourceBinding{}
	if err := r.client.Get(ctx, req.NamespacedName, b, client.UnsafeDisableDeepCopy); err != nil {
		r.pending.Forget(req.NamespacedName)
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if !b.Spec.PropagateDeps || b.DeletionTimestamp != nil {
		return reconcile.Result{}, r.finalize(ctx, b)
	}
	if after := r.pending.Wait(b); after > 0 {
		return reconcile.Result{RequeueAfter: after}, nil
	}
	return reconcile.Result{}, r.follow(ctx, b)
}

// follow attaches the bindings of what the template of a binding refers to.
func (r *reconciler) follow(ctx context.Context, b *workv1alpha2.ResourceBinding) error {
	if !dependency.Attaches(b) {
		return nil
	}
	ref := &b.Spec.Resource
	if ref.Namespace == "" || delivery.Check(b.Namespace, ref) != nil {
		return r.finalize(ctx, b) // the binding controller reports why nothing is delivered
	}
	obj, err := r.store.Get(ctx, schema.FromAPIVersionAndKind(ref.APIVersion, ref.Kind), ref.Namespace, ref.Name)
	if apierrors.IsNotFound(err) {
		return nil // the binding is deleted with its template
	}
	if err != nil {
		return err
	}
	deps, err := r.dependencies(b, obj)
	if err != nil {
		r.events.notInterpreted(obj, err)
		return err
	}
	deps, refused := r.resolver.allowed(b.Namespace, deps)
	if len(deps) == 0 && !dependency.Held(b) {
		r.events.independent(obj)
		return nil
	}
	recorded, err := r.record(ctx, client.ObjectKeyFromObject(b), deps)
	if err != nil {
		return err
	}
	if recorded {
		r.events.interpreted(obj, len(deps))
	}
	changed, err := r.distribute(ctx, b, deps)
	r.events.distributed(b, changed, errors.Join(append([]error{err}, refused...)...))
	return err
}

// dependencies returns what the template of a binding refers to. What a policy released stays in the clusters as it was delivered, and with it
// what that refers to.
func (r *reconciler) dependencies(b *workv1alpha2.ResourceBinding, obj *unstructured.Unstructured) ([]configv1alpha1.DependentObjectReference, error) {
	if deps := recorded(b); len(deps) > 0 && scope.Released(b) {
		return deps, nil
	}
	return r.resolver.dependencies(obj)
}

// distribute attaches the bindings of the dependencies and detaches those that are no
// longer dependencies. It reports whether anything was written.
func (r *reconciler) distribute(ctx context.Context, b *workv1alpha2.ResourceBinding, deps []configv1alpha1.DependentObjectReference) (bool, error) {
	attached, err := r.bindings.attachedTo(ctx, b)
	if err != nil {
		return false, err
	}
	objs, err := r.resolver.objects(ctx, deps)
	if err != nil {
		return false, err
	}
	var changed bool
	var errs []error
	for i := range attached {
		if wanted, err := delivery.Depends(ctx, r.store, deps, &attached[i].Spec.Resource); err != nil || wanted {
			errs = append(errs, err)
			continue
		}
		wrote, err := r.attacher.detach(ctx, b, client.ObjectKeyFromObject(&attached[i]))
		changed, errs = changed || wrote, append(errs, err)
	}
	for _, obj := range objs {
		wrote, err := r.attacher.attach(ctx, b, obj)
		changed, errs = changed || wrote, append(errs, err)
	}
	return changed, errors.Join(errs...)
}

// record writes the dependencies on the binding, with the finalizer that is kept until
// everything is detached. It reports whether it wrote.
func (r *reconciler) record(ctx context.Context, key types.NamespacedName, deps []configv1alpha1.DependentObjectReference) (bool, error) {
	if deps == nil {
		deps = []configv1alpha1.DependentObjectReference{}
	}
	data, err := json.Marshal(deps)
	if err != nil {
		return false, fmt.Errorf("encoding dependencies: %w", err)
	}
	return r.bindings.update(ctx, key, func(b *workv1alpha2.ResourceBinding) (bool, error) {
		if b == nil || b.DeletionTimestamp != nil {
			return false, nil
		}
		next := b.DeepCopy()
		metav1.SetMetaDataAnnotation(&next.ObjectMeta, workv1alpha2.BindingDependenciesAnnotation, string(data))
		controllerutil.AddFinalizer(next, workv1alpha2.BindingDependenciesDistributorFinalizer)
		return r.bindings.write(ctx, b, next)
	})
}

// finalize detaches everything and removes the finalizer.
func (r *reconciler) finalize(ctx context.Context, b *workv1alpha2.ResourceBinding) error {
	if !dependency.Held(b) {
		return nil
	}
	attached, err := r.bindings.attachedTo(ctx, b)
	if err != nil {
		return err
	}
	var errs []error
	for i := range attached {
		_, err := r.attacher.detach(ctx, b, client.ObjectKeyFromObject(&attached[i]))
		errs = append(errs, err)
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	_, err = r.bindings.update(ctx, client.ObjectKeyFromObject(b), func(b *workv1alpha2.ResourceBinding) (bool, error) {
		if b == nil {
			return false, nil
		}
		next := b.DeepCopy()
		delete(next.Annotations, workv1alpha2.BindingDependenciesAnnotation)
		controllerutil.RemoveFinalizer(next, workv1alpha2.BindingDependenciesDistributorFinalizer)
		return r.bindings.write(ctx, b, next)
	})
	return client.IgnoreNotFound(err)
}

// Reasons of events on templates and bindings.
const (
	ReasonGetDependenciesSucceed = "GetDependenciesSucceed"
	ReasonGetDependenciesFailed  = "GetDependenciesFailed"
	ReasonSyncSucceed            = "SyncScheduleResultToDependenciesSucceed"
	ReasonSyncFailed             = "SyncScheduleResultToDependenciesFailed"
	ReasonPolicyConflict         = "DependencyPolicyConflict"
)

// recorder records the events of the controller.
type recorder struct{ events *events.Recorder }

// notInterpreted records why the dependencies of a template are unknown.
func (r *recorder) notInterpreted(template *unstructured.Unstructured, err error) {
	r.events.Warning(template, ReasonGetDependenciesFailed, err.Error())
}

// independent records that a template has no dependencies.
func (r *recorder) independent(template *unstructured.Unstructured) {
	r.events.Detail(template, ReasonGetDependenciesSucceed, "Get dependencies(0) succeed.")
}

// interpreted records that the dependencies of a template changed.
func (r *recorder) interpreted(template *unstructured.Unstructured, n int) {
	r.events.Normal(template, ReasonGetDependenciesSucceed, fmt.Sprintf("Get dependencies(%d) succeed.", n))
}

// distributed records the outcome of attaching bindings: a failure, or a change.
func (r *recorder) distributed(b *workv1alpha2.ResourceBinding, changed bool, err error) {
	switch {
	case apierrors.IsConflict(err):
	case err != nil:
		r.events.Warning(b, ReasonSyncFailed, fmt.Sprintf("Sync schedule results to dependencies failed: %v", err))
	case changed:
		r.events.Normal(b, ReasonSyncSucceed, "Sync schedule results to dependencies succeed.")
	default:
		r.events.Recovered(b)
	}
}

// conflict records what the referrers of an attached binding do not agree on.
func (r *recorder) conflict(attached *workv1alpha2.ResourceBinding, fields string) {
	r.events.Warning(attached, ReasonPolicyConflict, "Dependency policy conflict detected: "+fields+".")
}

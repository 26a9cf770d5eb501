// Package dependencies sends what a template refers to where the template goes:
// it attaches a binding to each such object that follows the clusters of the
// template's own binding.
package dependencies

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/karmada-toolkit/karmada/internal/controllers"
	"github.com/karmada-toolkit/karmada/internal/events"
	"github.com/karmada-toolkit/karmada/internal/patch"
	configv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/config/v1alpha1"
	workv1alpha2 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha2"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/delivery"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/interpreter/notify"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/templates"
)

// Component is the name of the controller and the source of its events.
const Component = "dependencies-distributor"

// Reasons of events on templates and bindings.
const (
	ReasonGetDependenciesSucceed = "GetDependenciesSucceed"
	ReasonGetDependenciesFailed  = "GetDependenciesFailed"
	ReasonSyncSucceed            = "SyncScheduleResultToDependenciesSucceed"
	ReasonSyncFailed             = "SyncScheduleResultToDependenciesFailed"
	ReasonPolicyConflict         = "DependencyPolicyConflict"
)

// Interpreter tells what a template refers to. It only reads the object.
type Interpreter interface {
	HookEnabled(gvk schema.GroupVersionKind, op configv1alpha1.InterpreterOperation) bool
	GetDependencies(obj *unstructured.Unstructured) ([]configv1alpha1.DependentObjectReference, error)
}

// Deps is what the controller needs beside a manager.
type Deps struct {
	Store       *templates.Store
	Interpreter Interpreter
	// Syncs is the number of workers; 0 means 2.
	Syncs int
	// Events selects which successes are recorded. Default: events.Transitions.
	Events events.Mode
	// Retry bounds the delay between attempts.
	Retry controllers.Retry
}

type reconciler struct {
	client      client.Client
	live        client.Reader
	store       *templates.Store
	interpreter Interpreter
	events      *events.Recorder
	versions    *versions
}

// Setup adds the controller to the manager.
func Setup(ctx context.Context, mgr manager.Manager, d Deps) error {
	if err := index(ctx, mgr.GetFieldIndexer()); err != nil {
		return err
	}
	r := &reconciler{
		client: mgr.GetClient(), live: mgr.GetAPIReader(), store: d.Store, interpreter: d.Interpreter,
		events: events.ForManager(mgr, Component, d.Events), versions: newVersions(),
	}
	err := builder.ControllerManagedBy(mgr).Named(Component).
		For(&workv1alpha2.ResourceBinding{}, builder.WithPredicates(propagating())).
		WatchesRawSource(source{r}).
		WatchesRawSource(notify.Bindings(d.Interpreter, r.client, newBindings, following)).
		WithOptions(controllers.Options(d.Syncs, 2, d.Retry)).
		Complete(r)
	if err != nil {
		return fmt.Errorf("adding %s: %w", Component, err)
	}
	return nil
}

func newBindings() workv1alpha2.BindingList { return &workv1alpha2.ResourceBindingList{} }

// following says whether the dependencies of a template follow it.
func following(b workv1alpha2.Binding) bool { return b.GetSpec().PropagateDeps }

// Reconcile attaches bindings to what the template of one binding refers to.
func (r *reconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	b := &workv1alpha2.ResourceBinding{}
	if err := r.client.Get(ctx, req.NamespacedName, b, client.UnsafeDisableDeepCopy); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if !b.Spec.PropagateDeps || b.DeletionTimestamp != nil {
		return reconcile.Result{}, r.stop(ctx, b)
	}
	if !held(b) && len(b.Spec.Clusters) == 0 {
		return reconcile.Result{}, nil
	}
	ref := &b.Spec.Resource
	if ref.Namespace == "" || delivery.Check(b.Namespace, ref) != nil {
		return reconcile.Result{}, r.stop(ctx, b) // the binding controller says why nothing is delivered
	}
	obj, err := r.store.Get(ctx, schema.FromAPIVersionAndKind(ref.APIVersion, ref.Kind), ref.Namespace, ref.Name)
	if apierrors.IsNotFound(err) {
		return reconcile.Result{}, nil // the binding goes with its template
	}
	if err != nil {
		return reconcile.Result{}, err
	}
	deps, err := r.dependencies(obj)
	if err != nil {
		r.events.Warning(obj, ReasonGetDependenciesFailed, err.Error())
		return reconcile.Result{}, err
	}
	deps, refused := r.own(b.Namespace, deps)
	if len(deps) == 0 && !held(b) {
		r.events.Detail(obj, ReasonGetDependenciesSucceed, "Get dependencies(0) succeed.")
		return reconcile.Result{}, nil
	}
	recorded, err := r.record(ctx, req.NamespacedName, deps)
	if err != nil {
		return reconcile.Result{}, err
	}
	if recorded {
		r.events.Normal(obj, ReasonGetDependenciesSucceed, fmt.Sprintf("Get dependencies(%d) succeed.", len(deps)))
	}
	changed, err := r.distribute(ctx, b, deps)
	r.report(b, changed, errors.Join(append([]error{err}, refused...)...))
	return reconcile.Result{}, err
}

func (r *reconciler) report(b *workv1alpha2.ResourceBinding, changed bool, err error) {
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

// dependencies returns what a template refers to, sorted.
func (r *reconciler) dependencies(obj *unstructured.Unstructured) ([]configv1alpha1.DependentObjectReference, error) {
	if !r.interpreter.HookEnabled(obj.GroupVersionKind(), configv1alpha1.InterpreterOperationInterpretDependency) {
		return nil, nil
	}
	deps, err := r.interpreter.GetDependencies(obj)
	if err != nil {
		return nil, fmt.Errorf("getting dependencies: %w", err)
	}
	deps = slices.Clone(deps)
	slices.SortStableFunc(deps, compare)
	return deps, nil
}

// own returns the dependencies that a template of the namespace may have, and why
// the others are refused. Interpreters take namespaces from templates, which are
// written by users of the template's namespace.
func (r *reconciler) own(namespace string, deps []configv1alpha1.DependentObjectReference) (own []configv1alpha1.DependentObjectReference, refused []error) {
	for _, dep := range deps {
		ref := workv1alpha2.ObjectReference{APIVersion: dep.APIVersion, Kind: dep.Kind, Namespace: dep.Namespace, Name: dep.Name}
		refusal := delivery.Check(namespace, &ref)
		if refusal == nil && dep.Namespace == "" {
			_, namespaced, known := r.store.Resource(schema.FromAPIVersionAndKind(dep.APIVersion, dep.Kind))
			if known && namespaced || !known && dep.Name == "" {
				refusal = &delivery.Refusal{Reason: delivery.ReasonWrongScope, Message: "the dependency has no namespace"}
			}
		}
		if refusal != nil {
			refused = append(refused, fmt.Errorf("dependency on %s %s/%s: %w", dep.Kind, dep.Namespace, dep.Name, refusal))
			continue
		}
		own = append(own, dep)
	}
	return own, refused
}

// record writes the dependencies, and the finalizer that undoes what follows, on
// the binding. It reports whether it wrote.
func (r *reconciler) record(ctx context.Context, key types.NamespacedName, deps []configv1alpha1.DependentObjectReference) (bool, error) {
	if deps == nil {
		deps = []configv1alpha1.DependentObjectReference{}
	}
	data, err := json.Marshal(deps)
	if err != nil {
		return false, fmt.Errorf("encoding dependencies: %w", err)
	}
	return r.retry(ctx, key, func(b *workv1alpha2.ResourceBinding) (bool, error) {
		if b == nil || b.DeletionTimestamp != nil {
			return false, nil
		}
		next := b.DeepCopy()
		if next.Annotations == nil {
			next.Annotations = map[string]string{}
		}
		next.Annotations[workv1alpha2.BindingDependenciesAnnotation] = string(data)
		if !held(next) {
			next.Finalizers = append(next.Finalizers, workv1alpha2.BindingDependenciesDistributorFinalizer)
		}
		return r.write(ctx, b, next)
	})
}

// held says whether the binding has something attached, or had.
func held(b *workv1alpha2.ResourceBinding) bool {
	return slices.Contains(b.Finalizers, workv1alpha2.BindingDependenciesDistributorFinalizer)
}

// stop detaches everything and lets the binding go.
func (r *reconciler) stop(ctx context.Context, b *workv1alpha2.ResourceBinding) error {
	if !held(b) {
		return nil
	}
	attached, err := r.attachedTo(ctx, b)
	if err != nil {
		return err
	}
	var errs []error
	for i := range attached {
		_, err := r.detach(ctx, b, client.ObjectKeyFromObject(&attached[i]))
		errs = append(errs, err)
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	_, err = r.retry(ctx, client.ObjectKeyFromObject(b), func(b *workv1alpha2.ResourceBinding) (bool, error) {
		if b == nil {
			return false, nil
		}
		next := b.DeepCopy()
		delete(next.Annotations, workv1alpha2.BindingDependenciesAnnotation)
		next.Finalizers = slices.DeleteFunc(next.Finalizers, func(f string) bool {
			return f == workv1alpha2.BindingDependenciesDistributorFinalizer
		})
		return r.write(ctx, b, next)
	})
	return client.IgnoreNotFound(err)
}

// write patches what differs, unless somebody else wrote meanwhile. before is
// only read.
func (r *reconciler) write(ctx context.Context, before, after *workv1alpha2.ResourceBinding) (bool, error) {
	_, differs, err := patch.Diff(before, after)
	if err != nil || !differs {
		return false, err
	}
	// Lists are patched as a whole: refuse to undo what another writer added.
	unversioned := before.DeepCopy()
	unversioned.ResourceVersion = ""
	change, _, err := patch.Diff(unversioned, after)
	if err != nil {
		return false, err
	}
	answer := &workv1alpha2.ResourceBinding{}
	answer.Namespace, answer.Name = before.Namespace, before.Name
	if err := r.client.Patch(ctx, answer, change); err != nil {
		return false, fmt.Errorf("patching binding %s/%s: %w", before.Namespace, before.Name, err)
	}
	return true, nil
}

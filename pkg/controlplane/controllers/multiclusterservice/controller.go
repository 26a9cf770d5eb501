// Package multiclusterservice propagates the Services of MultiClusterServices to their
// providers and consumers, and marks the providers.
package multiclusterservice

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/google/uuid"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/karmada-toolkit/karmada/internal/controllers"
	"github.com/karmada-toolkit/karmada/internal/events"
	"github.com/karmada-toolkit/karmada/internal/patch"
	"github.com/karmada-toolkit/karmada/internal/status"
	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
	"github.com/karmada-toolkit/karmada/pkg/apis/names"
	networkingv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/networking/v1alpha1"
	workv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha1"
	workv1alpha2 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha2"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/env"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/templates"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/works"
	"github.com/karmada-toolkit/karmada/pkg/domain/services"
)

// Component is the name of the controller.
const Component = "multiclusterservice-controller"

const (
	workers    = 5
	remembered = 4096
)

type reconciler struct {
	client     client.Client
	live       client.Reader
	store      templates.Reader
	works      *works.Writer
	events     *events.Recorder
	conditions *status.Writer[*networkingv1alpha1.MultiClusterService, *corev1.ServiceStatus]
	// propagated are the versions of the Services that the bindings refer to.
	propagated *status.Memory[types.NamespacedName, version]
}

// version is a Service as the binding refers to it.
type version struct {
	uid             types.UID
	content         string
	resourceVersion string
}

// Setup adds the controller to the manager.
func Setup(ctx context.Context, e *env.Env, conditions *status.Writer[*networkingv1alpha1.MultiClusterService, *corev1.ServiceStatus]) error {
	r := &reconciler{
		client: e.Client, live: e.Live, store: e.Store, works: e.Works(), events: e.Recorder(Component), conditions: conditions,
		propagated: status.NewMemory[types.NamespacedName, version](remembered),
	}
	if err := e.Index(ctx, &workv1alpha1.Work{}, serviceIndex, controllers.IndexKey(serviceOf)); err != nil {
		return err
	}
	return e.Controller(Component, workers, workers).
		For(&networkingv1alpha1.MultiClusterService{}, builder.WithPredicates(changed())).
		WatchesRawSource(templates.Source{Store: e.Store, Kinds: []schema.GroupKind{serviceKind().GroupKind()}, Requests: templates.Same}).
		Watches(&clusterv1alpha1.Cluster{}, controllers.Enqueue(r.ofCluster), builder.WithPredicates(controllers.Filter[*clusterv1alpha1.Cluster]{Updated: services.UsabilityChanged})).
		Watches(&workv1alpha1.Work{}, controllers.EnqueueKey(services.Marks), builder.WithPredicates(r.works.ChangedByOthers())).
		Watches(&workv1alpha2.ResourceBinding{}, controllers.EnqueueKey(ofBinding), builder.WithPredicates(controllers.Deleted())).
		Complete(r)
}

// Reconcile propagates the Service of one MultiClusterService.
func (r *reconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	mcs := &networkingv1alpha1.MultiClusterService{}
	if err := r.client.Get(ctx, req.NamespacedName, mcs); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if mcs.DeletionTimestamp != nil && !slices.Contains(mcs.Finalizers, services.MCSFinalizer) {
		return reconcile.Result{}, nil
	}
	f, err := r.facts(ctx, mcs)
	if err != nil {
		return reconcile.Result{}, err
	}
	v, err := services.Decide(f)
	if err != nil {
		return reconcile.Result{}, err
	}
	if v.Finalizer {
		if err := r.finalizer(ctx, mcs, true); err != nil {
			return reconcile.Result{}, err
		}
	}
	if err := r.apply(ctx, f, v); err != nil {
		return reconcile.Result{}, err
	}
	if !v.Finalizer {
		if err := r.finalizer(ctx, mcs, false); err != nil {
			return reconcile.Result{}, err
		}
	}
	r.record(mcs, v)
	if v.Condition != nil {
		_, err = r.conditions.Put(ctx, mcs, func(s *corev1.ServiceStatus) { meta.SetStatusCondition(&s.Conditions, *v.Condition) })
	}
	return reconcile.Result{}, errors.Join(retried(v.Err), err)
}

// retried returns an error that passes with time. One that a change of the objects ends is
// in the condition.
func retried(err error) error {
	if errors.Is(err, services.ErrOtherOwner) {
		return err
	}
	return nil
}

// facts reads what decides about a MultiClusterService.
func (r *reconciler) facts(ctx context.Context, mcs *networkingv1alpha1.MultiClusterService) (services.Facts, error) {
	f := services.Facts{MCS: mcs}
	clusters := &clusterv1alpha1.ClusterList{}
	if err := r.client.List(ctx, clusters, client.UnsafeDisableDeepCopy); err != nil {
		return f, fmt.Errorf("listing clusters: %w", err)
	}
	f.Clusters = services.ClustersOf(clusters)
	obj, err := r.store.Get(ctx, serviceKind(), mcs.Namespace, mcs.Name)
	if client.IgnoreNotFound(err) != nil {
		return f, fmt.Errorf("reading service %s/%s: %w", mcs.Namespace, mcs.Name, err)
	}
	if err == nil {
		f.Service = &corev1.Service{}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(obj.Object, f.Service); err != nil {
			return f, fmt.Errorf("decoding service %s/%s: %w", mcs.Namespace, mcs.Name, err)
		}
	}
	binding := &workv1alpha2.ResourceBinding{}
	err = r.client.Get(ctx, types.NamespacedName{Namespace: mcs.Namespace, Name: names.Binding(serviceKind().Kind, mcs.Name)}, binding)
	if client.IgnoreNotFound(err) != nil {
		return f, fmt.Errorf("getting the binding of service %s/%s: %w", mcs.Namespace, mcs.Name, err)
	}
	if err == nil {
		f.Binding = binding
	}
	list := &workv1alpha1.WorkList{}
	if err := r.client.List(ctx, list, client.MatchingFields{serviceIndex: client.ObjectKeyFromObject(mcs).String()}, client.UnsafeDisableDeepCopy); err != nil {
		return f, fmt.Errorf("listing works: %w", err)
	}
	f.Works = controllers.Pointers(list.Items)
	return f, nil
}

// apply writes the objects of a verdict. The Service and its binding are written also if the
// Works of a cluster cannot be.
func (r *reconciler) apply(ctx context.Context, f services.Facts, v services.Verdict) error {
	var errs []error
	for _, next := range v.Write {
		existing, err := r.works.Get(ctx, client.ObjectKeyFromObject(next))
		if err == nil {
			_, err = r.works.Put(ctx, existing, next)
		}
		errs = append(errs, err)
	}
	for _, work := range v.Delete {
		errs = append(errs, r.works.Delete(ctx, work))
	}
	if v.Service != nil {
		errs = append(errs, r.service(ctx, f.Service, v.Service))
	}
	if v.Binding != nil {
		errs = append(errs, r.binding(ctx, f, v.Binding))
	}
	return errors.Join(errs...)
}

// service patches the metadata of the Service.
func (r *reconciler) service(ctx context.Context, before, next *corev1.Service) error {
	change, differs, err := patch.Diff(&metav1.PartialObjectMetadata{ObjectMeta: before.ObjectMeta}, &metav1.PartialObjectMetadata{ObjectMeta: next.ObjectMeta})
	if err != nil || !differs {
		return err
	}
	target := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: next.Namespace, Name: next.Name}}
	if err := r.client.Patch(ctx, target, change); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("patching service %s/%s: %w", next.Namespace, next.Name, err)
	}
	return nil
}

// binding creates or patches the binding of the Service.
func (r *reconciler) binding(ctx context.Context, f services.Facts, next *workv1alpha2.ResourceBinding) error {
	key := client.ObjectKeyFromObject(next)
	if next.Labels[workv1alpha2.ResourceBindingPermanentIDLabel] == "" {
		metav1.SetMetaDataLabel(&next.ObjectMeta, workv1alpha2.ResourceBindingPermanentIDLabel, uuid.NewString())
	}
	if f.Binding == nil {
		if err := r.client.Create(ctx, next); err != nil {
			return fmt.Errorf("creating resourcebinding %s: %w", key, err)
		}
		return nil
	}
	if f.Service != nil {
		r.keepVersion(key, f, next)
	}
	_, _, err := patch.Write(ctx, r.client, f.Binding, next)
	if f.MCS.DeletionTimestamp != nil { // the binding was deleted with its Service
		return client.IgnoreNotFound(err)
	}
	return err
}

// keepVersion keeps the version of the Service in the binding while what is propagated of
// it does not change. What was propagated before a restart is unknown; the binding
// controller compares the Works then.
func (r *reconciler) keepVersion(key types.NamespacedName, f services.Facts, next *workv1alpha2.ResourceBinding) {
	content, err := json.Marshal([]any{f.Service.Spec, f.Service.Labels, f.Service.Annotations})
	if err != nil {
		return
	}
	now := version{f.Service.UID, string(content), f.Service.ResourceVersion}
	last, known := r.propagated.Get(key)
	if f.Binding.Spec.Resource.UID == now.uid && (!known || last.uid == now.uid && last.content == now.content) {
		now.resourceVersion = f.Binding.Spec.Resource.ResourceVersion
	}
	next.Spec.Resource.ResourceVersion = now.resourceVersion
	r.propagated.Set(key, now)
}

// finalizer adds or removes the finalizer. mcs gets the resource version of the write.
func (r *reconciler) finalizer(ctx context.Context, mcs *networkingv1alpha1.MultiClusterService, wanted bool) error {
	next, change := mcs.DeepCopy(), controllerutil.RemoveFinalizer
	if wanted {
		change = controllerutil.AddFinalizer
	}
	if !change(next, services.MCSFinalizer) {
		return nil
	}
	stored, _, err := patch.Write(ctx, r.client, mcs, next)
	if err != nil && (wanted || !apierrors.IsNotFound(err)) {
		return err
	}
	mcs.ResourceVersion = stored.ResourceVersion
	return nil
}

// record records events once per transition.
func (r *reconciler) record(mcs *networkingv1alpha1.MultiClusterService, v services.Verdict) {
	applied := meta.IsStatusConditionTrue(mcs.Status.Conditions, services.ServiceApplied)
	for _, e := range v.Events {
		switch {
		case e.Type == corev1.EventTypeWarning:
			r.events.PartWarning(mcs, e.Message, e.Reason, e.Message)
		case !applied:
			r.events.Normal(mcs, e.Reason, e.Message)
		default:
			r.events.Detail(mcs, e.Reason, e.Message)
		}
	}
}

// Package serviceexport writes the conditions of ServiceExports in the control plane, and for each cluster to the Work.
package serviceexport

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/karmada-toolkit/karmada/internal/controllers"
	"github.com/karmada-toolkit/karmada/internal/status"
	multiclusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/multicluster/v1alpha1"
	"github.com/karmada-toolkit/karmada/pkg/apis/names"
	workv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha1"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/env"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/templates"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/works"
	"github.com/karmada-toolkit/karmada/pkg/domain/services"
)

// Component is the name of the controller.
const Component = "service-export-controller"

const (
	workers = 3
	// serviceIndex finds the Works of an exported Service: with the ServiceExport, with the
	// Service, or with a collected slice.
	serviceIndex = "export.service"
)

type reconciler struct {
	client client.Client
	store  templates.Reader
	works  *works.Writer
	status *status.Writer[*multiclusterv1alpha1.ServiceExport, *multiclusterv1alpha1.ServiceExportStatus]
	clock  clock.PassiveClock
}

func newReconciler(c client.Client, live client.Reader, store templates.Reader, clock clock.PassiveClock) *reconciler {
	return &reconciler{
		client: c, store: store, works: works.NewWriter(c, live), clock: clock,
		status: status.For(c, live, clock, func(e *multiclusterv1alpha1.ServiceExport) *multiclusterv1alpha1.ServiceExportStatus {
			return &e.Status
		}),
	}
}

// Setup adds the controller to the manager.
func Setup(ctx context.Context, e *env.Env) error {
	r := newReconciler(e.Client, e.Live, e.Store, e.Clock)
	if err := e.Index(ctx, &workv1alpha1.Work{}, serviceIndex, controllers.IndexKey(serviceOf)); err != nil {
		return err
	}
	return e.Controller(Component, workers, workers).
		For(&multiclusterv1alpha1.ServiceExport{}, builder.WithPredicates(controllers.Created())).
		WatchesRawSource(templates.Source{Store: e.Store, Kinds: []schema.GroupKind{serviceKind().GroupKind()}, Requests: templates.Same}).
		Watches(&workv1alpha1.Work{}, controllers.EnqueueKey(serviceOf), builder.WithPredicates(changed())).
		Complete(r)
}

func serviceKind() schema.GroupVersionKind { return corev1.SchemeGroupVersion.WithKind("Service") }

// serviceOf returns the Service that a Work is about, if it matters for its export.
func serviceOf(work *workv1alpha1.Work) types.NamespacedName {
	if service := services.Export.ServiceOf(work.Labels); service.Name != "" {
		return service
	}
	if service := services.Exports(work); service.Name != "" {
		return service
	}
	if service := services.ServiceIn(work); service != nil {
		return client.ObjectKeyFromObject(service)
	}
	return types.NamespacedName{}
}

// changed passes Works that are new or deleted, whose content changed unless it is a slice,
// and those that were applied.
func changed() predicate.Predicate {
	applied := func(w *workv1alpha1.Work) bool {
		return meta.IsStatusConditionTrue(w.Status.Conditions, workv1alpha1.WorkApplied)
	}
	return controllers.Filter[*workv1alpha1.Work]{Updated: func(before, now *workv1alpha1.Work) bool {
		return before.DeletionTimestamp.IsZero() != now.DeletionTimestamp.IsZero() || applied(before) != applied(now) ||
			before.Generation != now.Generation && !services.Collected(now)
	}}
}

// Reconcile writes the conditions of one ServiceExport, and has them written in its clusters.
func (r *reconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	export := &multiclusterv1alpha1.ServiceExport{}
	if err := r.client.Get(ctx, req.NamespacedName, export); err != nil || export.DeletionTimestamp != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	from, exports, err := r.clusters(ctx, req.NamespacedName)
	if err != nil {
		return reconcile.Result{}, err
	}
	var template *corev1.Service
	obj, err := r.store.Get(ctx, serviceKind(), req.Namespace, req.Name)
	if client.IgnoreNotFound(err) != nil {
		return reconcile.Result{}, fmt.Errorf("reading service %s: %w", req, err)
	}
	if err == nil {
		template = &corev1.Service{}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(obj.Object, template); err != nil {
			return reconcile.Result{}, fmt.Errorf("decoding service %s: %w", req, err)
		}
	}
	now, conditions := metav1.Time{Time: r.clock.Now()}, services.ExportConditions(req.Name, template, from)
	_, err = r.status.Put(ctx, export, func(s *multiclusterv1alpha1.ServiceExportStatus) {
		for _, c := range conditions {
			c.ObservedGeneration, c.LastTransitionTime = export.Generation, now
			meta.SetStatusCondition(&s.Conditions, c)
		}
	})
	errs := []error{err}
	for _, cluster := range from {
		work := exports[cluster.Name]
		next, changed, err := services.WithStatus(work, services.ExportStatus(conditions, cluster, work, now))
		if err == nil && changed {
			_, err = r.works.Put(ctx, work, next)
		}
		errs = append(errs, err)
	}
	return reconcile.Result{}, errors.Join(errs...)
}

// clusters returns the clusters with the ServiceExport, and the Works with it.
func (r *reconciler) clusters(ctx context.Context, service types.NamespacedName) ([]services.ExportingCluster, map[string]*workv1alpha1.Work, error) {
	list := &workv1alpha1.WorkList{}
	if err := r.client.List(ctx, list, client.MatchingFields{serviceIndex: service.String()}, client.UnsafeDisableDeepCopy); err != nil {
		return nil, nil, fmt.Errorf("listing works: %w", err)
	}
	byName := map[string]*services.ExportingCluster{}
	of := func(cluster string) *services.ExportingCluster {
		if byName[cluster] == nil {
			byName[cluster] = &services.ExportingCluster{Name: cluster}
		}
		return byName[cluster]
	}
	exporting := map[string]*workv1alpha1.Work{}
	for i := range list.Items {
		work := &list.Items[i]
		cluster, err := names.ClusterOfExecutionNamespace(work.Namespace)
		if err != nil || work.DeletionTimestamp != nil {
			continue
		}
		switch {
		case services.Export.ServiceOf(work.Labels) == service:
			of(cluster).Slices++
		case services.Exports(work) == service:
			exporting[cluster] = work
			of(cluster).Since, of(cluster).Applied = work.CreationTimestamp, meta.IsStatusConditionTrue(work.Status.Conditions, workv1alpha1.WorkApplied)
		default:
			of(cluster).Service = services.ServiceIn(work)
		}
	}
	out := make([]services.ExportingCluster, 0, len(exporting))
	for name := range exporting {
		out = append(out, *byName[name])
	}
	return out, exporting, nil
}

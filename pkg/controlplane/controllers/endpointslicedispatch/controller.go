// Package endpointslicedispatch dispatches the slices that are collected for
// MultiClusterServices to the clusters that consume them.
package endpointslicedispatch

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/karmada-toolkit/karmada/internal/controllers"
	"github.com/karmada-toolkit/karmada/internal/events"
	"github.com/karmada-toolkit/karmada/internal/patch"
	"github.com/karmada-toolkit/karmada/internal/status"
	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
	"github.com/karmada-toolkit/karmada/pkg/apis/names"
	networkingv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/networking/v1alpha1"
	workv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha1"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/env"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/works"
	"github.com/karmada-toolkit/karmada/pkg/domain/services"
)

// Component is the name of the controller.
const Component = "endpointslice-dispatch-controller"

// workers is the number of slices that are dispatched at the same time.
const workers = 10

type reconciler struct {
	enabled    bool
	client     client.Client
	lookup     lookup
	works      *works.Writer
	events     *events.Recorder
	results    *results
	conditions *status.Writer[*networkingv1alpha1.MultiClusterService, *corev1.ServiceStatus]
}

// Setup adds the controller to the manager. If it is not enabled, it only lets go of slices that were dispatched while it was.
func Setup(ctx context.Context, e *env.Env, enabled bool, conditions *status.Writer[*networkingv1alpha1.MultiClusterService, *corev1.ServiceStatus]) error {
	found, err := newLookup(ctx, e.Client, e.Manager.GetFieldIndexer())
	if err != nil {
		return err
	}
	r := &reconciler{
		enabled: enabled, client: e.Client, lookup: found, works: e.Works(),
		events: e.Recorder(Component), results: newResults(), conditions: conditions,
	}
	m := mapper{client: e.Client, lookup: found, enabled: enabled}
	b := builder.ControllerManagedBy(e.Manager).Named(Component).
		Watches(&workv1alpha1.Work{}, controllers.Enqueue(m.ofWork), builder.WithPredicates(workChanged(r.works))).
		WithOptions(controllers.OptionsOf(workers, workers, e.Retry, works.Tenant(ctx, e.Client, services.ServiceNamespaceLabel, services.MCSNamespaceLabel)))
	if enabled {
		b = b.Watches(&networkingv1alpha1.MultiClusterService{}, controllers.Enqueue(m.ofService), builder.WithPredicates(controllers.Edited())).
			Watches(&clusterv1alpha1.Cluster{}, controllers.Enqueue(m.all), builder.WithPredicates(controllers.Filter[*clusterv1alpha1.Cluster]{Updated: services.UsabilityChanged}))
	}
	return b.Complete(r)
}

// Reconcile dispatches the slice of one collected Work.
func (r *reconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	source, err := names.ClusterOfExecutionNamespace(req.Namespace)
	if err != nil {
		return reconcile.Result{}, nil //nolint:nilerr // Works elsewhere are none of ours
	}
	work, err := r.works.Get(ctx, req.NamespacedName)
	if err != nil {
		return reconcile.Result{}, err
	}
	dispatched, err := r.lookup.dispatched(ctx, req.NamespacedName)
	if err != nil {
		return reconcile.Result{}, err
	}
	if work == nil || !services.Collected(work) {
		r.results.forget(req.NamespacedName)
		return reconcile.Result{}, r.delete(ctx, dispatched)
	}
	service := services.MCS.ServiceOf(work.Labels)
	if !r.enabled && service.Name != "" && work.DeletionTimestamp == nil {
		return reconcile.Result{}, nil
	}
	f, err := r.facts(ctx, work, source)
	if err != nil {
		return reconcile.Result{}, err
	}
	f.Dispatched = dispatched
	v, err := services.Dispatch(f)
	if err == nil {
		err = r.apply(ctx, work, v)
	}
	if v.Release {
		r.results.forget(req.NamespacedName)
		return reconcile.Result{}, err
	}
	if f.MCS == nil || f.Withdrawn {
		r.results.forget(req.NamespacedName)
	} else {
		r.record(f.MCS, source, v, err)
		r.results.set(service, req.NamespacedName, failure(source, err))
	}
	return reconcile.Result{}, errors.Join(err, r.condition(ctx, f.MCS))
}

func failure(source string, err error) string {
	if err == nil {
		return ""
	}
	return fmt.Sprintf("slice of cluster %s: %v", source, err)
}

// facts returns what decides about a collected Work.
func (r *reconciler) facts(ctx context.Context, work *workv1alpha1.Work, source string) (services.DispatchFacts, error) {
	list := &clusterv1alpha1.ClusterList{}
	if err := r.client.List(ctx, list, client.UnsafeDisableDeepCopy); err != nil {
		return services.DispatchFacts{}, fmt.Errorf("listing clusters: %w", err)
	}
	f := services.DispatchFacts{Work: work, Source: source, Clusters: services.ClustersOf(list)}
	var failed error
	f.Get = func(cluster, name string) *workv1alpha1.Work {
		found, err := r.works.Get(ctx, types.NamespacedName{Namespace: names.ExecutionNamespace(cluster), Name: name})
		failed = errors.Join(failed, err)
		return found
	}
	service := services.MCS.ServiceOf(work.Labels)
	mcs := &networkingv1alpha1.MultiClusterService{}
	switch err := r.client.Get(ctx, service, mcs); {
	case err == nil:
		f.MCS = mcs
	case client.IgnoreNotFound(err) != nil:
		return f, fmt.Errorf("getting multiclusterservice %s: %w", service, err)
	}
	if service.Name == "" {
		return f, failed
	}
	if err := services.Authorize(work, source, services.MCS, func(types.NamespacedName) bool { return r.marked(f, source, service) }); err != nil {
		log.FromContext(ctx).V(2).Info("A collected slice does not count", "Work", work.Namespace+"/"+work.Name, "reason", err.Error())
		f.Withdrawn = true
		return f, failed
	}
	siblings, err := r.lookup.collected(ctx, service)
	if err != nil {
		return f, err
	}
	f.Withdrawn = services.Replaced(source, siblings, f.Clusters)
	return f, failed
}

// marked reports whether the control plane made a cluster a provider of a Service.
func (r *reconciler) marked(f services.DispatchFacts, cluster string, service types.NamespacedName) bool {
	marker := f.Get(cluster, services.MarkerName(service))
	return marker != nil && marker.DeletionTimestamp == nil && services.Marks(marker) == service &&
		(f.MCS == nil || marker.Labels[networkingv1alpha1.MultiClusterServicePermanentIDLabel] == f.MCS.Labels[networkingv1alpha1.MultiClusterServicePermanentIDLabel])
}

func (r *reconciler) apply(ctx context.Context, work *workv1alpha1.Work, v services.DispatchVerdict) error {
	errs := []error{r.delete(ctx, v.Delete)}
	for _, next := range v.Write {
		existing, err := r.works.Get(ctx, client.ObjectKeyFromObject(next))
		if err == nil {
			_, err = r.works.Put(ctx, existing, next)
		}
		errs = append(errs, err)
	}
	err := errors.Join(errs...)
	if err == nil && v.Release {
		err = patch.RemoveFinalizer(ctx, r.client, work, services.DispatchFinalizer)
	}
	return err
}

func (r *reconciler) delete(ctx context.Context, all []*workv1alpha1.Work) error {
	var errs []error
	for _, work := range all {
		errs = append(errs, r.works.Delete(ctx, work))
	}
	return errors.Join(errs...)
}

// record records events once per transition.
func (r *reconciler) record(mcs *networkingv1alpha1.MultiClusterService, source string, v services.DispatchVerdict, err error) {
	if err != nil {
		r.events.PartWarning(mcs, source, services.ReasonDispatchFailed, err.Error())
		return
	}
	dispatched := meta.IsStatusConditionTrue(mcs.Status.Conditions, services.SlicesDispatched)
	for _, e := range v.Events {
		switch {
		case e.Type == corev1.EventTypeWarning:
			r.events.PartWarning(mcs, e.Message, e.Reason, e.Message)
		case !dispatched:
			r.events.Normal(mcs, e.Reason, e.Message)
		default:
			r.events.Detail(mcs, e.Reason, e.Message)
		}
	}
}

// condition writes the condition about all slices of a MultiClusterService.
func (r *reconciler) condition(ctx context.Context, mcs *networkingv1alpha1.MultiClusterService) error {
	if mcs == nil || mcs.DeletionTimestamp != nil || !services.CrossCluster(mcs) {
		return nil
	}
	_, err := r.conditions.Put(ctx, mcs, func(s *corev1.ServiceStatus) {
		meta.SetStatusCondition(&s.Conditions, services.DispatchCondition(r.results.of(client.ObjectKeyFromObject(mcs))))
	})
	return err
}

// results are the failures of the slices, for the condition about all of them.
type results struct {
	mu       sync.Mutex
	failures map[types.NamespacedName]map[types.NamespacedName]string // Service, Work
}

func newResults() *results {
	return &results{failures: map[types.NamespacedName]map[types.NamespacedName]string{}}
}

// set stores the failure of the slice of a Work; an empty one is a success.
func (r *results) set(service, work types.NamespacedName, failure string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	of := r.failures[service]
	switch {
	case failure == "":
		delete(of, work)
	case of == nil:
		r.failures[service] = map[types.NamespacedName]string{work: failure}
	default:
		of[work] = failure
	}
	if len(of) == 0 && failure == "" {
		delete(r.failures, service)
	}
}

// forget removes a Work.
func (r *results) forget(work types.NamespacedName) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for service, of := range r.failures {
		if delete(of, work); len(of) == 0 {
			delete(r.failures, service)
		}
	}
}

// of returns the failures of a Service, in a fixed order.
func (r *results) of(service types.NamespacedName) []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Compact(slices.Sorted(maps.Values(r.failures[service])))
}

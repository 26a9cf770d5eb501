package endpointslicedispatch

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/karmada-toolkit/karmada/internal/controllers"
	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
	"github.com/karmada-toolkit/karmada/pkg/apis/names"
	networkingv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/networking/v1alpha1"
	workv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha1"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/works"
	"github.com/karmada-toolkit/karmada/pkg/domain/services"
)

// workChanged passes Works that are new, are deleted, or were changed by others: dispatched
// Works that this controller wrote itself are left out.
func workChanged(writer *works.Writer) predicate.Predicate {
	return controllers.Filter[client.Object]{Updated: func(before, now client.Object) bool {
		changed := controllers.WasEdited(before, now) || !maps.Equal(before.GetAnnotations(), now.GetAnnotations())
		dispatched := now.GetAnnotations()[services.ProvisionClusterAnnotation] != "" && now.GetDeletionTimestamp().IsZero()
		return changed && (!dispatched || !writer.Wrote(now))
	}}
}

// mapper returns the collected Works that a change of another object concerns.
type mapper struct {
	client client.Client
	lookup lookup
	// enabled is that of Deps.
	enabled bool
}

// ofWork returns the collected Works that a Work concerns: itself, its source, those that
// it marks the cluster for, or those that it replaces while their clusters are not Ready.
func (m mapper) ofWork(ctx context.Context, work *workv1alpha1.Work) []reconcile.Request {
	if work.Annotations[services.ProvisionClusterAnnotation] != "" {
		return []reconcile.Request{{NamespacedName: services.SourceWork(work)}}
	}
	service := services.MCS.ServiceOf(work.Labels)
	if service.Name == "" && work.Labels[services.ManagedByLabel] == "" {
		return nil
	}
	if services.Marks(work).Name != "" {
		return m.requests(ctx, service, func(w *workv1alpha1.Work) bool { return w.Namespace == work.Namespace })
	}
	if !services.Collected(work) {
		return nil
	}
	own := reconcile.Request{NamespacedName: client.ObjectKeyFromObject(work)}
	if service.Name == "" || !m.enabled {
		return []reconcile.Request{own}
	}
	return append(m.requests(ctx, service, func(w *workv1alpha1.Work) bool {
		return w.Namespace != work.Namespace && !m.lookup.ready(ctx, w.Namespace)
	}), own)
}

// requests returns the selected collected Works of a MultiClusterService.
func (m mapper) requests(ctx context.Context, service types.NamespacedName, selected func(*workv1alpha1.Work) bool) []reconcile.Request {
	all, err := m.lookup.collected(ctx, service)
	if err != nil {
		log.FromContext(ctx).Error(err, "Listing the slices of a MultiClusterService")
		return nil
	}
	return controllers.Requests(slices.DeleteFunc(all, func(w *workv1alpha1.Work) bool { return !selected(w) }))
}

func (m mapper) ofService(ctx context.Context, mcs client.Object) []reconcile.Request {
	return m.requests(ctx, client.ObjectKeyFromObject(mcs), func(*workv1alpha1.Work) bool { return true })
}

// all returns the slices of all MultiClusterServices.
func (m mapper) all(ctx context.Context, _ client.Object) []reconcile.Request {
	list := controllers.Listed(ctx, m.client, &networkingv1alpha1.MultiClusterServiceList{})
	var out []reconcile.Request
	for i := range list.Items {
		out = append(out, m.ofService(ctx, &list.Items[i])...)
	}
	return out
}

// serviceIndex finds the collected Works of a MultiClusterService, sourceIndex the Works
// that carry the slice of a collected Work to consumers.
const (
	serviceIndex = "dispatch.service"
	sourceIndex  = "dispatch.source"
)

func serviceOf(work *workv1alpha1.Work) types.NamespacedName {
	if work.Labels[services.ManagedByLabel] == "" || !services.Collected(work) {
		return types.NamespacedName{}
	}
	return services.MCS.ServiceOf(work.Labels)
}

func sourceOf(work *workv1alpha1.Work) types.NamespacedName {
	if work.Annotations[services.ProvisionClusterAnnotation] == "" {
		return types.NamespacedName{}
	}
	return services.SourceWork(work)
}

// lookup finds Works in the cache by what they carry, and whether their clusters are Ready.
type lookup struct{ client client.Client }

// newLookup returns a lookup whose indexes are part of the cache.
func newLookup(ctx context.Context, c client.Client, indexer client.FieldIndexer) (lookup, error) {
	for name, key := range map[string]func(*workv1alpha1.Work) types.NamespacedName{serviceIndex: serviceOf, sourceIndex: sourceOf} {
		if err := indexer.IndexField(ctx, &workv1alpha1.Work{}, name, controllers.IndexKey(key)); err != nil {
			return lookup{}, err
		}
	}
	return lookup{c}, nil
}

// dispatched returns the Works that carry the slice of a collected Work.
func (l lookup) dispatched(ctx context.Context, key types.NamespacedName) ([]*workv1alpha1.Work, error) {
	return l.list(ctx, sourceIndex, key)
}

// collected returns the collected Works of a MultiClusterService.
func (l lookup) collected(ctx context.Context, service types.NamespacedName) ([]*workv1alpha1.Work, error) {
	return l.list(ctx, serviceIndex, service)
}

func (l lookup) list(ctx context.Context, index string, key types.NamespacedName) ([]*workv1alpha1.Work, error) {
	list := &workv1alpha1.WorkList{}
	if err := l.client.List(ctx, list, client.MatchingFields{index: key.String()}, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing works: %w", err)
	}
	return controllers.Pointers(list.Items), nil
}

// ready reports whether the cluster of an execution namespace is Ready.
func (l lookup) ready(ctx context.Context, namespace string) bool {
	name, err := names.ClusterOfExecutionNamespace(namespace)
	cluster := &clusterv1alpha1.Cluster{}
	return err == nil && l.client.Get(ctx, client.ObjectKey{Name: name}, cluster, client.UnsafeDisableDeepCopy) == nil &&
		services.Clusters{name: cluster}.Ready(name)
}

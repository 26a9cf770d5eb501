package endpointslicedispatch

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/karmada-toolkit/karmada/internal/controllers"
	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
	"github.com/karmada-toolkit/karmada/pkg/apis/names"
	workv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha1"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/services"
)

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

package binding

import (
	"context"
	"fmt"
	"slices"

	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/karmada-toolkit/karmada/internal/status"
	"github.com/karmada-toolkit/karmada/pkg/apis/names"
	workv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha1"
	workv1alpha2 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha2"
	"github.com/karmada-toolkit/karmada/pkg/domain/dependency"
	"github.com/karmada-toolkit/karmada/pkg/domain/scope"
)

// ownedWorks finds and deletes the Works of bindings.
type ownedWorks struct {
	scope  *scope.Binding
	client client.Client
	// created holds the Works that were created and that the cache does not show yet, so
	// that none is left behind if its binding is deleted or moved at once.
	created *status.Memory[string, sets.Set[types.NamespacedName]]
}

// owner identifies a binding: ids alone are labels that users can write.
func (o *ownedWorks) owner(b workv1alpha2.Binding) string {
	return b.GetNamespace() + "/" + b.GetName() + "/" + o.scope.ID(b)
}

// list returns the Works of a binding. They are shared and read-only. Ids are labels
// that users can write: a Work that names another binding is not returned.
func (o *ownedWorks) list(ctx context.Context, b workv1alpha2.Binding) ([]workv1alpha1.Work, error) {
	list := &workv1alpha1.WorkList{}
	if err := o.client.List(ctx, list, client.MatchingFields{workIndex: o.scope.ID(b)}, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing works: %w", err)
	}
	own := o.scope.Annotations(client.ObjectKeyFromObject(b))
	return slices.DeleteFunc(list.Items, func(w workv1alpha1.Work) bool { return scope.ForeignAnnotation(&w, own) != "" }), nil
}

// unwanted returns the Works that are in none of the wanted clusters, or have another
// name than the binding's Works.
func (o *ownedWorks) unwanted(b workv1alpha2.Binding, existing []workv1alpha1.Work, name string, wanted sets.Set[string]) []types.NamespacedName {
	var out []types.NamespacedName
	for _, key := range o.uncached(b, existing) {
		if !inClusters(key.Namespace, wanted) {
			out = append(out, key)
		}
	}
	for i := range existing {
		w := &existing[i]
		if w.DeletionTimestamp == nil && (w.Name != name || !inClusters(w.Namespace, wanted)) {
			out = append(out, client.ObjectKeyFromObject(w))
		}
	}
	return out
}

// inClusters reports whether a namespace is the execution namespace of one of the
// clusters.
func inClusters(namespace string, clusters sets.Set[string]) bool {
	cluster, err := names.ClusterOfExecutionNamespace(namespace)
	return err == nil && clusters.Has(cluster)
}

// delete deletes Works of a binding, at most a slice. It reports whether others are left.
func (o *ownedWorks) delete(ctx context.Context, b workv1alpha2.Binding, keys []types.NamespacedName) (bool, error) {
	more := len(keys) > slice
	keys = keys[:min(len(keys), slice)]
	var g errgroup.Group
	g.SetLimit(parallel)
	for _, key := range keys {
		g.Go(func() error {
			if err := o.preserve(ctx, b, key); err != nil {
				return err
			}
			work := &workv1alpha1.Work{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}}
			if err := o.client.Delete(ctx, work); client.IgnoreNotFound(err) != nil {
				return fmt.Errorf("deleting work %s: %w", key, err)
			}
			o.updateCreated(b, func(works sets.Set[types.NamespacedName]) { works.Delete(key) })
			return nil
		})
	}
	return more, g.Wait()
}

// preserve writes into a Work that will be deleted whether its cluster keeps the object, if that was decided only since the Work was
// written.
func (o *ownedWorks) preserve(ctx context.Context, b workv1alpha2.Binding, key types.NamespacedName) error {
	work := &workv1alpha1.Work{}
	err := o.client.Get(ctx, key, work, client.UnsafeDisableDeepCopy)
	cluster, _ := names.ClusterOfExecutionNamespace(key.Namespace) // Works have no other namespaces
	want := dependency.Preserves(b, cluster)
	if err == nil && work.DeletionTimestamp == nil && ptr.Deref(work.Spec.PreserveResourcesOnDeletion, false) != want {
		next := work.DeepCopy()
		next.Spec.PreserveResourcesOnDeletion = &want
		err = o.client.Patch(ctx, next, client.MergeFrom(work))
	}
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("preserving the object of work %s: %w", key, err)
	}
	return nil
}

// deleteAll deletes all Works of a binding, at most a slice. It reports whether others are left.
func (o *ownedWorks) deleteAll(ctx context.Context, b workv1alpha2.Binding) (bool, error) {
	existing, err := o.list(ctx, b)
	if err != nil {
		return false, err
	}
	return o.delete(ctx, b, o.unwanted(b, existing, "", nil))
}

// add records that a Work was created.
func (o *ownedWorks) add(b workv1alpha2.Binding, work types.NamespacedName) {
	o.updateCreated(b, func(works sets.Set[types.NamespacedName]) { works.Insert(work) })
}

// uncached returns the created Works that the cache does not show.
func (o *ownedWorks) uncached(b workv1alpha2.Binding, cached []workv1alpha1.Work) []types.NamespacedName {
	var out []types.NamespacedName
	o.updateCreated(b, func(works sets.Set[types.NamespacedName]) {
		for i := range cached {
			works.Delete(client.ObjectKeyFromObject(&cached[i]))
		}
		out = works.UnsortedList()
	})
	return out
}

func (o *ownedWorks) updateCreated(b workv1alpha2.Binding, change func(sets.Set[types.NamespacedName])) {
	o.created.Update(o.owner(b), func(works sets.Set[types.NamespacedName], _ bool) (sets.Set[types.NamespacedName], bool) {
		if works == nil {
			works = sets.New[types.NamespacedName]()
		}
		change(works)
		return works, works.Len() > 0
	})
}

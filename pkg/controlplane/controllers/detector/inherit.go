package detector

import (
	"context"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/karmada-toolkit/karmada/pkg/apis/names"
	policyv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/policy/v1alpha1"
	workv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha1"
	workv1alpha2 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha2"
	"github.com/karmada-toolkit/karmada/pkg/domain/scope"
)

// predecessor is what the next binding of a template takes over from one that was deleted.
type predecessor struct {
	id        string
	clusters  []workv1alpha2.TargetCluster
	tasks     []workv1alpha2.GracefulEvictionTask
	placement string
}

// remember records a binding that was deleted.
func (b *bindings) remember(key objectKey, binding workv1alpha2.Binding) {
	spec := binding.GetSpec()
	b.removed.Set(key, predecessor{
		id: scope.BindingIn(key.namespace).ID(binding), clusters: spec.Clusters, tasks: spec.GracefulEvictionTasks,
		placement: binding.GetAnnotations()[policyv1alpha1.AppliedPlacementAnnotation],
	})
}

// inherit gives a new binding the id of the Works that the one before it left, so that they
// become its own, and the clusters of that one if they are known.
func (b *bindings) inherit(ctx context.Context, key objectKey, binding workv1alpha2.Binding) error {
	s := scope.BindingIn(key.namespace)
	list := &workv1alpha1.WorkList{}
	selected := client.MatchingFields{workIndex: workKey(s, client.ObjectKeyFromObject(binding))}
	if err := b.client.List(ctx, list, selected, client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("listing the works of binding %s: %w", binding.GetName(), err)
	}
	name := names.Work(key.gvk.Kind, key.name, key.namespace)
	before, known := b.removed.Get(key)
	ids := []string{}
	for i := range list.Items {
		if work := &list.Items[i]; work.DeletionTimestamp == nil && work.Name == name && s.ID(work) != "" {
			ids = append(ids, s.ID(work))
		}
	}
	if len(ids) == 0 {
		return nil
	}
	id := slices.Min(ids)
	if known && slices.Contains(ids, before.id) {
		id = before.id
		binding.GetSpec().Clusters, binding.GetSpec().GracefulEvictionTasks = before.clusters, before.tasks
		if before.placement != "" {
			annotations := binding.GetAnnotations()
			annotations[policyv1alpha1.AppliedPlacementAnnotation] = before.placement
			binding.SetAnnotations(annotations)
		}
	}
	labels := binding.GetLabels()
	labels[s.IDLabel] = id
	binding.SetLabels(labels)
	return nil
}

// workIndex finds Works by the name of their binding.
const workIndex = "detector.binding"

func workKeys(work client.Object) []string {
	if s, key := scope.BindingOf(work); s != nil {
		return []string{workKey(s, key)}
	}
	return nil
}

func workKey(s *scope.Binding, key types.NamespacedName) string { return s.Kind + "/" + key.String() }

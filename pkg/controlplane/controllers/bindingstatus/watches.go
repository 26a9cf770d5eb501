package bindingstatus

import (
	"fmt"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"github.com/karmada-toolkit/karmada/internal/controllers"
	workv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha1"
	workv1alpha2 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha2"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/interpretation/notify"
	"github.com/karmada-toolkit/karmada/pkg/domain/scope"
)

func (r *reconciler) register(mgr manager.Manager, o controller.Options) error {
	err := builder.ControllerManagedBy(mgr).Named(r.scope.StatusController).WithOptions(o).
		For(r.scope.New(), builder.WithPredicates(bindingPredicate())).
		Watches(&workv1alpha1.Work{}, controllers.EnqueueKey(r.scope.KeyOf), builder.WithPredicates(workPredicate())).
		WatchesRawSource(notify.Bindings(r.env.Interpreter, r.client, r.scope.NewList, nil)).
		Complete(r)
	if err != nil {
		return fmt.Errorf("adding the %s: %w", r.scope.StatusController, err)
	}
	return nil
}

// indexName is the name of the index of Works by the id of their binding.
func indexName(s *scope.Binding) string { return "bindingstatus." + s.Kind }

func indexer(s *scope.Binding) client.IndexerFunc {
	return func(work client.Object) []string {
		if id := s.ID(work); id != "" {
			return []string{id}
		}
		return nil
	}
}

// bindingPredicate passes bindings that are scheduled, when they become so and when
// their spec changes; those that are being evicted also when the scheduler confirms
// their spec, or finds no cluster for them.
func bindingPredicate() predicate.Predicate {
	scheduled := func(b workv1alpha2.Binding) bool {
		return b.GetStatus().LastScheduledTime != nil || len(b.GetStatus().AggregatedStatus) > 0 || len(b.GetSpec().RequiredBy) > 0
	}
	failed := func(b workv1alpha2.Binding) bool {
		return meta.IsStatusConditionFalse(b.GetStatus().Conditions, workv1alpha2.Scheduled)
	}
	decided := func(before, now workv1alpha2.Binding) bool {
		return len(now.GetSpec().GracefulEvictionTasks) > 0 && (failed(before) != failed(now) ||
			before.GetStatus().SchedulerObservedGeneration != now.GetStatus().SchedulerObservedGeneration)
	}
	return controllers.Filter[workv1alpha2.Binding]{Created: scheduled, Updated: func(before, now workv1alpha2.Binding) bool {
		return scheduled(now) && (before.GetGeneration() != now.GetGeneration() || !scheduled(before) || decided(before, now))
	}}
}

// workPredicate passes new Works, those whose status changed, and those that are deleted. A new Work without a status
// counts as not applied: its cluster may never report.
func workPredicate() predicate.Predicate {
	return controllers.Filter[*workv1alpha1.Work]{Updated: func(before, now *workv1alpha1.Work) bool {
		return before.DeletionTimestamp.IsZero() != now.DeletionTimestamp.IsZero() || !equality.Semantic.DeepEqual(&before.Status, &now.Status)
	}}
}

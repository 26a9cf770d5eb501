package bindingstatus

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	workv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha1"
	workv1alpha2 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha2"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/interpreter/notify"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/scope"
)

func (r *reconciler) register(mgr manager.Manager, o controller.Options) error {
	err := builder.ControllerManagedBy(mgr).Named(r.scope.StatusController).WithOptions(o).
		For(r.scope.New(), builder.WithPredicates(bindingPredicate())).
		Watches(&workv1alpha1.Work{}, handler.EnqueueRequestsFromMapFunc(r.bindingOf), builder.WithPredicates(workPredicate())).
		WatchesRawSource(notify.Bindings(r.deps.Interpreter, r.client, r.scope.NewList, nil)).
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

// bindingOf returns the binding that a Work comes from.
func (r *reconciler) bindingOf(_ context.Context, obj client.Object) []reconcile.Request {
	work, ok := obj.(*workv1alpha1.Work)
	if !ok {
		return nil
	}
	key := r.scope.KeyOf(work)
	if key.Name == "" {
		return nil
	}
	return []reconcile.Request{{NamespacedName: key}}
}

// bindingPredicate passes bindings that are scheduled, when they become so and when
// their spec changes; those that are being evicted also when the scheduler confirms
// their spec, or finds no cluster for them.
func bindingPredicate() predicate.Predicate {
	scheduled := func(obj client.Object) bool {
		b, ok := obj.(workv1alpha2.Binding)
		return ok && (b.GetStatus().LastScheduledTime != nil || len(b.GetStatus().AggregatedStatus) > 0 || len(b.GetSpec().RequiredBy) > 0)
	}
	failed := func(b workv1alpha2.Binding) bool {
		return meta.IsStatusConditionFalse(b.GetStatus().Conditions, workv1alpha2.Scheduled)
	}
	decided := func(old, now client.Object) bool {
		was, ok1 := old.(workv1alpha2.Binding)
		b, ok2 := now.(workv1alpha2.Binding)
		return ok1 && ok2 && len(b.GetSpec().GracefulEvictionTasks) > 0 &&
			(was.GetStatus().SchedulerObservedGeneration != b.GetStatus().SchedulerObservedGeneration || failed(was) != failed(b))
	}
	return predicate.Funcs{
		CreateFunc: func(e event.CreateEvent) bool { return scheduled(e.Object) },
		UpdateFunc: func(e event.UpdateEvent) bool {
			return scheduled(e.ObjectNew) && (e.ObjectOld.GetGeneration() != e.ObjectNew.GetGeneration() || !scheduled(e.ObjectOld) || decided(e.ObjectOld, e.ObjectNew))
		},
		DeleteFunc: func(event.DeleteEvent) bool { return true },
	}
}

// workPredicate passes new Works, those whose status changed, and those that are deleted. A new Work without a status
// counts as not applied: its cluster may never report.
func workPredicate() predicate.Predicate {
	return predicate.Funcs{
		UpdateFunc: func(e event.UpdateEvent) bool {
			old, ok1 := e.ObjectOld.(*workv1alpha1.Work)
			now, ok2 := e.ObjectNew.(*workv1alpha1.Work)
			return ok1 && ok2 && (old.DeletionTimestamp.IsZero() != now.DeletionTimestamp.IsZero() ||
				!equality.Semantic.DeepEqual(&old.Status, &now.Status))
		},
	}
}

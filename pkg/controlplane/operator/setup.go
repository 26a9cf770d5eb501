package operator

import (
	"cmp"
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrlcontroller "sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/karmada-toolkit/karmada/internal/events"
	operatorv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/operator/v1alpha1"
	installer "github.com/karmada-toolkit/karmada/pkg/init"
	"github.com/karmada-toolkit/karmada/pkg/init/components"
)

// Setup adds the role to the manager.
func Setup(_ context.Context, mgr manager.Manager, o *Options) error {
	if !o.enabled() {
		mgr.GetLogger().Info("No controller is enabled", "controllers", o.Controllers)
		return nil
	}
	r := &reconciler{
		client: mgr.GetClient(), reader: mgr.GetAPIReader(), config: mgr.GetConfig(), events: events.ForManager(mgr, Name, events.Transitions),
		now: clock.RealClock{}.Now, resync: cmp.Or(o.Resync, defaultResync), load: installer.LoadCRDs, install: installer.Run, connect: connect,
	}
	// What is managed is in the namespace of its Karmada, whose name is in a label. A change of what the operator does not write, such as
	// a status, does not call it.
	owner := handler.EnqueueRequestsFromMapFunc(func(_ context.Context, o client.Object) []reconcile.Request {
		return []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: o.GetNamespace(), Name: o.GetLabels()[components.InstanceLabel]}}}
	})
	changed := builder.WithPredicates(predicate.Funcs{
		CreateFunc: func(event.CreateEvent) bool { return false },
		UpdateFunc: func(e event.UpdateEvent) bool {
			return e.ObjectOld.GetGeneration() != e.ObjectNew.GetGeneration() || e.ObjectNew.GetGeneration() == 0 && e.ObjectOld.GetResourceVersion() != e.ObjectNew.GetResourceVersion()
		},
		GenericFunc: func(event.GenericEvent) bool { return false },
	})
	err := ctrl.NewControllerManagedBy(mgr).Named(Name+"-controller").
		For(&operatorv1alpha1.Karmada{}, builder.WithPredicates(predicate.Or(predicate.GenerationChangedPredicate{}, predicate.LabelChangedPredicate{}))).
		Watches(&appsv1.Deployment{}, owner, changed).Watches(&appsv1.StatefulSet{}, owner, changed).Watches(&corev1.Service{}, owner, changed).
		WithOptions(ctrlcontroller.Options{MaxConcurrentReconciles: o.Workers}).Complete(r)
	if err != nil {
		return fmt.Errorf("adding the controller: %w", err)
	}
	return nil
}

package federatedquota

import (
	"context"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/karmada-toolkit/karmada/internal/controllers"
	"github.com/karmada-toolkit/karmada/internal/events"
	"github.com/karmada-toolkit/karmada/internal/gates"
	policyv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/policy/v1alpha1"
	workv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha1"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/env"
	"github.com/karmada-toolkit/karmada/pkg/domain/quota"
)

type aggregator struct {
	client      client.Client
	live        client.Reader
	events      *events.Recorder
	enforcement bool
}

// SetupStatus adds the controller that reports what clusters use of their shares.
func SetupStatus(ctx context.Context, e *env.Env) error {
	if err := e.Index(ctx, &workv1alpha1.Work{}, statusIndex, controllers.IndexKey(quotaOf)); err != nil {
		return err
	}
	r := &aggregator{client: e.Client, live: e.Live, events: e.Recorder(StatusComponent), enforcement: e.Gates.Enabled(gates.FederatedQuotaEnforcement)}
	return e.Controller(StatusComponent, 1, 1).
		For(&policyv1alpha1.FederatedResourceQuota{}, builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Watches(&workv1alpha1.Work{}, controllers.EnqueueKey(quotaOf), builder.WithPredicates(workStatusChanged())).
		Complete(r)
}

// workStatusChanged passes Works whose status changed, and those that are deleted.
func workStatusChanged() predicate.Predicate {
	return controllers.Filter[*workv1alpha1.Work]{
		Created: controllers.Never[*workv1alpha1.Work], // one without status
		Updated: func(before, after *workv1alpha1.Work) bool {
			return !equality.Semantic.DeepEqual(before.Status, after.Status)
		},
	}
}

// Reconcile writes the status of one quota.
func (r *aggregator) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	// The cache may not show the last write yet, and what is compared is what is stored.
	q := &policyv1alpha1.FederatedResourceQuota{}
	if err := r.live.Get(ctx, req.NamespacedName, q); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if q.DeletionTimestamp != nil {
		return reconcile.Result{}, nil
	}
	changed, err := r.aggregate(ctx, q)
	publish(r.events, q, [2]string{"AggregateStatusSucceed", "AggregateStatusFailed"},
		fmt.Sprintf("Aggregate status of FederatedResourceQuota(%s) succeed.", req), changed, err)
	return reconcile.Result{}, err
}

func (r *aggregator) aggregate(ctx context.Context, q *policyv1alpha1.FederatedResourceQuota) (bool, error) {
	own, err := worksOf(ctx, r.client, statusIndex, client.ObjectKeyFromObject(q))
	if err != nil {
		return false, err
	}
	// Agents can create Works too.
	own = slices.DeleteFunc(slices.Clone(own), func(w workv1alpha1.Work) bool { return !quota.Canonical(q, &w) })
	items, err := quota.Aggregate(own)
	if err != nil {
		return false, err
	}
	next := q.DeepCopy()
	quota.SetAggregated(next, items, r.enforcement)
	if equality.Semantic.DeepEqual(q.Status, next.Status) {
		return false, nil
	}
	return writeStatus(ctx, r.client, q, next)
}

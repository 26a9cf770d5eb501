package federatedquota

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/karmada-toolkit/karmada/internal/controllers"
	"github.com/karmada-toolkit/karmada/internal/events"
	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
	"github.com/karmada-toolkit/karmada/pkg/apis/names"
	policyv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/policy/v1alpha1"
	workv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha1"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/env"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/works"
	"github.com/karmada-toolkit/karmada/pkg/domain/quota"
)

type syncer struct {
	client client.Client
	works  *works.Writer
	events *events.Recorder
}

// SetupSync adds the controller that writes the ResourceQuotas of assigned clusters.
func SetupSync(ctx context.Context, e *env.Env) error {
	if err := e.Index(ctx, &workv1alpha1.Work{}, syncIndex, controllers.IndexKey(quotaOf)); err != nil {
		return err
	}
	r := &syncer{client: e.Client, works: e.Works(), events: e.Recorder(SyncComponent)}
	return e.Controller(SyncComponent, 1, 1).
		For(&policyv1alpha1.FederatedResourceQuota{}, builder.WithPredicates(assignmentsChanged())).
		Watches(&clusterv1alpha1.Cluster{}, controllers.Enqueue(r.assigned), builder.WithPredicates(controllers.Created())).
		Watches(&workv1alpha1.Work{}, controllers.EnqueueKey(quotaOf), builder.WithPredicates(r.drifted())).
		Complete(r)
}

// assignmentsChanged passes quotas that are new, deleted, or whose assignments changed.
func assignmentsChanged() predicate.Predicate {
	return controllers.Filter[*policyv1alpha1.FederatedResourceQuota]{Updated: func(before, after *policyv1alpha1.FederatedResourceQuota) bool {
		return !equality.Semantic.DeepEqual(before.Spec.StaticAssignments, after.Spec.StaticAssignments)
	}}
}

// drifted passes Works whose content another client changed or deleted, and those from before the start.
func (r *syncer) drifted() predicate.Predicate {
	return controllers.Filter[client.Object]{Updated: func(before, after client.Object) bool {
		return before.GetGeneration() != after.GetGeneration() && !r.works.Wrote(after)
	}}
}

// assigned returns the quotas that are assigned to a cluster.
func (r *syncer) assigned(ctx context.Context, cluster client.Object) []reconcile.Request {
	list := controllers.Listed(ctx, r.client, &policyv1alpha1.FederatedResourceQuotaList{})
	var out []reconcile.Request
	for i := range list.Items {
		q := &list.Items[i]
		if slices.ContainsFunc(q.Spec.StaticAssignments, func(a policyv1alpha1.StaticClusterAssignment) bool { return a.ClusterName == cluster.GetName() }) {
			out = append(out, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(q)})
		}
	}
	return out
}

// Reconcile writes the Works of one quota.
func (r *syncer) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	q := &policyv1alpha1.FederatedResourceQuota{}
	err := r.client.Get(ctx, req.NamespacedName, q)
	if apierrors.IsNotFound(err) {
		_, err := r.remove(ctx, req.NamespacedName, nil)
		return reconcile.Result{}, err
	}
	if err != nil {
		return reconcile.Result{}, fmt.Errorf("reading quota %s: %w", req, err)
	}
	changed, err := r.sync(ctx, q)
	publish(r.events, q, [2]string{"SyncWorkSucceed", "SyncWorkFailed"},
		fmt.Sprintf("Sync works for FederatedResourceQuota(%s) succeed.", req), changed, err)
	return reconcile.Result{}, err
}

// sync deletes the Works of clusters that are not assigned, then writes the others. A cluster that fails does not delay
// the others.
func (r *syncer) sync(ctx context.Context, q *policyv1alpha1.FederatedResourceQuota) (bool, error) {
	changed, err := r.remove(ctx, client.ObjectKeyFromObject(q), q)
	if err != nil {
		return changed, err
	}
	var errs []error
	assignments, err := quota.Assignments(q, func(cluster string) bool {
		c := &clusterv1alpha1.Cluster{}
		err := r.client.Get(ctx, client.ObjectKey{Name: cluster}, c, client.UnsafeDisableDeepCopy)
		if client.IgnoreNotFound(err) != nil {
			errs = append(errs, fmt.Errorf("reading cluster %s: %w", cluster, err))
		}
		return err == nil && c.DeletionTimestamp == nil
	})
	errs = append(errs, err)
	for _, a := range assignments {
		result, err := r.works.Write(ctx, &works.Want{
			Namespace: names.ExecutionNamespace(a.Cluster), Name: quota.WorkName(q.Namespace, q.Name),
			Labels: quota.Labels(q.Namespace, q.Name), Object: a.Object,
		})
		errs = append(errs, err)
		changed = changed || err == nil && result != works.Unchanged
	}
	return changed, errors.Join(errs...)
}

// remove deletes the Works that a quota is not to have; q is nil if the quota was deleted.
func (r *syncer) remove(ctx context.Context, key types.NamespacedName, q *policyv1alpha1.FederatedResourceQuota) (bool, error) {
	own, err := worksOf(ctx, r.client, syncIndex, key)
	if err != nil {
		return false, err
	}
	changed := false
	for _, w := range quota.Unassigned(q, own) {
		if w.DeletionTimestamp != nil {
			continue
		}
		uid := w.UID
		if err := r.client.Delete(ctx, w.DeepCopy(), client.Preconditions{UID: &uid}); client.IgnoreNotFound(err) != nil {
			return changed, fmt.Errorf("deleting work %s/%s: %w", w.Namespace, w.Name, err)
		}
		changed = true
	}
	return changed, nil
}

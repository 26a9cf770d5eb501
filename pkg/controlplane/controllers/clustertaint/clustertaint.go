// Package clustertaint adds and removes the taints of clusters that ClusterTaintPolicies request.
package clustertaint

import (
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/karmada-toolkit/karmada/internal/controllers"
	"github.com/karmada-toolkit/karmada/internal/events"
	"github.com/karmada-toolkit/karmada/internal/patch"
	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
	policyv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/policy/v1alpha1"
	"github.com/karmada-toolkit/karmada/pkg/apis/validation"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/env"
	"github.com/karmada-toolkit/karmada/pkg/domain/clustercondition"
)

// Component is the name of the controller and the source of its events.
const Component = "cluster-taint-policy-controller"

// Reasons of events on clusters.
const (
	ReasonTaintSucceed = "TaintClusterSucceed"
	ReasonTaintFailed  = "TaintClusterFailed"
)

type reconciler struct {
	client client.Client
	events *events.Recorder
	clock  clock.PassiveClock
}

// Setup adds the controller to the manager.
func Setup(_ context.Context, e *env.Env) error {
	r := &reconciler{client: e.Client, events: events.ForManager(e.Manager, Component, events.Transitions), clock: e.Clock}
	return e.Controller(Component, e.ClusterSyncs, 5).
		For(&clusterv1alpha1.Cluster{}, builder.WithPredicates(conditionsChanged())).
		Watches(&policyv1alpha1.ClusterTaintPolicy{}, controllers.EnqueueAll(r.client, func() client.ObjectList { return &clusterv1alpha1.ClusterList{} }),
			builder.WithPredicates(policyChanged())).
		Complete(r)
}

// conditionsChanged passes new clusters and those whose conditions changed.
func conditionsChanged() predicate.Predicate {
	return controllers.Changed(func(before, after *clusterv1alpha1.Cluster) bool {
		return !equality.Semantic.DeepEqual(before.Status.Conditions, after.Status.Conditions)
	})
}

// policyChanged passes new policies and those whose spec changed. A deleted policy removes no taints.
func policyChanged() predicate.Predicate {
	return controllers.Changed(func(before, after *policyv1alpha1.ClusterTaintPolicy) bool {
		return before.Generation != after.Generation
	})
}

// Reconcile writes the taints that all policies request for one cluster.
func (r *reconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	cluster := &clusterv1alpha1.Cluster{}
	if ok, err := controllers.Load(ctx, r.client, req.NamespacedName, cluster); !ok {
		return reconcile.Result{}, err
	}
	list := &policyv1alpha1.ClusterTaintPolicyList{}
	if err := r.client.List(ctx, list, client.UnsafeDisableDeepCopy); err != nil {
		return reconcile.Result{}, fmt.Errorf("listing ClusterTaintPolicies: %w", err)
	}
	taints, changed := clustercondition.Taints(cluster, r.applicable(list.Items), r.clock.Now())
	if !changed || len(taints)+len(cluster.Spec.Taints) == 0 {
		return reconcile.Result{}, nil
	}
	if err := patch.ChangeLocked(ctx, r.client, cluster, func() { cluster.Spec.Taints = taints }); err != nil {
		return reconcile.Result{}, r.failed(cluster, taints, err)
	}
	r.events.Normal(cluster, ReasonTaintSucceed, fmt.Sprintf("Update Cluster(%s) with taints(%s) succeed", cluster.Name, clustercondition.Describe(taints)))
	return reconcile.Result{}, nil
}

// applicable returns policies without the taints that no cluster can have, and records those: they would keep the taints
// of all policies from every cluster.
func (r *reconciler) applicable(policies []policyv1alpha1.ClusterTaintPolicy) []*policyv1alpha1.ClusterTaintPolicy {
	out := controllers.Pointers(policies)
	for i, policy := range out {
		taints, warnings := validation.Applicable(policy.Spec.Taints)
		if len(warnings) == 0 {
			continue
		}
		r.events.Warning(policy, ReasonTaintFailed, strings.Join(warnings, "; "))
		out[i] = policy.DeepCopy()
		out[i].Spec.Taints = taints
	}
	return out
}

// failed records that the taints could not be written, and returns the error. A conflict is retried without an event.
func (r *reconciler) failed(cluster *clusterv1alpha1.Cluster, taints []corev1.Taint, err error) error {
	if !apierrors.IsConflict(err) {
		r.events.Warning(cluster, ReasonTaintFailed,
			fmt.Sprintf("Failed to update Cluster(%s) with taints(%s): %v", cluster.Name, clustercondition.Describe(taints), err))
	}
	return fmt.Errorf("writing the taints of cluster %q: %w", cluster.Name, err)
}

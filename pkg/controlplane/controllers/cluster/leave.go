package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
	"github.com/karmada-toolkit/karmada/pkg/apis/names"
	workv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha1"
	workv1alpha2 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha2"
)

// leave takes away what a cluster that is being removed has, and lets it go when
// its Works are gone and nothing is bound to it any longer.
func (r *Reconciler) leave(ctx context.Context, cluster *clusterv1alpha1.Cluster) (reconcile.Result, error) {
	if !slices.Contains(cluster.Finalizers, clusterv1alpha1.ClusterControllerFinalizer) {
		return reconcile.Result{}, nil
	}
	if cluster.Spec.SyncMode == clusterv1alpha1.Pull {
		left, err := r.removeWorks(ctx, cluster)
		if err != nil {
			return reconcile.Result{}, err
		}
		if left {
			return reconcile.Result{RequeueAfter: r.deps.LeavingPeriod}, nil
		}
	}
	gone, err := r.removeExecutionSpace(ctx, cluster)
	if err != nil {
		r.events.Eventf(cluster, corev1.EventTypeWarning, "RemoveExecutionSpaceFailed", "Failed to remove execution space(%s): %v", names.ExecutionNamespace(cluster.Name), err)
		return reconcile.Result{}, err
	}
	if !gone {
		return reconcile.Result{RequeueAfter: r.deps.LeavingPeriod}, nil
	}
	bound, err := r.bound(ctx, cluster.Name)
	if err != nil {
		return reconcile.Result{}, err
	}
	if bound {
		return reconcile.Result{RequeueAfter: r.deps.LeavingPeriod}, nil
	}
	finalizers := slices.DeleteFunc(slices.Clone(cluster.Finalizers), func(f string) bool { return f == clusterv1alpha1.ClusterControllerFinalizer })
	err = r.patch(ctx, cluster, map[string]any{"metadata": map[string]any{"resourceVersion": cluster.ResourceVersion, "finalizers": finalizers}})
	if apierrors.IsNotFound(err) {
		err = nil
	}
	return reconcile.Result{}, err
}

// removeExecutionSpace deletes the namespace and says whether it is gone.
func (r *Reconciler) removeExecutionSpace(ctx context.Context, cluster *clusterv1alpha1.Cluster) (bool, error) {
	name := names.ExecutionNamespace(cluster.Name)
	namespace := &corev1.Namespace{}
	err := r.live.Get(ctx, client.ObjectKey{Name: name}, namespace)
	if apierrors.IsNotFound(err) {
		return true, nil
	}
	if err != nil {
		return false, fmt.Errorf("reading namespace %s: %w", name, err)
	}
	if !namespace.DeletionTimestamp.IsZero() {
		return false, nil
	}
	if err := r.client.Delete(ctx, namespace); err != nil && !apierrors.IsNotFound(err) {
		return false, fmt.Errorf("deleting namespace %s: %w", name, err)
	}
	r.events.Eventf(cluster, corev1.EventTypeNormal, "RemoveExecutionSpaceSucceed", "Remove execution space(%s) succeed.", name)
	// The namespace's own way to its content takes a while; nothing new can come
	// into it from here on.
	if err := r.client.DeleteAllOf(ctx, &workv1alpha1.Work{}, client.InNamespace(name)); client.IgnoreNotFound(err) != nil {
		return false, fmt.Errorf("deleting the works in namespace %s: %w", name, err)
	}
	return false, nil
}

// removeWorks deletes the Works of a cluster in Pull mode and says whether its
// agent is still at work on them. They go before the namespace, which would take
// the rights of the agent with it. Nobody is waited for who is away.
func (r *Reconciler) removeWorks(ctx context.Context, cluster *clusterv1alpha1.Cluster) (bool, error) {
	if readyStatus(cluster) != metav1.ConditionTrue {
		return false, r.releaseWorks(ctx, cluster)
	}
	name := names.ExecutionNamespace(cluster.Name)
	var works workv1alpha1.WorkList
	if err := r.client.List(ctx, &works, client.InNamespace(name), client.UnsafeDisableDeepCopy); err != nil {
		return false, fmt.Errorf("listing the works of cluster %s: %w", cluster.Name, err)
	}
	for i := range works.Items {
		if !works.Items[i].DeletionTimestamp.IsZero() {
			continue
		}
		if err := r.client.DeleteAllOf(ctx, &workv1alpha1.Work{}, client.InNamespace(name)); client.IgnoreNotFound(err) != nil {
			return false, fmt.Errorf("deleting the works in namespace %s: %w", name, err)
		}
		break
	}
	return len(works.Items) > 0, nil
}

// releaseWorks lets go of all Works of a cluster.
func (r *Reconciler) releaseWorks(ctx context.Context, cluster *clusterv1alpha1.Cluster) error {
	var works workv1alpha1.WorkList
	if err := r.client.List(ctx, &works, client.InNamespace(names.ExecutionNamespace(cluster.Name)), client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("listing the works of cluster %s: %w", cluster.Name, err)
	}
	var errs []error
	for i := range works.Items {
		work := &works.Items[i]
		if !slices.Contains(work.Finalizers, workv1alpha2.ExecutionControllerFinalizer) {
			continue
		}
		left := slices.DeleteFunc(slices.Clone(work.Finalizers), func(f string) bool { return f == workv1alpha2.ExecutionControllerFinalizer })
		patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"resourceVersion": work.ResourceVersion, "finalizers": left}})
		if err != nil {
			return fmt.Errorf("encoding: %w", err)
		}
		target := &workv1alpha1.Work{ObjectMeta: metav1.ObjectMeta{Namespace: work.Namespace, Name: work.Name}}
		err = r.client.Patch(ctx, target, client.RawPatch(types.MergePatchType, patch))
		if err = client.IgnoreNotFound(err); err != nil {
			errs = append(errs, fmt.Errorf("releasing work %s/%s: %w", work.Namespace, work.Name, err))
		}
	}
	return errors.Join(errs...)
}

// bound says whether any binding still names the cluster as a target.
func (r *Reconciler) bound(ctx context.Context, cluster string) (bool, error) {
	for _, list := range []interface {
		workv1alpha2.BindingList
		client.ObjectList
	}{&workv1alpha2.ResourceBindingList{}, &workv1alpha2.ClusterResourceBindingList{}} {
		if err := r.client.List(ctx, list, client.UnsafeDisableDeepCopy); err != nil {
			return false, fmt.Errorf("listing bindings: %w", err)
		}
		for _, b := range list.Bindings() {
			if b.GetSpec().TargetContains(cluster) {
				return true, nil
			}
		}
	}
	return false, nil
}

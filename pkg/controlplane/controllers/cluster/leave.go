package cluster

import (
	"context"
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/karmada-toolkit/karmada/internal/patch"
	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
	"github.com/karmada-toolkit/karmada/pkg/apis/names"
	workv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha1"
	workv1alpha2 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha2"
)

// leave deletes what belongs to a cluster that is being deleted, and removes its
// finalizer when its Works are gone and no binding targets it any longer.
func (r *reconciler) leave(ctx context.Context, cluster *clusterv1alpha1.Cluster) (reconcile.Result, error) {
	if !slices.Contains(cluster.Finalizers, clusterv1alpha1.ClusterControllerFinalizer) {
		return reconcile.Result{}, nil
	}
	if cluster.Spec.SyncMode == clusterv1alpha1.Pull {
		left, err := r.removeWorks(ctx, cluster)
		if err != nil {
			return reconcile.Result{}, err
		}
		if left {
			return reconcile.Result{RequeueAfter: r.options.LeavingPeriod}, nil
		}
	}
	gone, err := r.removeExecutionSpace(ctx, cluster)
	if err != nil {
		r.events.Warning(cluster, reasonRemoveFailed, fmt.Sprintf("Failed to remove execution space(%s): %v", names.ExecutionNamespace(cluster.Name), err))
		return reconcile.Result{}, err
	}
	if !gone {
		return reconcile.Result{RequeueAfter: r.options.LeavingPeriod}, nil
	}
	bound, err := r.bound(ctx, cluster.Name)
	if err != nil {
		return reconcile.Result{}, err
	}
	if bound {
		return reconcile.Result{RequeueAfter: r.options.LeavingPeriod}, nil
	}
	finalizers := slices.DeleteFunc(slices.Clone(cluster.Finalizers), func(f string) bool { return f == clusterv1alpha1.ClusterControllerFinalizer })
	err = r.patch(ctx, cluster, map[string]any{"metadata": map[string]any{"resourceVersion": cluster.ResourceVersion, "finalizers": finalizers}})
	return reconcile.Result{}, client.IgnoreNotFound(err)
}

// removeExecutionSpace deletes the namespace and reports whether it is gone.
func (r *reconciler) removeExecutionSpace(ctx context.Context, cluster *clusterv1alpha1.Cluster) (bool, error) {
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
		_, err := r.deleteWorks(ctx, name)
		return false, err
	}
	if err := r.protect(ctx, namespace, ""); err != nil {
		return false, err
	}
	if err := r.client.Delete(ctx, namespace); err != nil && !apierrors.IsNotFound(err) {
		return false, fmt.Errorf("deleting namespace %s: %w", name, err)
	}
	r.events.Normal(cluster, reasonRemoveSucceed, fmt.Sprintf("Remove execution space(%s) succeed.", name))
	// The namespace controller takes longer to delete the Works. None can be created
	// in the namespace any longer.
	_, err = r.deleteWorks(ctx, name)
	return false, err
}

// deletions is the number of Works that are deleted at a time: API servers delete those of a collection one by one.
const deletions = 16

// deleteWorks deletes the Works in a namespace and returns how many there are still, those that are being deleted included.
func (r *reconciler) deleteWorks(ctx context.Context, namespace string) (int, error) {
	var works workv1alpha1.WorkList
	if err := r.client.List(ctx, &works, client.InNamespace(namespace), client.UnsafeDisableDeepCopy); err != nil {
		return 0, fmt.Errorf("listing the works in namespace %s: %w", namespace, err)
	}
	errs := make([]error, len(works.Items))
	workqueue.ParallelizeUntil(ctx, deletions, len(works.Items), func(i int) {
		listed := &works.Items[i]
		if !listed.DeletionTimestamp.IsZero() {
			return
		}
		work := &workv1alpha1.Work{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: listed.Name}}
		err := r.client.Delete(ctx, work, client.Preconditions{UID: &listed.UID})
		if client.IgnoreNotFound(err) != nil && !apierrors.IsConflict(err) {
			errs[i] = fmt.Errorf("deleting work %s/%s: %w", namespace, listed.Name, err)
		}
	})
	return len(works.Items), errors.Join(append(errs, ctx.Err())...)
}

// removeWorks deletes the Works of a cluster in Pull mode and reports whether its
// agent has not finished with them yet. They are deleted before the namespace, as the
// rights of the agent are deleted with that. It does not wait for an agent that is
// not running.
func (r *reconciler) removeWorks(ctx context.Context, cluster *clusterv1alpha1.Cluster) (bool, error) {
	if readyStatus(cluster) != metav1.ConditionTrue {
		return false, r.releaseWorks(ctx, cluster)
	}
	left, err := r.deleteWorks(ctx, names.ExecutionNamespace(cluster.Name))
	return left > 0, err
}

// releaseWorks removes the finalizer of all Works of a cluster.
func (r *reconciler) releaseWorks(ctx context.Context, cluster *clusterv1alpha1.Cluster) error {
	var works workv1alpha1.WorkList
	if err := r.client.List(ctx, &works, client.InNamespace(names.ExecutionNamespace(cluster.Name)), client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("listing the works of cluster %s: %w", cluster.Name, err)
	}
	errs := make([]error, len(works.Items))
	workqueue.ParallelizeUntil(ctx, deletions, len(works.Items), func(i int) {
		errs[i] = patch.RemoveFinalizer(ctx, r.client, &works.Items[i], workv1alpha2.ExecutionControllerFinalizer)
	})
	return errors.Join(append(errs, ctx.Err())...)
}

// bound reports whether the cluster is a target of any binding.
func (r *reconciler) bound(ctx context.Context, cluster string) (bool, error) {
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

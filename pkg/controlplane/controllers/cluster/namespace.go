package cluster

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"github.com/karmada-toolkit/karmada/internal/controllers"
	"github.com/karmada-toolkit/karmada/internal/patch"
	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
	"github.com/karmada-toolkit/karmada/pkg/apis/names"
	workv1alpha2 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha2"
)

// unprotected passes namespaces that are gone, are being deleted, or lost the label by
// which admission refuses to delete them.
func unprotected() predicate.Predicate {
	return controllers.Filter[*corev1.Namespace]{
		Created: controllers.Never[*corev1.Namespace],
		Updated: func(before, now *corev1.Namespace) bool {
			return before.DeletionTimestamp.IsZero() != now.DeletionTimestamp.IsZero() ||
				before.Labels[clusterv1alpha1.ExecutionNamespaceLabel] != now.Labels[clusterv1alpha1.ExecutionNamespaceLabel]
		},
	}
}

// ensureExecutionSpace creates the namespace for the cluster's Works if it does not
// exist, and protects it from being deleted.
func (r *reconciler) ensureExecutionSpace(ctx context.Context, cluster *clusterv1alpha1.Cluster) error {
	name := names.ExecutionNamespace(cluster.Name)
	namespace := &corev1.Namespace{}
	err := r.client.Get(ctx, client.ObjectKey{Name: name}, namespace)
	switch {
	case err == nil && !namespace.DeletionTimestamp.IsZero():
		return r.replaceExecutionSpace(ctx, cluster)
	case err == nil:
		return r.protect(ctx, namespace, cluster.Name)
	case !apierrors.IsNotFound(err):
		return fmt.Errorf("reading namespace %s: %w", name, err)
	}
	err = r.client.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{
		workv1alpha2.SystemLabel: workv1alpha2.SystemLabelValue, clusterv1alpha1.ExecutionNamespaceLabel: cluster.Name,
	}}})
	if apierrors.IsAlreadyExists(err) { // created for the rights of its agent
		if err := r.live.Get(ctx, client.ObjectKey{Name: name}, namespace); err != nil {
			return fmt.Errorf("reading namespace %s: %w", name, err)
		}
		return r.protect(ctx, namespace, cluster.Name)
	}
	if err != nil {
		r.events.Warning(cluster, reasonCreateFailed, fmt.Sprintf("Failed to create execution space(%s): %v", name, err))
		return fmt.Errorf("creating namespace %s: %w", name, err)
	}
	r.events.Normal(cluster, reasonCreateSucceed, fmt.Sprintf("Create execution space(%s) succeed.", name))
	return nil
}

// replaceExecutionSpace lets a namespace go that was deleted while its Cluster exists, so
// that it is created again when it is gone. The roles of an agent are deleted before the
// Works in it, which would keep their finalizers. The objects in the member stay: they
// belong to the Works again that are created in the new namespace.
func (r *reconciler) replaceExecutionSpace(ctx context.Context, cluster *clusterv1alpha1.Cluster) error {
	r.events.Warning(cluster, reasonRemoved, fmt.Sprintf("Execution space(%s) was deleted; it is created again with all works.", names.ExecutionNamespace(cluster.Name)))
	if cluster.Spec.SyncMode != clusterv1alpha1.Pull {
		return nil
	}
	return r.releaseWorks(ctx, cluster)
}

// protect sets the label of the Cluster on an execution namespace, or removes it; an empty
// name stands for none.
func (r *reconciler) protect(ctx context.Context, namespace *corev1.Namespace, cluster string) error {
	if namespace.Labels[clusterv1alpha1.ExecutionNamespaceLabel] == cluster {
		return nil
	}
	var value any
	if cluster != "" {
		value = cluster
	}
	change := patch.Merge(map[string]any{"metadata": map[string]any{"labels": map[string]any{clusterv1alpha1.ExecutionNamespaceLabel: value}}})
	out := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace.Name}}
	if err := r.client.Patch(ctx, out, change); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("labelling namespace %s: %w", namespace.Name, err)
	}
	return nil
}

// unprotect lets users delete the execution namespace of a Cluster that does not exist,
// such as one whose finalizer was removed by hand.
func (r *reconciler) unprotect(ctx context.Context, cluster string) error {
	namespace := &corev1.Namespace{}
	if err := r.client.Get(ctx, client.ObjectKey{Name: names.ExecutionNamespace(cluster)}, namespace); err != nil {
		return client.IgnoreNotFound(err)
	}
	return r.protect(ctx, namespace, "")
}

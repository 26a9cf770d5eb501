package operator

import (
	"context"
	"errors"
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	operatorv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/operator/v1alpha1"
	"github.com/karmada-toolkit/karmada/pkg/init/config"
)

// delete removes a control plane, unless its label keeps it, and then the finalizer. Claims of volumes, the namespace and Secrets of the
// user stay.
func (r *reconciler) delete(ctx context.Context, k *operatorv1alpha1.Karmada) error {
	if !controllerutil.ContainsFinalizer(k, operatorv1alpha1.KarmadaFinalizer) {
		return nil
	}
	if keep, has := k.Labels[operatorv1alpha1.DisableCascadingDeletionLabel]; !has || keep == "false" {
		if err := r.remove(ctx, k); err != nil {
			r.events.Warning(k, operatorv1alpha1.ReasonFailed, err.Error())
			return errors.Join(err, r.report(ctx, k, metav1.ConditionFalse, operatorv1alpha1.ReasonFailed, err.Error()))
		}
	}
	before := k.DeepCopy()
	controllerutil.RemoveFinalizer(k, operatorv1alpha1.KarmadaFinalizer)
	if err := r.client.Patch(ctx, k, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("removing the finalizer: %w", err)
	}
	return nil
}

// remove deletes the objects of a control plane: workloads before the Secrets that they mount.
func (r *reconciler) remove(ctx context.Context, k *operatorv1alpha1.Karmada) error {
	if err := r.report(ctx, k, metav1.ConditionFalse, operatorv1alpha1.ReasonProgressing, "karmada deinit job is in progressing"); err != nil {
		return err
	}
	h, err := r.host(ctx, k)
	if err != nil {
		return err
	}
	in := []client.Client{h.Client}
	if remote(k) != nil {
		in = append(in, r.client)
	}
	for _, c := range in {
		for _, list := range []client.ObjectList{&policyv1.PodDisruptionBudgetList{}, &appsv1.DeploymentList{}, &appsv1.StatefulSetList{}, &corev1.ServiceList{}, &corev1.SecretList{}} {
			if err := deleteAll(ctx, c, k, list); err != nil {
				return err
			}
		}
	}
	return nil
}

// pruneBudgets deletes the PodDisruptionBudgets of a control plane that its configuration does not have.
func pruneBudgets(ctx context.Context, c client.Client, k *operatorv1alpha1.Karmada, parts []config.Part) error {
	var wanted []string
	for _, part := range parts {
		if part.Further.DisruptionBudget != nil {
			wanted = append(wanted, namesOf(k)(part.Name))
		}
	}
	return deleteAll(ctx, c, k, &policyv1.PodDisruptionBudgetList{}, wanted...)
}

// deleteAll deletes the objects of a kind of a control plane, beside some.
func deleteAll(ctx context.Context, c client.Client, k *operatorv1alpha1.Karmada, list client.ObjectList, but ...string) error {
	if err := c.List(ctx, list, client.InNamespace(k.Namespace), client.MatchingLabels(labelsOf(k))); err != nil {
		return fmt.Errorf("listing what is to be removed: %w", err)
	}
	objects, err := meta.ExtractList(list)
	if err != nil {
		return fmt.Errorf("listing what is to be removed: %w", err)
	}
	var errs []error
	for _, obj := range objects {
		o, ok := obj.(client.Object)
		if !ok || slices.Contains(but, o.GetName()) {
			continue
		}
		if err := c.Delete(ctx, o, client.PropagationPolicy(metav1.DeletePropagationBackground)); client.IgnoreNotFound(err) != nil {
			errs = append(errs, fmt.Errorf("deleting %T %s: %w", o, client.ObjectKeyFromObject(o), err))
		}
	}
	return errors.Join(errs...)
}

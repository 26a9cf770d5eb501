package scheduler

import (
	policyv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/policy/v1alpha1"
	workv1alpha2 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha2"
)

// owned reports whether a scheduler of this name handles the binding.
func owned(b workv1alpha2.Binding, schedulerName string) bool {
	return assigned(b, schedulerName) && !b.GetSpec().SchedulingSuspended() && claimed(b)
}

// assigned reports whether the binding names the scheduler of this name.
func assigned(b workv1alpha2.Binding, schedulerName string) bool {
	name := b.GetSpec().SchedulerName
	if name == "" {
		name = policyv1alpha1.DefaultSchedulerName
	}
	return name == schedulerName
}

// claimed reports whether a policy or a controller claims the binding.
func claimed(b workv1alpha2.Binding) bool {
	labels := b.GetLabels()
	return labels[policyv1alpha1.PropagationPolicyPermanentIDLabel] != "" ||
		labels[policyv1alpha1.ClusterPropagationPolicyPermanentIDLabel] != "" ||
		labels[workv1alpha2.BindingManagedByLabel] != ""
}

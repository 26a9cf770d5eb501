package binding

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
	configv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/config/v1alpha1"
	policyv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/policy/v1alpha1"
	workv1alpha2 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha2"
	"github.com/karmada-toolkit/karmada/pkg/domain/override"
	"github.com/karmada-toolkit/karmada/pkg/domain/quota"
)

// checkQuota returns an error that wraps override.ErrForbidden if the policies of the
// namespace raise what an object requests in a cluster above what its binding is charged
// for, and a FederatedResourceQuota of the namespace counts it.
func (w *workWriter) checkQuota(ctx context.Context, obj, overridden *unstructured.Unstructured, cluster *clusterv1alpha1.Cluster, policies override.Policies) error {
	if !w.enforceQuotas || !w.interpreter.HookEnabled(obj.GroupVersionKind(), configv1alpha1.InterpreterOperationInterpretReplica) {
		return nil
	}
	quotas := &policyv1alpha1.FederatedResourceQuotaList{}
	if err := w.client.List(ctx, quotas, client.InNamespace(obj.GetNamespace()), client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("listing federated resource quotas: %w", err)
	}
	if len(quotas.Items) == 0 {
		return nil
	}
	// What cluster-wide policies change is the administrator's choice.
	base, _, err := override.ApplyInTime(obj, cluster, slices.DeleteFunc(slices.Clone(policies), func(p policyv1alpha1.OverridePolicyObject) bool {
		return p.GetNamespace() != ""
	}), w.clock)
	if err != nil {
		return err
	}
	charged, err := w.requests(base, cluster.Name)
	if err != nil {
		return err
	}
	delivered, err := w.requests(overridden, cluster.Name)
	if err != nil {
		return fmt.Errorf("%w: %w", err, override.ErrForbidden)
	}
	for i := range quotas.Items {
		q := &quotas.Items[i]
		for name := range q.Spec.Overall {
			before, after := charged[name], delivered[name]
			if after.Cmp(before) > 0 {
				return fmt.Errorf("the override policies of namespace %q raise the %s that %s %q requests in cluster %q from %s to %s, which FederatedResourceQuota %q counts; change the template instead: %w",
					obj.GetNamespace(), name, obj.GetKind(), obj.GetName(), cluster.Name, before.String(), after.String(), q.Name, override.ErrForbidden)
			}
		}
	}
	return nil
}

// requests returns what the replicas of an object request together.
func (w *workWriter) requests(obj *unstructured.Unstructured, cluster string) (corev1.ResourceList, error) {
	replicas, requirements, err := w.interpreter.GetReplicas(obj)
	if err != nil {
		return nil, fmt.Errorf("reading the replicas of %s %q: %w", obj.GetKind(), obj.GetName(), err)
	}
	return quota.Usage(&workv1alpha2.ResourceBindingSpec{
		Replicas: replicas, ReplicaRequirements: requirements,
		Clusters: []workv1alpha2.TargetCluster{{Name: cluster, Replicas: replicas}},
	}), nil
}

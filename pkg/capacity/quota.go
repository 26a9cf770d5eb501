package capacity

import (
	"context"
	"encoding/json"
	"fmt"
	"math"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	policyv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/policy/v1alpha1"
	workv1alpha2 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha2"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/estimate"
)

// Quotas are the ResourceQuotas of a namespace in members, as the control plane knows them, by cluster: those that are
// propagated, and the shares of FederatedResourceQuotas.
type Quotas map[string][]corev1.ResourceQuota

// ReadQuotas returns the quotas of a namespace. A status that is not readable counts as none.
func ReadQuotas(ctx context.Context, c client.Client, namespace string) (Quotas, error) {
	out := Quotas{}
	if namespace == "" {
		return out, nil
	}
	federated := &policyv1alpha1.FederatedResourceQuotaList{}
	if err := c.List(ctx, federated, client.InNamespace(namespace)); err != nil {
		return nil, fmt.Errorf("listing the FederatedResourceQuotas of namespace %s: %w", namespace, err)
	}
	for i := range federated.Items {
		f := &federated.Items[i]
		for _, s := range f.Status.AggregatedStatus {
			q := corev1.ResourceQuota{Status: s.ResourceQuotaStatus}
			q.Name = f.Name
			out[s.ClusterName] = append(out[s.ClusterName], q)
		}
	}
	bindings := &workv1alpha2.ResourceBindingList{}
	if err := c.List(ctx, bindings, client.InNamespace(namespace)); err != nil {
		return nil, fmt.Errorf("listing the ResourceBindings of namespace %s: %w", namespace, err)
	}
	for i := range bindings.Items {
		b := &bindings.Items[i]
		if ref := b.Spec.Resource; ref.APIVersion != "v1" || ref.Kind != "ResourceQuota" {
			continue
		}
		template := &corev1.ResourceQuota{}
		if err := c.Get(ctx, client.ObjectKey{Namespace: namespace, Name: b.Spec.Resource.Name}, template); client.IgnoreNotFound(err) != nil {
			return nil, fmt.Errorf("reading ResourceQuota %s/%s: %w", namespace, b.Spec.Resource.Name, err)
		}
		for _, item := range b.Status.AggregatedStatus {
			q := corev1.ResourceQuota{Spec: template.Spec}
			q.Name = b.Spec.Resource.Name
			if item.Status != nil && json.Unmarshal(item.Status.Raw, &q.Status) == nil {
				out[item.ClusterName] = append(out[item.ClusterName], q)
			}
		}
	}
	return out, nil
}

// Limit lowers what fits into clusters to what their quotas leave, and names the quota as what keeps it from being more.
func (q Quotas) Limit(w *Workload, fits []Fit) {
	for i := range fits {
		f := &fits[i]
		for _, quota := range q[f.Cluster] {
			left := quotaRoom(&quota, w)
			if f.Known && left < f.Replicas {
				f.Replicas, f.Bound, f.Source = left, "quota "+quota.Name, Quota
			}
		}
	}
}

// quotaRoom returns how many more replicas, or sets of components, a quota leaves room for.
func quotaRoom(q *corev1.ResourceQuota, w *Workload) int32 {
	quotas := []estimate.Quota{estimate.QuotaOf(q)}
	left := int32(math.MaxInt32)
	if len(w.Components) > 0 {
		left = estimate.QuotaSets(quotas, w.Namespace, w.Components, nil)
	} else if w.Requirements != nil {
		left = estimate.QuotaReplicas(quotas, w.Requirements, nil)
	}
	return max(left, 0)
}

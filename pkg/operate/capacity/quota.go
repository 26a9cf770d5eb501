package capacity

import (
	"context"
	"encoding/json"
	"fmt"
	"math"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	policyv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/policy/v1alpha1"
	workv1alpha2 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha2"
	"github.com/karmada-toolkit/karmada/pkg/domain/estimate"
)

// Quotas are the ResourceQuotas of a namespace in members, as the control plane knows them, by cluster: those that are
// propagated, and the shares of FederatedResourceQuotas.
type Quotas map[string][]corev1.ResourceQuota

// Quotas returns the quotas of a namespace. A status that is not readable counts as none.
func (r *Reader) Quotas(ctx context.Context, namespace string) (Quotas, error) {
	out := Quotas{}
	if namespace == "" {
		return out, nil
	}
	var federated policyv1alpha1.FederatedResourceQuotaList
	if err := r.list(ctx, policyv1alpha1.GroupVersion.WithResource("federatedresourcequotas"), namespace, &federated); err != nil {
		return nil, err
	}
	for i := range federated.Items {
		f := &federated.Items[i]
		for _, s := range f.Status.AggregatedStatus {
			q := corev1.ResourceQuota{Status: s.ResourceQuotaStatus}
			q.Name = f.Name
			out[s.ClusterName] = append(out[s.ClusterName], q)
		}
	}
	return out, r.propagated(ctx, namespace, out)
}

// propagated adds the ResourceQuotas that the control plane propagates, with the statuses that their bindings report.
func (r *Reader) propagated(ctx context.Context, namespace string, out Quotas) error {
	var templates corev1.ResourceQuotaList
	if err := r.list(ctx, corev1.SchemeGroupVersion.WithResource("resourcequotas"), namespace, &templates); err != nil || len(templates.Items) == 0 {
		return err
	}
	specs := map[string]corev1.ResourceQuotaSpec{}
	for i := range templates.Items {
		specs[templates.Items[i].Name] = templates.Items[i].Spec
	}
	var bindings workv1alpha2.ResourceBindingList
	if err := r.list(ctx, workv1alpha2.GroupVersion.WithResource("resourcebindings"), namespace, &bindings); err != nil {
		return err
	}
	for i := range bindings.Items {
		b := &bindings.Items[i]
		spec, ok := specs[b.Spec.Resource.Name]
		if ref := b.Spec.Resource; !ok || ref.APIVersion != "v1" || ref.Kind != "ResourceQuota" {
			continue
		}
		for _, item := range b.Status.AggregatedStatus {
			q := corev1.ResourceQuota{Spec: spec}
			q.Name = b.Spec.Resource.Name
			if item.Status != nil && json.Unmarshal(item.Status.Raw, &q.Status) == nil {
				out[item.ClusterName] = append(out[item.ClusterName], q)
			}
		}
	}
	return nil
}

// list reads the objects of a type in a namespace.
func (r *Reader) list(ctx context.Context, gvr schema.GroupVersionResource, namespace string, into any) error {
	found, err := r.ControlPlane.Resource(gvr).Namespace(namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("listing the %s of namespace %s: %w", gvr.Resource, namespace, err)
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(found.UnstructuredContent(), into); err != nil {
		return fmt.Errorf("decoding the %s of namespace %s: %w", gvr.Resource, namespace, err)
	}
	return nil
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

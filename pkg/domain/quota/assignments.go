package quota

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/karmada-toolkit/karmada/pkg/apis/names"
	policyv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/policy/v1alpha1"
	workv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha1"
)

// Labels of the Works of a quota.
const (
	NamespaceLabel = "federatedresourcequota.karmada.io/namespace"
	NameLabel      = "federatedresourcequota.karmada.io/name"
)

// Labels returns the labels of the Works of a quota.
func Labels(namespace, name string) map[string]string {
	return map[string]string{NamespaceLabel: namespace, NameLabel: name}
}

// WorkName returns the name of the Work of a quota, which is the same in every cluster.
func WorkName(namespace, name string) string { return names.Work("ResourceQuota", name, namespace) }

// Canonical reports whether a Work is the one of an assigned cluster. Agents may create other Works with the labels.
func Canonical(q *policyv1alpha1.FederatedResourceQuota, work *workv1alpha1.Work) bool {
	cluster, err := names.ClusterOfExecutionNamespace(work.Namespace)
	return err == nil && work.Name == WorkName(q.Namespace, q.Name) &&
		slices.ContainsFunc(q.Spec.StaticAssignments, func(a policyv1alpha1.StaticClusterAssignment) bool { return a.ClusterName == cluster })
}

// Assignment is the ResourceQuota that one cluster is to have.
type Assignment struct {
	Cluster string
	Object  *unstructured.Unstructured
}

// Assignments returns the ResourceQuotas of those assigned clusters that exist. If a cluster is assigned twice, the
// first assignment counts. One without limits leaves the cluster as it is.
func Assignments(q *policyv1alpha1.FederatedResourceQuota, exists func(cluster string) bool) ([]Assignment, error) {
	var out []Assignment
	seen := map[string]bool{}
	for i := range q.Spec.StaticAssignments {
		a := &q.Spec.StaticAssignments[i]
		if seen[a.ClusterName] || !exists(a.ClusterName) {
			continue
		}
		if seen[a.ClusterName] = true; a.Hard == nil {
			continue
		}
		object, err := resourceQuota(q, a.Hard)
		if err != nil {
			return nil, err
		}
		out = append(out, Assignment{Cluster: a.ClusterName, Object: object})
	}
	return out, nil
}

// Unassigned returns the Works, of those with the labels of a quota, whose cluster is not assigned. A quota of nil was
// deleted: all of its Works are returned.
func Unassigned(q *policyv1alpha1.FederatedResourceQuota, works []workv1alpha1.Work) []*workv1alpha1.Work {
	var out []*workv1alpha1.Work
	for i := range works {
		if q == nil || !Canonical(q, &works[i]) {
			out = append(out, &works[i])
		}
	}
	return out
}

func resourceQuota(q *policyv1alpha1.FederatedResourceQuota, hard corev1.ResourceList) (*unstructured.Unstructured, error) {
	object := &corev1.ResourceQuota{Spec: corev1.ResourceQuotaSpec{Hard: hard}}
	object.APIVersion, object.Kind = corev1.SchemeGroupVersion.String(), "ResourceQuota"
	object.Namespace, object.Name = q.Namespace, q.Name
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	if err != nil {
		return nil, fmt.Errorf("converting the ResourceQuota of %s/%s: %w", q.Namespace, q.Name, err)
	}
	return &unstructured.Unstructured{Object: content}, nil
}

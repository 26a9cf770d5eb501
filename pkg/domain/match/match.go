// Package match decides which clusters an affinity selects and which objects a
// resource selector selects. It is pure: the same values give the same answer.
package match

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"

	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
	policyv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/policy/v1alpha1"
	"github.com/karmada-toolkit/karmada/pkg/apis/validation"
)

// The keys that a field selector knows.
const (
	keyProvider = "provider"
	keyRegion   = "region"
	keyZone     = "zone"
)

// Cluster reports whether the affinity selects the cluster. A nil affinity selects
// every cluster; a selector that is invalid or too large selects none.
func Cluster(cluster *clusterv1alpha1.Cluster, affinity *policyv1alpha1.ClusterAffinity) bool {
	if affinity == nil {
		return true
	}
	if slices.Contains(affinity.ExcludeClusters, cluster.Name) {
		return false
	}
	if affinity.LabelSelector != nil {
		selector, err := validation.LabelSelector(affinity.LabelSelector)
		if err != nil || !selector.Matches(labels.Set(cluster.Labels)) {
			return false
		}
	}
	if affinity.FieldSelector != nil && (validation.CheckAffinity(affinity) != nil || !fields(cluster, affinity.FieldSelector.MatchExpressions)) {
		return false
	}
	return len(affinity.ClusterNames) == 0 || slices.Contains(affinity.ClusterNames, cluster.Name)
}

func fields(cluster *clusterv1alpha1.Cluster, requirements []corev1.NodeSelectorRequirement) bool {
	set := labels.Set{}
	if cluster.Spec.Provider != "" {
		set[keyProvider] = cluster.Spec.Provider
	}
	if cluster.Spec.Region != "" {
		set[keyRegion] = cluster.Spec.Region
	}
	for i := range requirements {
		if requirements[i].Key == keyZone {
			if !zones(cluster.Spec.Zones, &requirements[i]) {
				return false
			}
			continue
		}
		if !labelLike(set, &requirements[i]) {
			return false
		}
	}
	return true
}

func zones(have []string, r *corev1.NodeSelectorRequirement) bool {
	overlap := slices.ContainsFunc(have, func(z string) bool { return slices.Contains(r.Values, z) })
	switch r.Operator {
	case corev1.NodeSelectorOpIn:
		return overlap
	case corev1.NodeSelectorOpNotIn:
		return !overlap
	case corev1.NodeSelectorOpExists:
		return len(have) > 0
	case corev1.NodeSelectorOpDoesNotExist:
		return len(have) == 0
	default:
		return false
	}
}

func labelLike(set labels.Set, r *corev1.NodeSelectorRequirement) bool {
	requirement, err := labels.NewRequirement(r.Key, operator(r.Operator), r.Values)
	return err == nil && requirement.Matches(set)
}

// operator returns an operator as that of labels: "", which is not valid, for one that is not known.
func operator(of corev1.NodeSelectorOperator) selection.Operator {
	switch of {
	case corev1.NodeSelectorOpIn:
		return selection.In
	case corev1.NodeSelectorOpNotIn:
		return selection.NotIn
	case corev1.NodeSelectorOpExists:
		return selection.Exists
	case corev1.NodeSelectorOpDoesNotExist:
		return selection.DoesNotExist
	case corev1.NodeSelectorOpGt:
		return selection.GreaterThan
	case corev1.NodeSelectorOpLt:
		return selection.LessThan
	}
	return ""
}

// Priority is how specifically a selector selects an object.
type Priority int

// The values of Priority, from not at all to by name.
const (
	None Priority = iota
	All
	ByLabels
	ByName
)

// Resource returns how the selector selects the object, or None.
func Resource(obj *unstructured.Unstructured, rs *policyv1alpha1.ResourceSelector) Priority {
	if rs.APIVersion != obj.GetAPIVersion() || rs.Kind != obj.GetKind() {
		return None
	}
	if rs.Namespace != "" && rs.Namespace != obj.GetNamespace() {
		return None
	}
	if rs.Name != "" {
		if rs.Name == obj.GetName() {
			return ByName
		}
		return None
	}
	if rs.LabelSelector == nil {
		return All
	}
	selector, err := validation.LabelSelector(rs.LabelSelector)
	if err != nil || !selector.Matches(labels.Set(obj.GetLabels())) {
		return None
	}
	return ByLabels
}

// Resources returns the highest priority that any of the selectors gives the
// object.
func Resources(obj *unstructured.Unstructured, selectors []policyv1alpha1.ResourceSelector) Priority {
	best := None
	for i := range selectors {
		best = max(best, Resource(obj, &selectors[i]))
	}
	return best
}

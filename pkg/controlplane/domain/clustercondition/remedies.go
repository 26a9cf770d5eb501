package clustercondition

import (
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"

	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
	remedyv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/remedy/v1alpha1"
)

// RemedyActions returns the actions that remedies request for a cluster, sorted and each once.
func RemedyActions(cluster *clusterv1alpha1.Cluster, remedies []*remedyv1alpha1.Remedy) []string {
	var actions []string
	for _, remedy := range remedies {
		if affinity := remedy.Spec.ClusterAffinity; affinity != nil && !slices.Contains(affinity.ClusterNames, cluster.Name) {
			continue
		}
		if !decides(cluster, remedy.Spec.DecisionMatches) {
			continue
		}
		for _, action := range remedy.Spec.Actions {
			actions = append(actions, string(action))
		}
	}
	slices.Sort(actions)
	return slices.Compact(actions)
}

// decides reports whether any of the matches is met. Nil is always met, an empty list never.
func decides(cluster *clusterv1alpha1.Cluster, matches []remedyv1alpha1.DecisionMatch) bool {
	if matches == nil {
		return true
	}
	return slices.ContainsFunc(matches, func(m remedyv1alpha1.DecisionMatch) bool {
		if m.ClusterConditionMatch == nil {
			return false
		}
		condition := meta.FindStatusCondition(cluster.Status.Conditions, string(m.ClusterConditionMatch.ConditionType))
		if condition == nil {
			return false
		}
		equal := string(condition.Status) == m.ClusterConditionMatch.ConditionStatus
		switch m.ClusterConditionMatch.Operator {
		case remedyv1alpha1.ClusterConditionEqual:
			return equal
		case remedyv1alpha1.ClusterConditionNotEqual:
			return !equal
		}
		return false
	})
}

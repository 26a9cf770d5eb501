// Package clustercondition decides what follows from the conditions of a cluster: which taints ClusterTaintPolicies add
// and remove, and which actions Remedies request. Its functions are pure.
package clustercondition

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
	policyv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/policy/v1alpha1"
	remedyv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/remedy/v1alpha1"
	"github.com/karmada-toolkit/karmada/pkg/domain/match"
)

// Taints returns the taints that a cluster has after all policies were applied, oldest policy first, and reports whether
// they differ from those of the cluster. A taint that is added has the time now; one that exists keeps its value and
// time. Neither the cluster nor the policies are changed.
func Taints(cluster *clusterv1alpha1.Cluster, policies []*policyv1alpha1.ClusterTaintPolicy, now time.Time) (taints []corev1.Taint, changed bool) {
	taints = slices.Clone(cluster.Spec.Taints)
	policies = slices.Clone(policies)
	slices.SortStableFunc(policies, func(a, b *policyv1alpha1.ClusterTaintPolicy) int {
		return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name))
	})
	for _, policy := range policies {
		if policy.Spec.TargetClusters != nil && !match.Cluster(cluster, policy.Spec.TargetClusters) {
			continue
		}
		if holds(cluster.Status.Conditions, policy.Spec.AddOnConditions) {
			for _, taint := range policy.Spec.Taints {
				if index(taints, taint) >= 0 {
					continue
				}
				taints = append(taints, corev1.Taint{Key: taint.Key, Value: taint.Value, Effect: taint.Effect, TimeAdded: &metav1.Time{Time: now}})
			}
		}
		if holds(cluster.Status.Conditions, policy.Spec.RemoveOnConditions) {
			for _, taint := range policy.Spec.Taints {
				if i := index(taints, taint); i >= 0 {
					taints = slices.Delete(taints, i, i+1)
				}
			}
		}
	}
	// A cluster without taints to which one was added and removed again counts as changed, as in the contract's cases.
	if cluster.Spec.Taints == nil && taints != nil {
		return taints, true
	}
	return taints, !equality.Semantic.DeepEqual(cluster.Spec.Taints, taints)
}

// Describe returns the taints of a cluster as events name them.
func Describe(taints []corev1.Taint) string {
	if len(taints) == 0 {
		return "cluster now does not have taints"
	}
	texts := make([]string, 0, len(taints))
	for _, taint := range taints {
		fields := []string{"Key:" + taint.Key}
		if taint.Value != "" {
			fields = append(fields, "Value:"+taint.Value)
		}
		fields = append(fields, fmt.Sprintf("Effect:%s", taint.Effect))
		texts = append(texts, "{"+strings.Join(fields, ",")+"}")
	}
	return "cluster now has taints([" + strings.Join(texts, ",") + "])"
}

func index(taints []corev1.Taint, taint policyv1alpha1.Taint) int {
	return slices.IndexFunc(taints, func(t corev1.Taint) bool { return t.Key == taint.Key && t.Effect == taint.Effect })
}

// holds reports whether all requirements are met; no requirements are never met. A condition that the cluster does not
// have meets none.
func holds(conditions []metav1.Condition, requirements []policyv1alpha1.MatchCondition) bool {
	return len(requirements) > 0 && !slices.ContainsFunc(requirements, func(r policyv1alpha1.MatchCondition) bool {
		condition := meta.FindStatusCondition(conditions, r.ConditionType)
		if condition == nil {
			return true
		}
		listed := slices.Contains(r.StatusValues, condition.Status)
		switch r.Operator {
		case policyv1alpha1.MatchConditionOpIn:
			return !listed
		case policyv1alpha1.MatchConditionOpNotIn:
			return listed
		}
		return true
	})
}

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

// Cordons reports whether a taint is that of cordoned clusters.
func Cordons(t corev1.Taint) bool {
	return t.Key == clusterv1alpha1.TaintClusterUnschedulable && t.Effect == corev1.TaintEffectNoSchedule
}

// HealthTaints returns the taints that a cluster with that Ready condition has, and
// whether they differ from those it has. It keeps all other taints.
func HealthTaints(taints []corev1.Taint, ready *metav1.Condition, now time.Time) ([]corev1.Taint, bool) {
	add, remove := "", []string(nil)
	switch {
	case ready == nil:
		add = clusterv1alpha1.TaintClusterNotReady
	case ready.Status == metav1.ConditionFalse:
		add, remove = clusterv1alpha1.TaintClusterNotReady, []string{clusterv1alpha1.TaintClusterUnreachable}
	case ready.Status == metav1.ConditionUnknown:
		add, remove = clusterv1alpha1.TaintClusterUnreachable, []string{clusterv1alpha1.TaintClusterNotReady}
	case ready.Status == metav1.ConditionTrue:
		remove = []string{clusterv1alpha1.TaintClusterNotReady, clusterv1alpha1.TaintClusterUnreachable}
	}
	out := slices.DeleteFunc(slices.Clone(taints), func(t corev1.Taint) bool {
		return t.Effect == corev1.TaintEffectNoSchedule && slices.Contains(remove, t.Key)
	})
	changed := len(out) != len(taints)
	has := slices.ContainsFunc(out, func(t corev1.Taint) bool { return t.Key == add && t.Effect == corev1.TaintEffectNoSchedule })
	if add != "" && !has {
		at := metav1.NewTime(now)
		out = append(out, corev1.Taint{Key: add, Effect: corev1.TaintEffectNoSchedule, TimeAdded: &at})
		changed = true
	}
	return out, changed
}

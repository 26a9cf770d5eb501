package validation

import (
	"encoding/json"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	utilvalidation "k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	policyv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/policy/v1alpha1"
)

// maxPlacement is the size of the JSON of a placement, in bytes. Each binding has it twice, once as an annotation, of which
// all together have 256 KiB.
const maxPlacement = 64 << 10

// ValidatePlacementSize returns why the placement of a policy is too large, or nil. It may stay as large as it was in the
// old version of the policy, which may be nil.
func ValidatePlacementSize(p, old policyv1alpha1.Policy) error {
	size, err := placementSize(p)
	if err != nil || size <= maxPlacement {
		return err
	}
	if old != nil {
		if before, err := placementSize(old); err == nil && size <= before {
			return nil
		}
	}
	return field.Invalid(field.NewPath("spec", "placement"), fmt.Sprintf("%d bytes", size),
		fmt.Sprintf("the JSON of a placement has at most %d bytes: select clusters by labels or fields instead of names", maxPlacement))
}

func placementSize(p policyv1alpha1.Policy) (int, error) {
	data, err := json.Marshal(p.PropagationSpec().Placement)
	if err != nil {
		return 0, fmt.Errorf("encoding the placement: %w", err)
	}
	return len(data), nil
}

// ValidatePlacement checks the placement of a policy.
func ValidatePlacement(placement *policyv1alpha1.Placement, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if placement.ClusterAffinity != nil && placement.ClusterAffinities != nil {
		errs = append(errs, field.Invalid(path, *placement, "clusterAffinities cannot co-exist with clusterAffinity"))
	}
	affinities := path.Child("clusterAffinities")
	if !overflows(placement.ReplicaScheduling) {
		for i := range placement.ClusterAffinities {
			if tiers := placement.ClusterAffinities[i].OverflowAffinities; len(tiers) > 0 {
				errs = append(errs, field.Invalid(affinities.Index(i).Child("overflowAffinities"), tiers,
					"overflowAffinities can only be used together with dynamic weight or aggregated scheduling"))
			}
		}
	}
	errs = append(errs, validateClusterAffinity(placement.ClusterAffinity, path.Child("clusterAffinity"))...)
	errs = append(errs, validateClusterAffinities(placement.ClusterAffinities, affinities)...)
	errs = append(errs, validateSpreadConstraints(placement.SpreadConstraints, path.Child("spreadConstraints"))...)
	errs = append(errs, validateWorkloadAffinity(placement.WorkloadAffinity, path.Child("workloadAffinity"))...)
	return append(errs, validateTolerations(placement.ClusterTolerations, path.Child("clusterTolerations"))...)
}

// overflows reports whether the strategy supports overflow tiers.
func overflows(strategy *policyv1alpha1.ReplicaSchedulingStrategy) bool {
	if strategy == nil || strategy.ReplicaSchedulingType != policyv1alpha1.ReplicaSchedulingTypeDivided {
		return false
	}
	switch strategy.ReplicaDivisionPreference {
	case policyv1alpha1.ReplicaDivisionPreferenceAggregated:
		return true
	case policyv1alpha1.ReplicaDivisionPreferenceWeighted:
		return strategy.WeightPreference != nil && strategy.WeightPreference.DynamicWeight != ""
	}
	return false
}

func validateClusterAffinity(affinity *policyv1alpha1.ClusterAffinity, path *field.Path) field.ErrorList {
	if affinity == nil {
		return nil
	}
	return validateFieldSelector(affinity.FieldSelector, path.Child("fieldSelector"))
}

// validateFieldSelector reports the first expression that cannot be used.
func validateFieldSelector(selector *policyv1alpha1.FieldSelector, path *field.Path) field.ErrorList {
	if selector == nil {
		return nil
	}
	for _, e := range selector.MatchExpressions {
		switch e.Key {
		case "provider", "region", "zone":
		default:
			return field.ErrorList{field.Invalid(path, *selector, fmt.Sprintf("unsupported key %q, must be provider, region, or zone", e.Key))}
		}
		switch e.Operator {
		case corev1.NodeSelectorOpIn, corev1.NodeSelectorOpNotIn:
		default:
			return field.ErrorList{field.Invalid(path, *selector, fmt.Sprintf("unsupported operator %q, must be In or NotIn", e.Operator))}
		}
	}
	return nil
}

func validateClusterAffinities(terms []policyv1alpha1.ClusterAffinityTerm, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	names := make([]string, 0, len(terms))
	for i := range terms {
		term, at := &terms[i], path.Index(i)
		names = append(names, term.AffinityName)
		errs = append(errs, invalidEach(at, term.AffinityName, utilvalidation.IsQualifiedName(term.AffinityName))...)
		errs = append(errs, validateClusterAffinity(&term.ClusterAffinity, at)...)
		errs = append(errs, validateOverflow(term, at.Child("overflowAffinities"))...)
	}
	if !unique(names) {
		errs = append(errs, field.Invalid(path, terms, "each affinity term in a policy must have a unique name"))
	}
	return errs
}

func validateOverflow(term *policyv1alpha1.ClusterAffinityTerm, path *field.Path) field.ErrorList {
	if len(term.OverflowAffinities) == 0 {
		return nil
	}
	var errs field.ErrorList
	if a := term.ClusterAffinity; a.LabelSelector == nil && a.FieldSelector == nil && len(a.ClusterNames) == 0 && len(a.ExcludeClusters) == 0 {
		errs = append(errs, field.Invalid(path, term.OverflowAffinities, "overflowAffinities can only be used together with the inline ClusterAffinity"))
	}
	taken := []string{term.AffinityName}
	for j := range term.OverflowAffinities {
		tier, at := &term.OverflowAffinities[j], path.Index(j)
		name := at.Child("affinityName")
		errs = append(errs, invalidEach(name, tier.AffinityName, utilvalidation.IsQualifiedName(tier.AffinityName))...)
		if slices.Contains(taken, tier.AffinityName) {
			errs = append(errs, field.Invalid(name, tier.AffinityName,
				"overflow affinity name must be unique and must not duplicate the primary group's affinityName"))
		}
		taken = append(taken, tier.AffinityName)
		errs = append(errs, validateClusterAffinity(&tier.ClusterAffinity, at)...)
	}
	return errs
}

func validateSpreadConstraints(constraints []policyv1alpha1.SpreadConstraint, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	var fields []policyv1alpha1.SpreadFieldValue
	count := map[policyv1alpha1.SpreadFieldValue]int{}
	for i, c := range constraints {
		invalid := func(detail string) { errs = append(errs, field.Invalid(path.Index(i), c, detail)) }
		if c.SpreadByField != "" && c.SpreadByLabel != "" {
			invalid("spreadByLabel should not co-exist with spreadByField")
		}
		if c.MinGroups < 0 {
			invalid("minGroups lower than 0 is not allowed")
		}
		if c.MaxGroups < 0 {
			invalid("maxGroups lower than 0 is not allowed")
		}
		if c.MaxGroups > 0 && c.MaxGroups < c.MinGroups {
			invalid("maxGroups lower than minGroups is not allowed")
		}
		if c.SpreadByField != "" {
			if count[c.SpreadByField]++; count[c.SpreadByField] == 1 {
				fields = append(fields, c.SpreadByField)
			}
		}
	}
	for _, f := range fields {
		if count[f] > 1 {
			errs = append(errs, field.Invalid(path, constraints, fmt.Sprintf("multiple %s spread constraints are not allowed", f)))
		}
	}
	if len(fields) > 0 && count[policyv1alpha1.SpreadByFieldCluster] == 0 {
		errs = append(errs, field.Invalid(path, constraints,
			"the cluster spread constraint must be enabled in one of the constraints in case of SpreadByField is enabled"))
	}
	return errs
}

func validateWorkloadAffinity(affinity *policyv1alpha1.WorkloadAffinity, path *field.Path) field.ErrorList {
	if affinity == nil {
		return nil
	}
	var errs field.ErrorList
	check := func(key, child string) {
		errs = append(errs, invalidEach(path.Child(child, "groupByLabelKey"), key, utilvalidation.IsQualifiedName(key))...)
	}
	if affinity.Affinity != nil {
		check(affinity.Affinity.GroupByLabelKey, "affinity")
	}
	if affinity.AntiAffinity != nil {
		check(affinity.AntiAffinity.GroupByLabelKey, "antiAffinity")
	}
	if affinity.Affinity != nil && affinity.AntiAffinity != nil && affinity.Affinity.GroupByLabelKey == affinity.AntiAffinity.GroupByLabelKey {
		errs = append(errs, field.Invalid(path, *affinity, "affinity and antiAffinity must not use the same groupByLabelKey"))
	}
	return errs
}

func validateTolerations(tolerations []corev1.Toleration, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i, t := range tolerations {
		if t.Operator == corev1.TolerationOpLt || t.Operator == corev1.TolerationOpGt {
			errs = append(errs, field.NotSupported(path.Index(i).Child("operator"), t.Operator,
				[]corev1.TolerationOperator{"", corev1.TolerationOpExists, corev1.TolerationOpEqual}))
		}
	}
	return errs
}

// invalidEach returns one error for each problem with a value.
func invalidEach(path *field.Path, value any, problems []string) field.ErrorList {
	var errs field.ErrorList
	for _, problem := range problems {
		errs = append(errs, field.Invalid(path, value, problem))
	}
	return errs
}

func unique(names []string) bool {
	sorted := slices.Sorted(slices.Values(names))
	return len(slices.Compact(sorted)) == len(names)
}

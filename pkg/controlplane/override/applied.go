package override

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"

	policyv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/policy/v1alpha1"
)

// AppliedRule is a rule that was applied. The overriders are shared with the
// policy.
type AppliedRule struct {
	PolicyName string                    `json:"policyName"`
	Overriders policyv1alpha1.Overriders `json:"overriders"`
}

// Applied are the rules that were applied, in the order in which they were.
type Applied struct {
	Cluster, Namespaced []AppliedRule
}

// Annotations returns what a Work records: a JSON list for each scope that has
// applied rules, under AppliedClusterOverridesAnnotation and
// AppliedOverridesAnnotation. It is nil when no rule was applied.
func (a Applied) Annotations() (map[string]string, error) {
	var annotations map[string]string
	for key, rules := range map[string][]AppliedRule{
		policyv1alpha1.AppliedClusterOverridesAnnotation: a.Cluster,
		policyv1alpha1.AppliedOverridesAnnotation:        a.Namespaced,
	} {
		if len(rules) == 0 {
			continue
		}
		rules = slices.Clone(rules)
		slices.SortStableFunc(rules, func(a, b AppliedRule) int { return cmp.Compare(a.PolicyName, b.PolicyName) })
		data, err := json.Marshal(rules)
		if err != nil {
			return nil, fmt.Errorf("encoding applied overrides: %w", err)
		}
		if annotations == nil {
			annotations = make(map[string]string, 2)
		}
		annotations[key] = string(data)
	}
	return annotations, nil
}

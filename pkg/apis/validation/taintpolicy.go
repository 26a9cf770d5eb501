package validation

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	policyv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/policy/v1alpha1"
)

// ValidateClusterTaintPolicy checks a ClusterTaintPolicy. AllowNoExecute admits
// taints that evict.
func ValidateClusterTaintPolicy(p *policyv1alpha1.ClusterTaintPolicy, allowNoExecute bool) field.ErrorList {
	type identity struct {
		key    string
		effect corev1.TaintEffect
	}
	var errs field.ErrorList
	seen := map[identity]bool{}
	for i, taint := range p.Spec.Taints {
		at, id := field.NewPath("spec", "taints").Index(i), identity{taint.Key, taint.Effect}
		if taint.Effect == corev1.TaintEffectNoExecute && !allowNoExecute {
			errs = append(errs, field.Forbidden(at, "Configuring taint with NoExecute effect is not allowed, "+
				"this capability must be explicitly enabled by administrators through command-line flags"))
		}
		if seen[id] {
			errs = append(errs, field.Duplicate(at, fmt.Sprintf("Duplicate taint with the same key(%s) and effect(%s) is not allowed", taint.Key, taint.Effect)))
		}
		seen[id] = true
	}
	return errs
}

// Applicable returns the taints of a ClusterTaintPolicy that a cluster can have, and warnings about the others.
func Applicable(taints []policyv1alpha1.Taint) (valid []policyv1alpha1.Taint, warnings []string) {
	for i, taint := range taints {
		errs := validateTaint(taint.Key, taint.Value, taint.Effect, field.NewPath("spec", "taints").Index(i))
		if len(errs) == 0 {
			valid = append(valid, taint)
			continue
		}
		warnings = append(warnings, fmt.Sprintf("%v; no cluster gets this taint", errs.ToAggregate()))
	}
	return valid, warnings
}

package validation

import (
	"fmt"
	"strings"

	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	policyv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/policy/v1alpha1"
)

// Warner returns warnings about policies that are valid but may not have the
// intended effect.
type Warner struct {
	// Known reports whether a cluster has joined. Optional.
	Known func(cluster string) bool
	// Served reports whether an API serves a kind. Nil means that it is not known.
	Served func(apiVersion, kind string) bool
}

// PropagationPolicy returns warnings about a propagation policy.
func (w Warner) PropagationPolicy(p policyv1alpha1.Policy) []string {
	placement, path := &p.PropagationSpec().Placement, field.NewPath("spec", "placement")
	out := w.affinity(placement.ClusterAffinity, path.Child("clusterAffinity"))
	for i := range placement.ClusterAffinities {
		term, at := &placement.ClusterAffinities[i], path.Child("clusterAffinities").Index(i)
		out = append(out, w.affinity(&term.ClusterAffinity, at)...)
		for j := range term.OverflowAffinities {
			out = append(out, w.affinity(&term.OverflowAffinities[j].ClusterAffinity, at.Child("overflowAffinities").Index(j))...)
		}
	}
	if r := placement.ReplicaScheduling; r != nil && r.WeightPreference != nil {
		for i := range r.WeightPreference.StaticWeightList {
			out = append(out, w.affinity(&r.WeightPreference.StaticWeightList[i].TargetCluster,
				path.Child("replicaScheduling", "weightPreference", "staticWeightList").Index(i).Child("targetCluster"))...)
		}
	}
	return append(out, w.selectors(p.PropagationSpec().ResourceSelectors, field.NewPath("spec", "resourceSelectors"))...)
}

// OverridePolicy returns warnings about an override policy.
func (w Warner) OverridePolicy(p policyv1alpha1.OverridePolicyObject) []string {
	spec, path := p.OverrideSpec(), field.NewPath("spec")
	var out []string
	if spec.TargetCluster != nil || hasOverriders(&spec.Overriders) || len(spec.Overriders.FieldOverrider) > 0 {
		out = append(out, "spec.targetCluster and spec.overriders are deprecated, use spec.overrideRules")
	}
	out = append(out, w.affinity(spec.TargetCluster, path.Child("targetCluster"))...)
	for _, err := range validateOverriders(&spec.Overriders, path.Child("overriders")) {
		out = append(out, err.Error())
	}
	for i := range spec.OverrideRules {
		out = append(out, w.affinity(spec.OverrideRules[i].TargetCluster, path.Child("overrideRules").Index(i).Child("targetCluster"))...)
	}
	return append(out, w.selectors(spec.ResourceSelectors, path.Child("resourceSelectors"))...)
}

// ClusterTaintPolicy returns warnings about a ClusterTaintPolicy.
func (w Warner) ClusterTaintPolicy(p *policyv1alpha1.ClusterTaintPolicy) []string {
	_, taints := Applicable(p.Spec.Taints)
	return append(w.affinity(p.Spec.TargetClusters, field.NewPath("spec", "targetClusters")), taints...)
}

// affinity returns warnings about selectors that match nothing and about clusters
// that have not joined.
func (w Warner) affinity(a *policyv1alpha1.ClusterAffinity, path *field.Path) []string {
	if a == nil {
		return nil
	}
	var out []string
	for _, err := range metav1validation.ValidateLabelSelector(a.LabelSelector, metav1validation.LabelSelectorValidationOptions{}, path.Child("labelSelector")) {
		out = append(out, err.Error())
	}
	for i, name := range a.ClusterNames {
		at := path.Child("clusterNames").Index(i)
		if problems := ValidateClusterName(name); len(problems) > 0 {
			out = append(out, fmt.Sprintf("%s: %q cannot be the name of a cluster: %s", at, name, strings.Join(problems, ", ")))
		} else if w.Known != nil && !w.Known(name) {
			out = append(out, fmt.Sprintf("%s: no cluster %q has joined", at, name))
		}
	}
	return out
}

// maxLookups limits the kinds of one policy that are looked up for warnings: a kind that is not served costs requests.
const maxLookups = 32

// selectors returns warnings about selectors that match nothing.
func (w Warner) selectors(selectors []policyv1alpha1.ResourceSelector, path *field.Path) []string {
	var out []string
	served := map[schema.GroupVersionKind]bool{}
	for i := range selectors {
		for _, err := range metav1validation.ValidateLabelSelector(selectors[i].LabelSelector,
			metav1validation.LabelSelectorValidationOptions{}, path.Index(i).Child("labelSelector")) {
			out = append(out, err.Error())
		}
		rs := &selectors[i]
		if w.Served == nil || rs.APIVersion == "" || rs.Kind == "" {
			continue
		}
		kind := schema.FromAPIVersionAndKind(rs.APIVersion, rs.Kind)
		found, known := served[kind]
		if !known && len(served) < maxLookups {
			found, known = w.Served(rs.APIVersion, rs.Kind), true
			served[kind] = found
		}
		if known && !found {
			out = append(out, fmt.Sprintf("%s: no API serves kind %q of %q: the selector matches nothing until one does", path.Index(i), rs.Kind, rs.APIVersion))
		}
	}
	return out
}

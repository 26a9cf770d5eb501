package validation

import (
	"crypto/x509"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	configv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/config/v1alpha1"
	"github.com/karmada-toolkit/karmada/pkg/apis/names"
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
	out = append(out, spread(placement, path.Child("spreadConstraints"))...)
	return append(out, w.selectors(p.PropagationSpec().ResourceSelectors, field.NewPath("spec", "resourceSelectors"))...)
}

// spread returns warnings about spread constraints that have no effect or leave no cluster.
func spread(placement *policyv1alpha1.Placement, path *field.Path) []string {
	switch constraints := placement.SpreadConstraints; {
	case len(constraints) == 0:
		return nil
	case placement.IgnoresSpread():
		return []string{fmt.Sprintf("%s: the number of clusters is not limited: a static weight takes all that fit", path)}
	case !spreadBy(constraints, policyv1alpha1.SpreadByFieldCluster):
		return []string{fmt.Sprintf("%s: nothing is scheduled without a constraint for clusters: they are not spread by labels", path)}
	}
	var out []string
	for i, c := range placement.SpreadConstraints {
		at := path.Index(i)
		switch byRegion := spreadBy(placement.SpreadConstraints, policyv1alpha1.SpreadByFieldRegion); {
		case c.SpreadByLabel != "":
			out = append(out, fmt.Sprintf("%s has no effect: clusters are not spread by labels", at))
		case c.SpreadByField == policyv1alpha1.SpreadByFieldZone || c.SpreadByField == policyv1alpha1.SpreadByFieldProvider:
			out = append(out, fmt.Sprintf("%s: clusters are not spread by %s: those without one are left out", at, c.SpreadByField))
		case c.MaxGroups == 0 && (c.SpreadByField == policyv1alpha1.SpreadByFieldRegion || !byRegion):
			out = append(out, fmt.Sprintf("%s: nothing is scheduled without maxGroups: 0 is the most that is selected", at))
		}
	}
	return out
}

func spreadBy(constraints []policyv1alpha1.SpreadConstraint, by policyv1alpha1.SpreadFieldValue) bool {
	return slices.ContainsFunc(constraints, func(c policyv1alpha1.SpreadConstraint) bool { return c.SpreadByField == by })
}

// InterpreterWebhooks returns warnings about a ResourceInterpreterWebhookConfiguration.
func (w Warner) InterpreterWebhooks(c *configv1alpha1.ResourceInterpreterWebhookConfiguration) []string {
	var out []string
	for i := range c.Webhooks {
		if bundle := c.Webhooks[i].ClientConfig.CABundle; len(bundle) > 0 && !x509.NewCertPool().AppendCertsFromPEM(bundle) {
			out = append(out, fmt.Sprintf("%s: it has no certificate: all calls fail", field.NewPath("webhooks").Index(i).Child("clientConfig", "caBundle")))
		}
	}
	return out
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
	out = append(out, replacedMaps(&spec.Overriders, path.Child("overriders"))...)
	for i := range spec.OverrideRules {
		out = append(out, replacedMaps(&spec.OverrideRules[i].Overriders, path.Child("overrideRules").Index(i).Child("overriders"))...)
		out = append(out, w.affinity(spec.OverrideRules[i].TargetCluster, path.Child("overrideRules").Index(i).Child("targetCluster"))...)
	}
	return append(out, w.selectors(spec.ResourceSelectors, path.Child("resourceSelectors"))...)
}

// replacedMaps returns warnings about maps that "add" sets as a whole, as JSON Patch says: what is in such a map is gone.
func replacedMaps(o *policyv1alpha1.Overriders, path *field.Path) []string {
	var out []string
	for i := range o.Plaintext {
		p, value := &o.Plaintext[i], map[string]json.RawMessage{}
		at := p.Path[strings.LastIndex(p.Path, "/")+1:]
		if p.Operator != policyv1alpha1.OverriderOpAdd || json.Unmarshal(p.Value.Raw, &value) != nil || len(value) == 0 ||
			!slices.Contains([]string{"annotations", "labels", "matchLabels", "nodeSelector", "data", "stringData", "binaryData", "limits", "requests"}, at) {
			continue
		}
		key := strings.NewReplacer("~", "~0", "/", "~1").Replace(slices.Sorted(maps.Keys(value))[0])
		out = append(out, fmt.Sprintf("%s: add replaces a map that is there, with all of its keys; to add a key, use the path %s/%s and its value",
			path.Child("plaintext").Index(i), p.Path, key))
	}
	return out
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
	served, skipped := map[schema.GroupVersionKind]bool{}, map[string]bool{}
	for i := range selectors {
		if namespace := selectors[i].Namespace; names.SkippedByDefault(namespace) && !skipped[namespace] {
			skipped[namespace] = true
			by := ", by the default of --skipped-propagating-namespaces of karmada-controller-manager"
			if names.ReservedNamespace(namespace) {
				by = ": it belongs to the control plane"
			}
			out = append(out, fmt.Sprintf("%s: nothing of namespace %q is propagated%s", path.Index(i).Child("namespace"), namespace, by))
		}
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

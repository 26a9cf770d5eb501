package validation

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	policyv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/policy/v1alpha1"
	searchv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/search/v1alpha1"
)

func TestValidateResourceRegistry(t *testing.T) {
	kinds := func(r *searchv1alpha1.ResourceRegistry, s ...searchv1alpha1.ResourceSelector) {
		r.Spec.ResourceSelectors = s
	}
	addresses := func(r *searchv1alpha1.ResourceRegistry, a ...string) {
		r.Spec.BackendStore = &searchv1alpha1.BackendStoreConfig{OpenSearch: &searchv1alpha1.OpenSearchConfig{Addresses: a}}
	}
	for name, tc := range map[string]struct {
		change func(*searchv1alpha1.ResourceRegistry)
		want   string // part of the only error; none if empty
	}{
		"as in the samples": {func(r *searchv1alpha1.ResourceRegistry) {
			kinds(r, searchv1alpha1.ResourceSelector{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "shop"})
		}, ""},
		"no version and no kind":     {func(r *searchv1alpha1.ResourceRegistry) { kinds(r, searchv1alpha1.ResourceSelector{}) }, ""},
		"a store without an address": {func(r *searchv1alpha1.ResourceRegistry) { addresses(r) }, ""},
		"a store":                    {func(r *searchv1alpha1.ResourceRegistry) { addresses(r, "http://a:9200", "https://b") }, ""},
		"a name that is no name":     {func(r *searchv1alpha1.ResourceRegistry) { r.Name = "A_b" }, "metadata.name"},
		"a namespace":                {func(r *searchv1alpha1.ResourceRegistry) { r.Namespace = "x" }, "metadata.namespace"},
		"a version that cannot be read": {func(r *searchv1alpha1.ResourceRegistry) {
			kinds(r, searchv1alpha1.ResourceSelector{APIVersion: "a/b/c"})
		}, "spec.resourceSelectors[0].apiVersion"},
		"a namespace that is no name": {func(r *searchv1alpha1.ResourceRegistry) { kinds(r, searchv1alpha1.ResourceSelector{Namespace: "A"}) }, "spec.resourceSelectors[0].namespace"},
		"too many kinds": {func(r *searchv1alpha1.ResourceRegistry) {
			kinds(r, make([]searchv1alpha1.ResourceSelector, MaxResourceSelectors+1)...)
		}, "spec.resourceSelectors"},
		"an address without a scheme":    {func(r *searchv1alpha1.ResourceRegistry) { addresses(r, "a:9200") }, "spec.backendStore.openSearch.addresses[0]: Invalid value: \"a:9200\": " + addressForms},
		"an address of another protocol": {func(r *searchv1alpha1.ResourceRegistry) { addresses(r, "http://a", "ftp://a") }, "addresses[1]"},
		"an address without a host":      {func(r *searchv1alpha1.ResourceRegistry) { addresses(r, "https:///x") }, addressForms},
		"an address with a password":     {func(r *searchv1alpha1.ResourceRegistry) { addresses(r, "https://u:hunter2@a") }, "the address of a has a user name or password"},
		"a field that is not supported": {func(r *searchv1alpha1.ResourceRegistry) {
			r.Spec.TargetCluster.FieldSelector = &policyv1alpha1.FieldSelector{MatchExpressions: []corev1.NodeSelectorRequirement{{Key: "x", Operator: corev1.NodeSelectorOpIn}}}
		}, "spec.targetCluster.fieldSelector"},
		"a selector that is too large": {func(r *searchv1alpha1.ResourceRegistry) {
			r.Spec.TargetCluster.LabelSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"a": strings.Repeat("x", 1<<20)}}
		}, "spec.targetCluster: Forbidden"},
	} {
		t.Run(name, func(t *testing.T) {
			r := &searchv1alpha1.ResourceRegistry{ObjectMeta: metav1.ObjectMeta{Name: "all"}}
			tc.change(r)
			errs := ValidateResourceRegistry(r)
			switch {
			case tc.want == "" && len(errs) > 0:
				t.Error(errs)
			case tc.want != "" && (len(errs) != 1 || !strings.Contains(errs[0].Error(), tc.want)):
				t.Errorf("got %v, want one error about %s", errs, tc.want)
			case len(errs) > 0 && strings.Contains(errs[0].Error(), "hunter2"):
				t.Errorf("the error shows the password: %v", errs)
			}
		})
	}
}

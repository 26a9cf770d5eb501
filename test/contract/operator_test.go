package contract

import (
	"maps"
	"os"
	"regexp"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/yaml"
)

// operatorRights are all that the chart of the operator grants, by resource, with the code that needs it.
var operatorRights = map[string][]string{
	// The cache; operator.claim and operator.delete.
	"operator.karmada.io/karmadas": {"list", "patch", "watch"},
	// operator.report.
	"operator.karmada.io/karmadas/status": {"patch"},
	// events.ForManager and the elected leader; rollout.reasons lists those of pods.
	"events": {"create", "list", "patch"},
	// hostcluster.Facts; write.Apply of components.HostNamespace.
	"namespaces": {"create", "get", "patch"},
	// Users' Secrets, in operator.secret; write.Apply; operator.deleteAll and phases.Delete.
	"secrets": {"create", "delete", "get", "list", "patch"},
	// As for Secrets, and the cache.
	"services":          {"create", "delete", "get", "list", "patch", "watch"},
	"apps/deployments":  {"create", "delete", "get", "list", "patch", "watch"},
	"apps/statefulsets": {"create", "delete", "get", "list", "patch", "watch"},
	// write.Apply; operator.pruneBudgets.
	"policy/poddisruptionbudgets": {"create", "delete", "get", "list", "patch"},
	// hostcluster.Facts; phases.labelNode.
	"nodes": {"list", "patch"},
	// rollout.snapshot; rollout.reasons.
	"pods":     {"list"},
	"pods/log": {"get"},
	// The election of a leader, in the namespace of the operator.
	"coordination.k8s.io/leases": {"create", "get", "update"},
}

// TestOperatorRole_GrantsWhatIsNeeded compares the rules of the chart of the operator with what its code needs.
func TestOperatorRole_GrantsWhatIsNeeded(t *testing.T) {
	text, err := os.ReadFile("../../charts/karmada-operator/templates/rbac.yaml")
	if err != nil {
		t.Fatal(err)
	}
	got := map[string][]string{}
	for _, found := range regexp.MustCompile(`(?m)^rules:\n((?:[-#].*\n)+?)---`).FindAllSubmatch(text, -1) {
		var rules []rbacv1.PolicyRule
		if err := yaml.UnmarshalStrict(found[1], &rules); err != nil {
			t.Fatal(err)
		}
		for _, rule := range rules {
			if len(rule.APIGroups) != 1 || len(rule.ResourceNames)+len(rule.NonResourceURLs) > 0 {
				t.Errorf("one group for each rule, and nothing else: %+v", rule)
				continue
			}
			for _, resource := range rule.Resources {
				if group := rule.APIGroups[0]; group != "" {
					resource = group + "/" + resource
				}
				got[resource] = slices.Sorted(slices.Values(append(got[resource], rule.Verbs...)))
			}
		}
	}
	if diff := cmp.Diff(operatorRights, got); diff != "" {
		t.Errorf("needed and granted, of %v:\n%s", slices.Sorted(maps.Keys(got)), diff)
	}
}

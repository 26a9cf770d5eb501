package components

import (
	"slices"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
)

func TestFederationRBAC_UsersReadNoWorksAndWriteNoBindings(t *testing.T) {
	for _, obj := range FederationRBAC() {
		role, ok := obj.(*rbacv1.ClusterRole)
		if !ok {
			continue
		}
		for _, rule := range role.Rules {
			if !slices.Contains(rule.APIGroups, "work.karmada.io") && !slices.Contains(rule.APIGroups, "*") {
				continue
			}
			for _, resource := range rule.Resources {
				if !slices.Contains([]string{"resourcebindings", "resourcebindings/status", "clusterresourcebindings"}, resource) {
					t.Errorf("%s: rule for %s", role.Name, resource)
				}
			}
			for _, verb := range rule.Verbs {
				if !slices.Contains([]string{"get", "list", "watch"}, verb) {
					t.Errorf("%s: verb %s for %v", role.Name, verb, rule.Resources)
				}
			}
		}
	}
}

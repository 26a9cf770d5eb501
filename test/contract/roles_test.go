package contract

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/karmada-toolkit/karmada/pkg/init/components"
	"github.com/karmada-toolkit/karmada/pkg/member/registration"
)

// powers are what the holder of a right can make of it, beyond the objects that the rule names: the right to do one of
// verbs on one of resources. Where named is set, a rule that names its objects gives it as well.
var powers = []struct {
	name             string
	group            string
	resources, verbs []string
	named            bool
}{
	{"Secrets", "", []string{"secrets"}, []string{"get", "list", "watch"}, false},
	{"tokens", "", []string{"secrets", "serviceaccounts/token"}, []string{"create"}, false},
	{"workloads", "apps", []string{"deployments", "statefulsets", "daemonsets", "replicasets"}, []string{"create", "update", "patch"}, true},
	{"workloads", "", []string{"pods", "replicationcontrollers"}, []string{"create", "update", "patch"}, true},
	{"roles", "rbac.authorization.k8s.io", []string{"roles", "clusterroles", "rolebindings", "clusterrolebindings"}, []string{"create", "update", "patch", "escalate", "bind"}, false},
	{"impersonation", "", []string{"users", "groups", "serviceaccounts"}, []string{"impersonate"}, false},
	{"impersonation", "authentication.k8s.io", []string{"users", "groups"}, []string{"impersonate", "impersonate:user-info"}, false},
	{"certificates", "certificates.k8s.io", []string{"certificatesigningrequests/approval", "signers"}, []string{"update", "patch", "approve", "sign"}, true},
	{"admission", "admissionregistration.k8s.io", []string{"mutatingwebhookconfigurations", "validatingwebhookconfigurations"}, []string{"create", "update", "patch", "delete"}, false},
	{"members", "work.karmada.io", []string{"works", "resourcebindings", "clusterresourcebindings"}, []string{"create", "update", "patch"}, false},
	{"members", "cluster.karmada.io", []string{"clusters/proxy"}, []string{"create", "get"}, false},
}

func powersOf(rules []rbacv1.PolicyRule) []string {
	has := func(list, want []string) bool {
		return slices.ContainsFunc(list, func(s string) bool { return s == "*" || slices.Contains(want, s) })
	}
	var out []string
	for _, p := range powers {
		for _, rule := range rules {
			if has(rule.APIGroups, []string{p.group}) && has(rule.Resources, p.resources) && has(rule.Verbs, p.verbs) && (p.named || len(rule.ResourceNames) == 0) && !slices.Contains(out, p.name) {
				out = append(out, p.name)
			}
		}
	}
	return out
}

// TestRoles_PowersAreThoseOfTheDocument compares what the roles that installers and agents make could be used for with the
// table in docs/security.md.
func TestRoles_PowersAreThoseOfTheDocument(t *testing.T) {
	bootstrap, err := registration.Bootstrap("https://server", nil)
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, o := range slices.Concat(
		components.ComponentRBAC("karmada-system"), components.FederationRBAC(), bootstrap,
		registration.AgentRBAC(registration.AgentAccess{Cluster: "NAME", Namespace: "karmada-cluster"}), registration.TombstoneRBAC("NAME"),
	) {
		add := func(o client.Object, rules []rbacv1.PolicyRule) {
			if found := powersOf(rules); len(found) > 0 {
				got[o.GetName()] = strings.Join(found, ", ")
			}
		}
		switch o := o.(type) {
		case *rbacv1.ClusterRole:
			add(o, o.Rules)
		case *rbacv1.Role:
			add(o, o.Rules)
		}
	}
	text, err := os.ReadFile("../../docs/security.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(text), "\n## Roles\n")
	table, _, _ = strings.Cut(table, "\n## ")
	want := map[string]string{}
	for _, row := range regexp.MustCompile("(?m)^\\| `([^`]+)` \\| ([^|]+) \\|").FindAllStringSubmatch(table, -1) {
		want[row[1]] = row[2]
	}
	for name := range got {
		if want[name] != got[name] {
			t.Errorf("%s could be used for %q, docs/security.md says %q", name, got[name], want[name])
		}
	}
	for name := range want {
		if got[name] == "" {
			t.Errorf("docs/security.md has a row for %s, which has none of these rights", name)
		}
	}
}

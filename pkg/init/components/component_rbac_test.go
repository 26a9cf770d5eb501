package components

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/karmada-toolkit/karmada/internal/build"
	"github.com/karmada-toolkit/karmada/pkg/apis/names"
)

// rolesOf returns the rules of the ClusterRoles of components, by user.
func rolesOf(t *testing.T) map[string][]rbacv1.PolicyRule {
	t.Helper()
	out := map[string][]rbacv1.PolicyRule{}
	for _, o := range ComponentRBAC("karmada-system") {
		if role, ok := o.(*rbacv1.ClusterRole); ok {
			out[role.Name] = role.Rules
		}
	}
	return out
}

func TestComponentRBAC_NamesEveryVerb(t *testing.T) {
	for user, rules := range rolesOf(t) {
		for _, r := range rules {
			if slices.Contains(r.Verbs, "*") {
				t.Errorf("%s: %v may do everything", user, r)
			}
			if !slices.Contains(r.Resources, "*") {
				continue
			}
			if user == UserOf(Search) {
				if diff := cmp.Diff(impersonatedReads(), r.Verbs); diff != "" {
					t.Errorf("%s: verbs on every resource: %s", user, diff)
				}
				continue
			}
			if user == names.ReadersGroup { // as whom only the search role acts, with these verbs
				if diff := cmp.Diff([]string{"get", "list", "watch"}, r.Verbs); diff != "" {
					t.Errorf("%s: verbs on every resource: %s", user, diff)
				}
				continue
			}
			if user != UserOf(ControllerManager) {
				t.Errorf("%s: %v is about every resource", user, r)
			}
			if diff := cmp.Diff([]string{"get", "list", "watch", "patch"}, r.Verbs); diff != "" {
				t.Errorf("%s: verbs on every resource: %s", user, diff)
			}
		}
	}
}

func TestComponentRBAC_OnlyTheControllersWriteRights(t *testing.T) {
	for user, rules := range rolesOf(t) {
		for _, r := range rules {
			dangerous := slices.Contains(r.APIGroups, rbacv1.GroupName) || slices.Contains(r.Resources, "signers") ||
				slices.Contains(r.Verbs, "impersonate") || slices.ContainsFunc(r.Resources, func(s string) bool { return strings.HasSuffix(s, "/token") || strings.HasSuffix(s, "/proxy") })
			if dangerous && user != UserOf(ControllerManager) {
				t.Errorf("%s: %v", user, r)
			}
		}
	}
}

func TestComponentRBAC_BindsEachUserToItsRole(t *testing.T) {
	for _, o := range ComponentRBAC("karmada-system", append(CompactParts(), MetricsAdapter, Search)...) {
		binding, ok := o.(*rbacv1.ClusterRoleBinding)
		if !ok {
			continue
		}
		want := []string{binding.Name}
		if slices.Contains([]string{UserOf(AggregatedAPIServer), UserOf(Webhook), UserOf(ControllerManager), UserOf(Scheduler), UserOf(MetricsAdapter), UserOf(Search)}, binding.Name) {
			want = append(want, "system:karmada:all-in-one")
		}
		var got []string
		for _, s := range binding.Subjects {
			if (s.Kind == rbacv1.GroupKind) != (binding.Name == names.ReadersGroup) {
				t.Errorf("%s is bound to %s %s", binding.Name, s.Kind, s.Name)
			}
			got = append(got, s.Name)
		}
		if diff := cmp.Diff(want, got); diff != "" || binding.RoleRef.Name != binding.Name {
			t.Errorf("%s: %s", binding.Name, diff)
		}
	}
	for _, component := range kubeconfigUsers() {
		if _, ok := rolesOf(t)[UserOf(component)]; !ok && component != KubeControllerManager {
			t.Errorf("%s has a kubeconfig and no role", component)
		}
	}
}

func TestComponentRBAC(t *testing.T) {
	build.AssertGolden(t, "component-rbac", render(t, ComponentRBAC("karmada-system")...))
}

func TestAdmissionConfiguration(t *testing.T) {
	kubeconfig, err := AdmissionKubeconfig("karmada-webhook.karmada-system.svc", []byte("certificate"), []byte("key"))
	if err != nil {
		t.Fatal(err)
	}
	build.AssertGolden(t, "admission", string(AdmissionConfiguration("/etc/karmada/admission/webhooks.kubeconfig"))+"---\n"+string(kubeconfig))
}

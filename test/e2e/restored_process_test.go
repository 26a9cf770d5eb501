//go:build !kind

package e2e

import (
	"strings"
	"testing"
)

// TestRestored_ByInstallers deletes by hand what only an installer makes, and runs the installer again.
func TestRestored_ByInstallers(t *testing.T) {
	ns := namespace(t)
	list := func(kinds string) string {
		var kept []string
		for line := range strings.Lines(must(t, "get", kinds, "-s", "karmada", "-o", "name")) {
			if strings.Contains(line, "karmada") || strings.Contains(line, "-config") {
				kept = append(kept, line)
			}
		}
		return strings.Join(kept, "")
	}
	const kinds = "validatingwebhookconfigurations,mutatingwebhookconfigurations,validatingadmissionpolicies,validatingadmissionpolicybindings,apiservices,clusterroles"
	before := list(kinds)
	secrets := must(t, "get", "secrets", "-n", "karmada-cluster", "-s", "karmada", "-o", "name")
	deletions := []string{
		"validatingwebhookconfigurations --all", "mutatingwebhookconfigurations --all", "validatingadmissionpolicies --all",
		"validatingadmissionpolicybindings --all", "apiservice v1alpha1.cluster.karmada.io",
		"clusterrole karmada-view karmada-edit karmada-insight system:karmada:controller-manager system:karmada:scheduler",
	}
	if must(t, "get", "cluster", "member1", "-o", "jsonpath={.spec.syncMode}") == "Push" { // an agent keeps those of its cluster
		deletions = append(deletions, "secret -n karmada-cluster member1 member1-impersonator")
	}
	for _, args := range deletions {
		must(t, append([]string{"delete"}, strings.Fields(args)...)...)
	}
	up(t)
	if after := list(kinds); after != before {
		t.Errorf("before:\n%s\nafter:\n%s", before, after)
	}
	if after := must(t, "get", "secrets", "-n", "karmada-cluster", "-s", "karmada", "-o", "name"); after != secrets {
		t.Errorf("secrets before:\n%s\nafter:\n%s", secrets, after)
	}
	apply(t, ns, deployment("web", 1), policy("web", to("member1")))
	eventually(t, is("", ns, "deploy/web", "{.status.readyReplicas}", "1"))
}

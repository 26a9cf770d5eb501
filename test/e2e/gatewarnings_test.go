package e2e

import (
	"strings"
	"testing"
)

// TestGateWarnings shows what a user sees whose objects have no effect while a feature
// gate is off.
func TestGateWarnings(t *testing.T) {
	ns := namespace(t)
	for kind, manifest := range map[string]string{
		"MultiClusterService": `
apiVersion: networking.karmada.io/v1alpha1
kind: MultiClusterService
metadata: {name: a}
spec: {types: [CrossCluster]}`,
		"ClusterTaintPolicy": `
apiVersion: policy.karmada.io/v1alpha1
kind: ClusterTaintPolicy
metadata: {name: ` + ns + `}
spec:
  addOnConditions: [{conditionType: Ready, operator: In, statusValues: ["False"]}]
  taints: [{key: a, effect: NoSchedule}]`,
	} {
		t.Cleanup(func() { _ = ctl(manifest, "delete", "-n", ns, "-f", "-") })
		r := ctl(manifest, "apply", "-n", ns, "-f", "-")
		if r.code != 0 || !strings.Contains(r.err, kind+" has no effect") {
			t.Errorf("%s: exit code %d, no warning\n%s%s", kind, r.code, r.out, r.err)
		}
	}
	t.Cleanup(func() { _ = ctl("", "taint", "clusters", "member1", "no-effect:NoExecute-") })
	r := ctl("", "taint", "clusters", "member1", "no-effect=x:NoExecute")
	if r.code != 0 || !strings.Contains(r.err, "but only if karmada-controller-manager runs with") {
		t.Errorf("a taint with NoExecute: exit code %d\n%s%s", r.code, r.out, r.err)
	}
}

package e2e

import (
	"strings"
	"testing"
)

// TestGateWarnings shows what a user sees whose objects have no effect while a feature
// gate is off. The federation of the tests runs with the feature gates Failover and
// StatefulFailoverInjection, and without MultiClusterService.
func TestGateWarnings(t *testing.T) {
	ns := namespace(t)
	for _, tt := range []struct {
		kind, manifest string
		warns          bool
	}{
		{"MultiClusterService", `
apiVersion: networking.karmada.io/v1alpha1
kind: MultiClusterService
metadata: {name: a}
spec: {types: [CrossCluster]}`, true},
		{"ClusterTaintPolicy", `
apiVersion: policy.karmada.io/v1alpha1
kind: ClusterTaintPolicy
metadata: {name: ` + ns + `}
spec:
  addOnConditions: [{conditionType: Ready, operator: In, statusValues: ["False"]}]
  taints: [{key: a, effect: NoSchedule}]`, false},
		{"statePreservation", `
apiVersion: policy.karmada.io/v1alpha1
kind: PropagationPolicy
metadata: {name: state}
spec:
  propagateDeps: true
  resourceSelectors: [{apiVersion: apps/v1, kind: Deployment, name: state}]
  failover:
    application:
      decisionConditions: {tolerationSeconds: 60}
      statePreservation: {rules: [{aliasLabelName: a, jsonPath: "{.replicas}"}]}`, false},
	} {
		t.Cleanup(func() { _ = ctl(tt.manifest, "delete", "-n", ns, "-f", "-") })
		r := ctl(tt.manifest, "apply", "-n", ns, "-f", "-")
		if warns := strings.Contains(r.err, tt.kind+" has no effect"); r.code != 0 || warns != tt.warns {
			t.Errorf("%s: exit code %d, warning %t, want %t\n%s%s", tt.kind, r.code, warns, tt.warns, r.out, r.err)
		}
	}
	t.Cleanup(func() { _ = ctl("", "taint", "clusters", "member1", "no-effect:NoExecute-") })
	r := ctl("", "taint", "clusters", "member1", "no-effect=x:NoExecute")
	if r.code != 0 || !strings.Contains(r.err, "but only if karmada-controller-manager runs with") {
		t.Errorf("a taint with NoExecute: exit code %d\n%s%s", r.code, r.out, r.err)
	}
}

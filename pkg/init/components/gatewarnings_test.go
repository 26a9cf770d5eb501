package components

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/component-base/featuregate"

	"github.com/karmada-toolkit/karmada/internal/gates"
)

func TestWebhookConfigurations_WarnOfKindsWhoseGateIsOff(t *testing.T) {
	const services, taints = "no-effect-multiclusterservices.networking.karmada.io", "no-effect-clustertaintpolicies.policy.karmada.io"
	const state, clusterState = "no-effect-propagationpolicies.policy.karmada.io", "no-effect-clusterpropagationpolicies.policy.karmada.io"
	for name, tc := range map[string]struct {
		args []string
		want []string
	}{
		"defaults":                      {want: []string{services, taints, state, clusterState}},
		"one gate":                      {args: []string{"--v=4", "--feature-gates=Failover=true"}, want: []string{services, state, clusterState}},
		"all":                           {args: []string{"--feature-gates=MultiClusterService=true,Failover=true,StatefulFailoverInjection=true"}},
		"both":                          {args: []string{"--feature-gates=MultiClusterService=true,Failover=true"}, want: []string{state, clusterState}},
		"the last value counts":         {args: []string{"--feature-gates=Failover=true", "--feature-gates=Failover=false"}, want: []string{services, taints, state, clusterState}},
		"a value that is refused":       {args: []string{"--feature-gates=Nope=true"}, want: []string{services, taints, state, clusterState}},
		"the same flag of another role": {args: []string{"--scheduler.feature-gates=Failover=true"}, want: []string{services, taints, state, clusterState}},
	} {
		var got []string
		for _, o := range WebhookConfigurations("https://h:1", nil, FlagValues(tc.args, "--feature-gates")) {
			if b, ok := o.(*admissionregistrationv1.ValidatingAdmissionPolicyBinding); ok && strings.HasPrefix(b.Name, gateWarningPrefix) {
				got = append(got, b.Spec.PolicyName)
				if diff := cmp.Diff([]admissionregistrationv1.ValidationAction{admissionregistrationv1.Warn}, b.Spec.ValidationActions); diff != "" {
					t.Errorf("%s: %s does not only warn: %s", name, b.Name, diff)
				}
			}
		}
		if diff := cmp.Diff(tc.want, got); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

func TestGatedKind_EnabledAsTheFlagIsRead(t *testing.T) {
	for _, k := range gatedKinds() {
		for _, value := range []string{
			"", k.gate + "=true", k.gate + "=false", " " + k.gate + " = 1 ", "AllAlpha=true", "AllBeta=true", "AllAlpha=true,AllBeta=true",
			k.gate + "=false," + k.stage + "=true", k.stage + "=true," + k.gate + "=false", k.gate + "=maybe", "PropagateDeps=true",
		} {
			flag := gates.New(gates.ControllerManager()...)
			_ = flag.Set(value)
			if want, got := flag.Enabled(featuregate.Feature(k.gate)), k.enabled([]string{value}); got != want {
				t.Errorf("%s with %q: %v, want %v", k.gate, value, got, want)
			}
		}
	}
}

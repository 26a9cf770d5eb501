package components

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/karmada-toolkit/karmada/internal/apply"
	"github.com/karmada-toolkit/karmada/pkg/apis/names"
	"github.com/karmada-toolkit/karmada/pkg/member/registration"
)

// gateWarningPrefix begins the names of the policies that warn of kinds without effect.
const gateWarningPrefix = "no-effect-"

// gatedKind is a kind, or a field of one, that has no effect while a gate of the controller-manager is off. The gates are off by default.
type gatedKind struct {
	// kind is what the warning names.
	group, resource, kind string
	// gate is the name of the gate, stage that of the gate for all of its stage.
	gate, stage string
	// programs are those that need the gate.
	programs string
	// unless is a CEL expression that is true for objects that need no gate; none does by default.
	unless string
}

// statelessPolicy is true for policies without rules for the preservation of state.
const statelessPolicy = `!has(object.spec) || !has(object.spec.failover) ||
	!(has(object.spec.failover.application) && has(object.spec.failover.application.statePreservation)) &&
	!(has(object.spec.failover.cluster) && has(object.spec.failover.cluster.statePreservation))`

func gatedKinds() []gatedKind {
	return []gatedKind{
		{groupNetworking, "multiclusterservices", "MultiClusterService", "MultiClusterService", "AllAlpha", "karmada-controller-manager, and the agents of clusters in Pull mode, run", ""},
		{groupPolicy, "clustertaintpolicies", "ClusterTaintPolicy", "Failover", "AllBeta", "karmada-controller-manager runs", ""},
		{groupPolicy, "propagationpolicies", "statePreservation", "StatefulFailoverInjection", "AllAlpha", "karmada-controller-manager runs", statelessPolicy},
		{groupPolicy, "clusterpropagationpolicies", "statePreservation", "StatefulFailoverInjection", "AllAlpha", "karmada-controller-manager runs", statelessPolicy},
	}
}

// FlagValues returns the values of a flag, such as --feature-gates, in arguments.
func FlagValues(args []string, flag string) []string {
	var out []string
	for _, arg := range args {
		if value, ok := strings.CutPrefix(arg, flag+"="); ok {
			out = append(out, value)
		}
	}
	return out
}

// PrunedWebhookConfigurations are the families of objects of WebhookConfigurations that are deleted when they are not
// wanted any more: a gate is on now, or an earlier version warned of a kind that has an effect now.
func PrunedWebhookConfigurations() []apply.Family {
	return []apply.Family{
		{List: &admissionregistrationv1.ValidatingAdmissionPolicyBindingList{}, Labels: names.SystemLabels(), Prefix: gateWarningPrefix},
		{List: &admissionregistrationv1.ValidatingAdmissionPolicyList{}, Labels: names.SystemLabels(), Prefix: gateWarningPrefix},
	}
}

// enabled reports whether values of the flag --feature-gates enable the gate. It parses them itself: with package gates, the
// command line would link the metrics of component-base.
func (k *gatedKind) enabled(values []string) bool {
	enabled, named := false, false
	for setting := range strings.SplitSeq(strings.Join(values, ","), ",") {
		name, value, _ := strings.Cut(strings.TrimSpace(setting), "=")
		is, err := strconv.ParseBool(strings.TrimSpace(value))
		switch name = strings.TrimSpace(name); {
		case err != nil:
		case name == k.gate:
			enabled, named = is, true
		case name == k.stage && !named:
			enabled = is
		}
	}
	return enabled
}

// gateWarnings warn of objects that have no effect with values of the flag --feature-gates of the controller-manager: a
// policy and its binding for each kind. They refuse nothing. Values that the flag refuses count as absent.
func gateWarnings(values []string) []client.Object {
	var out []client.Object
	for _, k := range gatedKinds() {
		if k.enabled(values) {
			continue
		}
		out = append(out, registration.AdmissionPolicy(gateWarningPrefix+k.resource+"."+k.group, admissionregistrationv1.Warn, admissionregistrationv1.ValidatingAdmissionPolicySpec{
			MatchConstraints: &admissionregistrationv1.MatchResources{ResourceRules: []admissionregistrationv1.NamedRuleWithOperations{
				registration.Admitted(k.group, k.resource, admissionregistrationv1.Create, admissionregistrationv1.Update),
			}},
			Validations: []admissionregistrationv1.Validation{{
				Expression: cmp.Or(k.unless, "false"),
				Message:    fmt.Sprintf("%s has no effect unless %s with --feature-gates=%s=true", k.kind, k.programs, k.gate),
			}},
		})...)
	}
	return out
}

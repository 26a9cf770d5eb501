package detector

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/karmada-toolkit/karmada/internal/events"
	policyv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/policy/v1alpha1"
	"github.com/karmada-toolkit/karmada/pkg/domain/policy"
)

// Reasons of events on templates.
const (
	ReasonApplyPolicySucceed   = "ApplyPolicySucceed"
	ReasonApplyPolicyFailed    = "ApplyPolicyFailed"
	ReasonGetReplicasSucceed   = "GetReplicasSucceed"
	ReasonGetReplicasFailed    = "GetReplicasFailed"
	ReasonGetComponentsSucceed = "GetComponentsSucceed"
	ReasonGetComponentsFailed  = "GetComponentsFailed"
	ReasonPreemptPolicySucceed = "PreemptPolicySucceed"
	ReasonPreemptPolicyFailed  = "PreemptPolicyFailed"
)

// ReasonClaimedByOther is the reason of events on policies that select templates
// which another policy holds: policies have no status.
const ReasonClaimedByOther = "ClaimedByOtherPolicy"

// ReasonOwnObject is the reason of events on policies that select objects of the control plane itself.
const ReasonOwnObject = "OwnObjectNotPropagated"

const messageNoPolicy = "No policy match for resource"

// maxNamed is the number of templates that one event names.
const maxNamed = 3

// recorder records the events of the detector.
type recorder struct{ events *events.Recorder }

// applied records that a policy was applied to a template.
func (r *recorder) applied(obj *unstructured.Unstructured, claim policy.Claim) {
	r.events.Normal(obj, ReasonApplyPolicySucceed, fmt.Sprintf("Apply %s succeed", describe(claim)))
}

// notApplied records that a policy could not be applied to a template.
func (r *recorder) notApplied(obj *unstructured.Unstructured, claim policy.Claim, err error) {
	r.events.Warning(obj, ReasonApplyPolicyFailed, fmt.Sprintf("Apply %s failed: %v", describe(claim), err))
}

// recovered makes the next failure of a template be recorded again.
func (r *recorder) recovered(obj *unstructured.Unstructured) { r.events.Recovered(obj) }

// unmatched records that no policy selects a template.
func (r *recorder) unmatched(obj *unstructured.Unstructured) {
	r.events.Warning(obj, ReasonApplyPolicyFailed, messageNoPolicy)
}

// replicas records the number of replicas of a template, or why it is unknown.
func (r *recorder) replicas(obj *unstructured.Unstructured, n int32, err error) {
	if err != nil {
		r.events.Warning(obj, ReasonGetReplicasFailed, err.Error())
		return
	}
	r.events.Detail(obj, ReasonGetReplicasSucceed, fmt.Sprintf("Get replicas(%d) succeed.", n))
}

// components records the number of components of a template, or why it is unknown.
func (r *recorder) components(obj *unstructured.Unstructured, n int, err error) {
	if err != nil {
		r.events.Warning(obj, ReasonGetComponentsFailed, err.Error())
		return
	}
	r.events.Detail(obj, ReasonGetComponentsSucceed, fmt.Sprintf("Get components(%d) succeed.", n))
}

// preempted records that a policy took a template over from another, or why it could
// not.
func (r *recorder) preempted(obj *unstructured.Unstructured, by, of policy.Claim, err error) {
	name := func(c policy.Claim) string {
		return fmt.Sprintf("%spropagation policy(%s)", c.Scope().EventPrefix, c.Key())
	}
	first := name(by)
	first = strings.ToUpper(first[:1]) + first[1:]
	if err != nil {
		r.events.Warning(obj, ReasonPreemptPolicyFailed, fmt.Sprintf("%s failed to preempt %s: %v", first, name(of), err))
		return
	}
	r.events.Normal(obj, ReasonPreemptPolicySucceed, fmt.Sprintf("%s preempted %s successfully", first, name(of)))
}

// claimedByOther records on a policy the templates that it selects and others hold.
func (r *recorder) claimedByOther(p policyv1alpha1.Policy, lines ...string) {
	r.lines(p, ReasonClaimedByOther, lines)
}

// own records on a policy the objects of the control plane that it selects.
func (r *recorder) own(p policyv1alpha1.Policy, lines []string) { r.lines(p, ReasonOwnObject, lines) }

// lines records one event on a policy about several objects.
func (r *recorder) lines(p policyv1alpha1.Policy, reason string, lines []string) {
	if len(lines) == 0 {
		return
	}
	slices.Sort(lines)
	if more := len(lines) - maxNamed; more > 0 {
		lines = append(lines[:maxNamed:maxNamed], fmt.Sprintf("and %d more", more))
	}
	r.events.Warning(p, reason, strings.Join(lines, "; "))
}

// claimedBy returns the line of an event about a template that a policy holds.
func claimedBy(obj *unstructured.Unstructured, holder policy.Claim) string {
	return named(obj) + " is claimed by " + holder.Describe()
}

// named returns the kind and the name of an object.
func named(obj *unstructured.Unstructured) string {
	name := obj.GetName()
	if obj.GetNamespace() != "" {
		name = obj.GetNamespace() + "/" + name
	}
	return fmt.Sprintf("%s %q", obj.GetKind(), name)
}

// describe returns the name of a policy in the events and errors of the contract.
func describe(c policy.Claim) string {
	return fmt.Sprintf("%spolicy(%s)", c.Scope().EventPrefix, c.Key())
}

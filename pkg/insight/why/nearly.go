package why

import (
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/karmada-toolkit/karmada/pkg/apis/names"
	policyv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/policy/v1alpha1"
	"github.com/karmada-toolkit/karmada/pkg/domain/propagation"
)

// namespace explains a namespace that clusters get without a policy, or do not get; without is false for one that a policy has.
func (e *explainer) namespace() (s *Stage, problem *finding, without bool) {
	if best, _ := e.selecting(); e.Binding != nil || best != nil {
		return nil, nil, false
	}
	s = &Stage{Name: "policy", Text: "it needs none: every cluster gets it"}
	switch name := e.object.Name; {
	case len(e.Targets()) > 0:
		return s, nil, true
	case e.Template.GetDeletionTimestamp() != nil:
		return nil, found(BeingRemoved, e.program+" get namespace "+name+" -o yaml", "it is being deleted, and waits for what is in it"), true
	case names.ReservedNamespace(name), propagation.Builtin(name):
		return nil, found(OwnObject, "", "it stays in the control plane: the control plane needs it, and clusters have their own"), true
	case names.SkippedByDefault(name):
		return nil, found(NamespaceSkipped, "", "not created in clusters: karmada-controller-manager skips it, by --skipped-propagating-namespaces"), true
	case e.Template.GetLabels()[policyv1alpha1.NamespaceSkipAutoPropagationLabel] != "":
		return nil, found(NamespaceSkipped, e.program+" label namespace "+name+" "+policyv1alpha1.NamespaceSkipAutoPropagationLabel+"-", "not created in clusters, by its label %s", policyv1alpha1.NamespaceSkipAutoPropagationLabel), true
	}
	return nil, found(Unreadable, "ask for the ClusterRole "+names.InsightRole, "every cluster gets it; which clusters there are cannot be read"), true
}

// nearly returns a policy that would select the object but for one letter of a name, or but for its labels, and what it selects.
func (e *explainer) nearly() (policyv1alpha1.Policy, string) {
	for _, p := range e.Policies {
		for _, rs := range p.PropagationSpec().ResourceSelectors {
			if rs.APIVersion != e.object.APIVersion || rs.Kind != e.object.Kind || rs.Namespace != "" && rs.Namespace != e.object.Namespace {
				continue
			}
			switch {
			case rs.Name != "" && oneLetter(rs.Name, e.object.Name):
				return p, "selects the name " + rs.Name
			case rs.Name == "" && rs.LabelSelector != nil:
				return p, Line("selects labels that it does not have: " + metav1.FormatLabelSelector(rs.LabelSelector))
			}
		}
	}
	return nil, ""
}

// oneLetter reports whether two names differ in one letter, or in the order of two neighbours.
func oneLetter(a, b string) bool {
	for len(a) > 0 && len(b) > 0 && a[0] == b[0] {
		a, b = a[1:], b[1:]
	}
	for len(a) > 0 && len(b) > 0 && a[len(a)-1] == b[len(b)-1] {
		a, b = a[:len(a)-1], b[:len(b)-1]
	}
	return len(a)+len(b) == 1 || len(a) == 1 && len(b) == 1 || len(a) == 2 && len(b) == 2 && a[0] == b[1] && a[1] == b[0]
}

// dependencies names the objects that the object refers to, and that do not exist.
func (e *explainer) dependencies() (*Stage, *finding) {
	if len(e.Missing) == 0 {
		return nil, nil
	}
	s := &Stage{Name: "refers to", Text: Count(len(e.Missing), "object") + " that the control plane does not have"}
	var missing []string
	for i, ref := range e.Missing {
		object := Object{ref.APIVersion, ref.Kind, ref.Namespace, ref.Name}
		missing = append(missing, object.String())
		s.add(i, object.String(), "does not exist: clusters do not get it")
	}
	first := e.Missing[0]
	return s, found(MissingDependency, fmt.Sprintf("create it in the control plane, or leave it out of the template: %s get %s -n %s", e.program, TypeName(first.APIVersion, first.Kind), first.Namespace),
		"%s, but it refers to what does not exist: %s", e.working(), several(missing, 3))
}

// objectProblems returns what the conditions of an object of a member report: those of failures that are True and, unless only failures are
// wanted, those of readiness that are not.
func objectProblems(conditions []map[string]any, failures bool) []string {
	var out []string
	for _, c := range conditions {
		kind, status := fmt.Sprint(c["type"]), fmt.Sprint(c["status"])
		bad := !failures && status == "False" && slices.Contains([]string{"Ready", "Available", "Progressing", "Synced"}, kind) ||
			status == "True" && slices.Contains([]string{"ReplicaFailure", "Failed", "Stalled", "Degraded"}, kind)
		if bad {
			out = append(out, Line(fmt.Sprintf("%s is %s: %v: %v", kind, status, c["reason"], c["message"])))
		}
	}
	return out
}

package why

import (
	"cmp"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/karmada-toolkit/karmada/pkg/apis/names"
	policyv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/policy/v1alpha1"
	workv1alpha2 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha2"
	"github.com/karmada-toolkit/karmada/pkg/domain/match"
	"github.com/karmada-toolkit/karmada/pkg/domain/policy"
	"github.com/karmada-toolkit/karmada/pkg/domain/scope"
	"github.com/karmada-toolkit/karmada/pkg/insight/snapshot"
)

// explainer computes an account.
type explainer struct {
	*snapshot.Facts
	object Object
	// program is the name of the program, for commands.
	program string
}

// Template explains what became of a template. program is the name of the program that the next step names.
func Template(f *snapshot.Facts, program string) *Account {
	t := f.Template
	e := &explainer{Facts: f, program: program, object: Object{t.GetAPIVersion(), t.GetKind(), t.GetNamespace(), t.GetName()}}
	out := &Account{SchemaVersion: SchemaVersion, Object: e.object, Cause: Working}
	var first *finding
	for _, stage := range []func() (*Stage, *finding){e.policy, e.schedule, e.overrides, e.work, e.status, e.dependencies, e.leaves} {
		s, problem := stage()
		if s != nil {
			s.Failed = problem != nil
			out.Stages = append(out.Stages, *s)
		}
		if first == nil {
			first = problem
		}
	}
	if first == nil {
		first = found(Working, "", "%s", e.working())
	}
	out.Cause, out.Next, out.Answer = first.cause, first.next, e.object.String()+": "+first.answer
	out.Times, out.Gaps = e.times(), Gaps(f.Gaps)
	return out.shortened()
}

// shortened returns the account without details that repeat a long text of the answer.
func (a *Account) shortened() *Account {
	for i := range a.Stages {
		for j := range a.Stages[i].Details {
			if d := &a.Stages[i].Details[j]; len(d.Text) > longText && strings.Contains(a.Answer, d.Text) {
				d.Text = "see above"
			}
		}
	}
	return a
}

// longText is the length of a text, in bytes, from which on it is not repeated.
const longText = 60

// command returns a command of the program about the object.
func (e *explainer) command(verb string, args ...string) string {
	words := append([]string{e.program, verb}, args...)
	if e.object.Namespace != "" {
		words = append(words, "-n", e.object.Namespace)
	}
	return strings.Join(words, " ")
}

// named returns the object as TYPE NAME.
func (e *explainer) named() string {
	return TypeName(e.object.APIVersion, e.object.Kind) + " " + e.object.Name
}

// policy explains which policy has the object.
func (e *explainer) policy() (*Stage, *finding) {
	if e.Namespace() {
		if s, problem, without := e.namespace(); without {
			return s, problem
		}
	}
	if names.ReservedNamespace(e.object.Namespace) {
		return nil, found(NamespaceSkipped, "create it in another namespace", "it stays in the control plane, as all in namespace %s", e.object.Namespace)
	}
	if rule := policy.Own(e.Template); rule != "" {
		return nil, found(OwnObject, "", "it stays in the control plane, and no policy propagates it: %s", rule)
	}
	claim, claimed := policy.Of(e.Template)
	best, all := e.selecting()
	switch {
	case claimed:
		return e.claimed(claim, all)
	case e.Binding != nil && len(e.Binding.GetSpec().RequiredBy) > 0:
		return &Stage{Name: "policy", Text: "none of its own: it follows " + several(e.required(), 3)}, nil
	case best != nil:
		return e.unclaimed(best)
	}
	s := &Stage{Name: "policy", Text: "none selects it"}
	if e.Lacks(snapshot.Policies) || e.Lacks(snapshot.ClusterPolicies) {
		return &Stage{Name: "policy", Text: "unknown"}, found(Unreadable, "ask for the ClusterRole karmada-insight", "no policy has it; whether one selects it cannot be read")
	}
	if targets := e.Targets(); len(targets) > 0 {
		s.Text = "none any more"
		return s, found(PolicyDeleted, "create a policy that selects it; to remove it from the clusters, too, delete it: "+e.command("delete", e.named()),
			"no policy has it any more: it stays in %s as it was delivered, and changes do not reach them", Count(len(targets), "cluster"))
	}
	for _, p := range e.Foreign {
		moved := e.Template.DeepCopy()
		moved.SetNamespace(p.GetNamespace())
		if policy.Matches(moved, p) {
			s.Details = append(s.Details, Detail{describe(p), "selects such objects of its own namespace only"})
			return s, found(PolicyElsewhere, fmt.Sprintf("create the policy in namespace %s, or a ClusterPropagationPolicy", e.object.Namespace),
				"not propagated: %s selects it by name or labels, but only in its own namespace", describe(p))
		}
	}
	if p, text := e.nearly(); p != nil {
		s.Details = append(s.Details, Detail{describe(p), text})
		return s, found(NoPolicy, "compare the names and labels: "+e.program+" get "+strings.ToLower(scope.PolicyOf(p).Kind)+" "+p.GetName()+in(p.GetNamespace())+" -o yaml",
			"not propagated: no policy selects it; %s %s", describe(p), text)
	}
	return s, found(NoPolicy, "create a policy whose resourceSelectors have apiVersion "+e.object.APIVersion+" and kind "+e.object.Kind, "not propagated: no policy selects it")
}

// selecting returns the policy that gets the object if none has it, and all that select it.
func (e *explainer) selecting() (best policyv1alpha1.Policy, all []policyv1alpha1.Policy) {
	for _, s := range policy.Scopes(e.Template) {
		var candidates []policyv1alpha1.Policy
		for _, p := range e.Policies {
			if (p.GetNamespace() != "") == s.Namespaced && policy.Matches(e.Template, p) {
				candidates = append(candidates, p)
			}
		}
		all = append(all, candidates...)
		if best == nil {
			best = policy.Best(e.Template, candidates)
		}
	}
	return best, all
}

// claimed explains an object that a policy has.
func (e *explainer) claimed(claim policy.Claim, all []policyv1alpha1.Policy) (*Stage, *finding) {
	s := &Stage{Name: "policy", Text: claim.Describe()}
	holder := e.holder(claim)
	if holder != nil {
		s.Text = describe(holder) + " (" + e.rank(holder) + ")"
	}
	for _, p := range all {
		if holder == nil || !policy.For(p).SamePolicy(claim) {
			s.Details = append(s.Details, Detail{describe(p), "selects it too, by " + e.rank(p) + e.lost(p, holder)})
		}
	}
	unbound := e.Binding == nil && !e.Lacks(snapshot.TheBinding)
	switch {
	case holder == nil && !e.Lacks(snapshot.Policies) && !e.Lacks(snapshot.ClusterPolicies):
		s.Text += ", which does not exist any more"
	case unbound && holder != nil && policy.IsLazy(holder):
		return s, e.lazy(holder)
	case holder != nil && !policy.Matches(e.Template, holder):
		return s, found(NotSelectedAnyMore, "compare the names and labels: "+e.program+" get "+strings.ToLower(scope.PolicyOf(holder).Kind)+" "+holder.GetName()+in(holder.GetNamespace())+" -o yaml",
			"%s has it and does not select it any more: its changes do not reach the clusters", describe(holder))
	case unbound:
		return s, found(NotYetClaimed, e.program+" get pods -n karmada-system, and the log of karmada-controller-manager", "not propagated yet: %s has it, but karmada-controller-manager made no binding", claim.Describe())
	}
	return s, nil
}

// holder returns the policy of a claim, or nil.
func (e *explainer) holder(claim policy.Claim) policyv1alpha1.Policy {
	for _, p := range e.Policies {
		if policy.For(p).SamePolicy(claim) {
			return p
		}
	}
	return nil
}

// lost explains why a policy that selects the object does not have it.
func (e *explainer) lost(p, holder policyv1alpha1.Policy) string {
	switch {
	case holder == nil, p.GetDeletionTimestamp() != nil:
		return ""
	case p.GetNamespace() == "" && holder.GetNamespace() != "":
		return ": a PropagationPolicy comes first"
	case p.GetNamespace() != "" && holder.GetNamespace() == "":
		return ": a ClusterPropagationPolicy has it"
	case p.PropagationSpec().ExplicitPriority() > holder.PropagationSpec().ExplicitPriority():
		return ": it does not preempt (spec.preemption: Always would)"
	case p.PropagationSpec().ExplicitPriority() < holder.PropagationSpec().ExplicitPriority():
		return ": lower priority"
	case policy.Specificity(e.Template, p) < policy.Specificity(e.Template, holder):
		return ": less specific"
	case policy.Specificity(e.Template, p) == policy.Specificity(e.Template, holder) && p.GetName() > holder.GetName():
		return ": the other name comes first"
	}
	return ": the other one was first"
}

// unclaimed explains an object that a policy selects but does not have.
func (e *explainer) unclaimed(best policyv1alpha1.Policy) (*Stage, *finding) {
	s := &Stage{Name: "policy", Text: describe(best) + " selects it (" + e.rank(best) + ")"}
	if names.SkippedByDefault(e.object.Namespace) {
		return s, found(NamespaceSkipped, "create it in another namespace, or change that flag", "not propagated: karmada-controller-manager skips namespace %s, by --skipped-propagating-namespaces", e.object.Namespace)
	}
	if policy.IsLazy(best) {
		return s, e.lazy(best)
	}
	return s, found(NotYetClaimed, "the log of karmada-controller-manager, and the events of the policy: "+e.program+" describe "+strings.ToLower(scope.PolicyOf(best).Kind)+" "+best.GetName(),
		"not propagated yet: %s selects it, but karmada-controller-manager has not acted", describe(best))
}

func (e *explainer) lazy(p policyv1alpha1.Policy) *finding {
	return found(LazyActivation, e.command("annotate", e.named(), "propagate=now"), "not propagated yet: %s is lazy and waits for the next change of the object", describe(p))
}

// rank returns by what a policy is ranked.
func (e *explainer) rank(p policyv1alpha1.Policy) string {
	by := map[match.Priority]string{match.All: "kind", match.ByLabels: "labels", match.ByName: "name"}[policy.Specificity(e.Template, p)]
	return fmt.Sprintf("%s, priority %d", cmp.Or(by, "no selector any more"), p.PropagationSpec().ExplicitPriority())
}

// required returns the templates that the object follows.
func (e *explainer) required() []string {
	var out []string
	for i := range e.Binding.GetSpec().RequiredBy {
		by := &e.Binding.GetSpec().RequiredBy[i]
		out = append(out, (&workv1alpha2.ObjectReference{Namespace: by.Namespace, Name: by.Name}).Namespace+"/"+by.Name)
	}
	return out
}

func describe(p policyv1alpha1.Policy) string {
	if p.GetNamespace() != "" {
		return scope.PolicyOf(p).Kind + " " + p.GetNamespace() + "/" + p.GetName()
	}
	return scope.PolicyOf(p).Kind + " " + p.GetName()
}

// working returns how many replicas are ready, and in how many clusters the object is healthy.
func (e *explainer) working() string {
	targets := e.Targets()
	if e.Binding == nil { // a namespace
		return "every cluster gets it: applied in " + Count(len(targets), "cluster")
	}
	where := fmt.Sprintf("in %d of %d clusters", e.healthyTargets(), len(targets)) + e.leaving()
	field := func(path ...string) int64 {
		n, _, _ := unstructured.NestedInt64(e.Template.Object, path...)
		return n
	}
	wanted := int64(0)
	for _, t := range e.Binding.GetSpec().Clusters {
		wanted += int64(t.Replicas)
	}
	_, ready, _ := unstructured.NestedInt64(e.Template.Object, "status", "readyReplicas")
	switch {
	case e.object.APIVersion == "batch/v1" && e.object.Kind == "Job":
		return fmt.Sprintf("%d of %d completions %s", field("status", "succeeded"), max(field("spec", "completions"), 1), where)
	case wanted > 0 || ready:
		return fmt.Sprintf("%d of %d replicas ready %s", field("status", "readyReplicas"), cmp.Or(wanted, int64(e.Binding.GetSpec().Replicas)), where)
	case !e.Ruled && e.healthyTargets() < len(targets):
		return "applied and Ready " + where + "; there are no rules for the health of its kind"
	case e.object.APIVersion == "apps/v1" && field("spec", "replicas") == 0 && e.object.Kind != "DaemonSet":
		return "it has 0 replicas, as its template; applied " + where
	}
	return "applied and healthy " + where
}

// leaving returns the clusters from which the object is being evicted, as a clause.
func (e *explainer) leaving() string {
	var from []string
	for i := range e.Binding.GetSpec().GracefulEvictionTasks {
		task := &e.Binding.GetSpec().GracefulEvictionTasks[i]
		from = append(from, Line(fmt.Sprintf("%s (%s)", task.FromCluster, task.Reason)))
	}
	if len(from) == 0 {
		return ""
	}
	return ", being evicted from " + several(from, 3)
}

package why

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/duration"

	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
	policyv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/policy/v1alpha1"
	"github.com/karmada-toolkit/karmada/pkg/domain/clustercondition"
	"github.com/karmada-toolkit/karmada/pkg/domain/match"
	"github.com/karmada-toolkit/karmada/pkg/domain/policy"
	"github.com/karmada-toolkit/karmada/pkg/domain/scope"
	"github.com/karmada-toolkit/karmada/pkg/insight/snapshot"
)

// The causes of policies and clusters beside those of templates.
const (
	SelectsNothing Cause = "SelectsNothing"
	Outranked      Cause = "Outranked"
	BeingRemoved   Cause = "BeingRemoved"
	Cordoned       Cause = "Cordoned"
	Evicting       Cause = "Evicting"
	ClusterProblem Cause = "ClusterProblem"
)

// maxListed is the number of objects that an account names.
const maxListed = 10

// add adds a detail, and as the last one how many there would be more.
func (s *Stage) add(n int, of, text string) {
	switch {
	case n < maxListed:
		s.Details = append(s.Details, Detail{of, Line(text)})
	case n == maxListed:
		s.Details = append(s.Details, Detail{"...", "more are left out"})
	}
}

// Policy explains what a propagation policy does.
func Policy(f *snapshot.PolicyFacts, program string) *Account {
	p := f.Policy
	of := scope.PolicyOf(p)
	out := &Account{
		SchemaVersion: SchemaVersion, Cause: Working, Gaps: Gaps(f.Gaps),
		Object: Object{"policy.karmada.io/v1alpha1", of.Kind, p.GetNamespace(), p.GetName()},
	}
	s := Stage{Name: "selects"}
	has, lost := 0, 0
	for i, u := range f.Selected {
		claim, claimed := policy.Of(u)
		text := "not yet"
		switch {
		case claimed && policy.For(p).SamePolicy(claim):
			has++
			text = "has it"
		case claimed:
			lost++
			text = claim.Describe() + " has it"
		}
		s.add(i, Object{u.GetAPIVersion(), u.GetKind(), u.GetNamespace(), u.GetName()}.String(), text)
	}
	s.Text = fmt.Sprintf("%s, and has %d of them", Count(len(f.Selected), "object"), has)
	out.Stages = []Stage{s}
	answer := fmt.Sprintf("it has %d of %s that it selects", has, Count(len(f.Selected), "object"))
	switch {
	case p.GetDeletionTimestamp() != nil:
		out.Cause, answer = BeingRemoved, "it is being deleted"
	case len(f.Selected) == 0 && len(f.Gaps) > 0:
		out.Cause, answer = Unreadable, "which objects it selects cannot be read"
	case len(f.Selected) == 0:
		out.Cause, answer = SelectsNothing, "it selects no object"
		if p.GetNamespace() != "" {
			answer += " of namespace " + p.GetNamespace()
		}
		out.Next = "compare apiVersion, kind, name and labels of the objects with its resourceSelectors"
	case has == 0 && lost > 0:
		out.Cause, answer = Outranked, "other policies have all objects that it selects"
		out.Next = "raise spec.priority and set spec.preemption: Always, or delete the other policy"
	case has+lost < len(f.Selected) && policy.IsLazy(p):
		out.Cause = LazyActivation
		answer += "; it is lazy and waits for the next change of the others"
		out.Next = program + " annotate TYPE NAME propagate=now"
	case has+lost < len(f.Selected):
		out.Cause = NotYetClaimed
		out.Next = "the log of karmada-controller-manager"
	}
	out.Answer = out.Object.String() + ": " + answer
	return out
}

// Override explains which objects an override policy selects, and in which clusters its rules change them. f has a policy of its selectors.
func Override(f *snapshot.PolicyFacts, p policyv1alpha1.OverridePolicyObject, clusters []*clusterv1alpha1.Cluster, program string) *Account {
	kind := scope.Pick(p.GetNamespace() != "", "OverridePolicy", "ClusterOverridePolicy")
	out := &Account{SchemaVersion: SchemaVersion, Cause: Working, Gaps: Gaps(f.Gaps), Object: Object{"policy.karmada.io/v1alpha1", kind, p.GetNamespace(), p.GetName()}}
	s, where := Stage{Name: "selects", Text: Count(len(f.Selected), "object")}, Stage{Name: "rules"}
	for i, u := range f.Selected {
		o := Object{u.GetAPIVersion(), u.GetKind(), u.GetNamespace(), u.GetName()}
		s.add(i, o.String(), "the overrides that it gets: "+program+" why "+TypeName(o.APIVersion, o.Kind)+" "+o.Name+in(o.Namespace))
	}
	for i, rule := range p.OverrideSpec().OverrideRules {
		var names []string
		for _, c := range clusters {
			if rule.TargetCluster == nil || match.Cluster(c, rule.TargetCluster) {
				names = append(names, c.Name)
			}
		}
		where.add(i, fmt.Sprintf("rule %d", i), "in "+cmp.Or(several(names, 5), "no cluster"))
	}
	where.Text = Count(len(p.OverrideSpec().OverrideRules), "rule")
	out.Stages, out.Answer = []Stage{s, where}, out.Object.String()+": it selects "+s.Text
	switch {
	case len(p.OverrideSpec().ResourceSelectors) == 0:
		out.Answer = out.Object.String() + ": it has no resourceSelectors, and selects every object" + strings.Replace(in(p.GetNamespace()), " -n", " of namespace", 1)
	case len(f.Selected) == 0:
		out.Cause, out.Next = SelectsNothing, "compare the names and labels: "+program+" get "+strings.ToLower(kind)+" "+p.GetName()+in(p.GetNamespace())+" -o yaml"
	}
	return out
}

// Cluster explains the state of a cluster, and what is there or waits for it.
func Cluster(f *snapshot.ClusterFacts, program string) *Account {
	c := f.Cluster
	out := &Account{SchemaVersion: SchemaVersion, Cause: Working, Gaps: Gaps(f.Gaps), Object: Object{APIVersion: "cluster.karmada.io/v1alpha1", Kind: "Cluster", Name: c.Name}}
	ready := Stage{Name: "ready", Text: "not reported yet"}
	if condition := c.ReadyCondition(); condition != nil {
		ready.Text = Line(fmt.Sprintf("%s for %s: %s %s", condition.Status, duration.HumanDuration(f.Now.Sub(condition.LastTransitionTime.Time)), condition.Reason, condition.Message))
	}
	for i := range c.Spec.Taints {
		taint := &c.Spec.Taints[i]
		ready.Details = append(ready.Details, Detail{"taint", Line(taint.ToString())})
	}
	for _, condition := range ClusterProblems(c) {
		ready.Details = append(ready.Details, Detail{condition.Type, Line(condition.Message)})
	}
	has, waits, leaves := Stage{Name: "has"}, Stage{Name: "waits"}, Stage{Name: "leaves"}
	applied, waiting, leaving := 0, 0, 0
	for _, b := range f.Bindings {
		ref := &b.GetSpec().Resource
		object := Object{ref.APIVersion, ref.Kind, ref.Namespace, ref.Name}.String()
		item := Item(b, c.Name)
		switch {
		case b.GetSpec().EvictingFrom(c.Name):
			leaves.add(leaving, object, "being evicted")
			leaving++
		case item != nil && item.Applied:
			applied++
		case item != nil:
			waits.add(waiting, object, item.AppliedMessage)
			waiting++
		default:
			waits.add(waiting, object, "not applied yet")
			waiting++
		}
	}
	for _, w := range f.Leaving {
		leaves.add(leaving, ObjectOf(w).String(), leavingText(w, f.Now))
		leaving++
	}
	has.Text, waits.Text, leaves.Text = Count(applied, "object")+" applied", Count(waiting, "object"), Count(leaving, "object")
	out.Stages = []Stage{ready, has}
	for _, s := range []Stage{waits, leaves} {
		if len(s.Details) > 0 {
			out.Stages = append(out.Stages, s)
		}
	}
	out.Answer, out.Next = clusterAnswer(out, c, applied, waiting, leaving, program)
	out.Answer = out.Object.String() + ": " + out.Answer
	return out.shortened()
}

// clusterAnswer sets the cause and returns the answer and the next step.
func clusterAnswer(out *Account, c *clusterv1alpha1.Cluster, applied, waiting, leaving int, program string) (answer, next string) {
	e := &explainer{program: program}
	unready := e.unready(c.Name, c)
	switch {
	case c.DeletionTimestamp != nil:
		out.Cause = BeingRemoved
		text := fmt.Sprintf("it is being removed: %s left; finalizers: %s", Count(max(applied+waiting, leaving), "object"), several(c.Finalizers, 3))
		return strings.TrimSuffix(text+"; "+clusterProblem(c), "; "), program + " describe cluster " + c.Name
	case unready != nil:
		out.Cause = ClusterNotReady
		return fmt.Sprintf("%s; %s waiting for it", strings.TrimPrefix(unready.answer, "cluster "+c.Name+" is "), Count(waiting, "object")), unready.next
	case clusterProblem(c) != "":
		out.Cause = ClusterProblem
		return "Ready, but " + clusterProblem(c), program + " describe cluster " + c.Name
	case leaving > 0:
		out.Cause = Evicting
		return fmt.Sprintf("Ready, but %s leaving", Count(leaving, "object")), program + " failover status"
	case slices.ContainsFunc(c.Spec.Taints, clustercondition.Cordons):
		out.Cause = Cordoned
		return fmt.Sprintf("Ready, and cordoned: nothing new is scheduled to it; it has %s", Count(applied, "object")), program + " uncordon " + c.Name
	case waiting > 0:
		out.Cause = NotYetDelivered
		return fmt.Sprintf("Ready, with %s, but %s not applied", Count(applied, "object"), Count(waiting, "object")), program + " why TYPE NAME for one of them"
	}
	return fmt.Sprintf("Ready, with %s", Count(applied, "object")), ""
}

// InMember explains an object of a member. template is the account of what it comes from; nil if it does not come from the control
// plane. owned are the objects that it belongs to, the nearest first, such as the ReplicaSet and the Deployment of a pod. problem is why
// it does not run; empty if it does.
func InMember(cluster string, object *unstructured.Unstructured, owned []*unstructured.Unstructured, template *Account, problem, program string) *Account {
	o := Object{object.GetAPIVersion(), object.GetKind(), object.GetNamespace(), object.GetName()}
	out := &Account{SchemaVersion: SchemaVersion, Object: o, Cause: Working}
	s := Stage{Name: "member", Text: "in cluster " + cluster}
	for _, by := range owned {
		s.Details = append(s.Details, Detail{"belongs to", Object{by.GetAPIVersion(), by.GetKind(), by.GetNamespace(), by.GetName()}.String()})
	}
	for i, m := range object.GetManagedFields() {
		s.add(i, "written by", manager(&m))
	}
	out.Stages = []Stage{s}
	prefix := o.String() + " of cluster " + cluster + ": "
	switch {
	case template == nil:
		out.Cause = NotManaged
		out.Answer = prefix + "it does not come from the control plane"
		out.Next = fmt.Sprintf("to have the control plane manage it: %s promote %s %s -C %s", program, strings.ToLower(o.Kind), o.Name, cluster)
		if o.Namespace != "" {
			out.Next += " -n " + o.Namespace
		}
	case problem != "":
		out.Cause, out.Answer = Unhealthy, prefix+problem
		out.Next = "correct the template: " + template.Object.String()
	default:
		out.Answer = prefix + "it comes from " + template.Object.String()
	}
	if template != nil {
		out.Stages, out.Times, out.Gaps = append(out.Stages, template.Stages...), template.Times, template.Gaps
		if problem == "" {
			out.Cause, out.Next = template.Cause, template.Next
		}
	}
	return out
}

// NotManaged is the cause of an object of a member that does not come from the control plane.
const NotManaged Cause = "NotManaged"

func manager(m *metav1.ManagedFieldsEntry) string {
	text := m.Manager + " (" + string(m.Operation)
	if m.Subresource != "" {
		text += " of " + m.Subresource
	}
	return text + ")"
}

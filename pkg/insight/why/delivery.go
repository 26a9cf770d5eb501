package why

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/duration"

	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
	workv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha1"
	workv1alpha2 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha2"
	"github.com/karmada-toolkit/karmada/pkg/domain/clustercondition"
	"github.com/karmada-toolkit/karmada/pkg/domain/override"
	"github.com/karmada-toolkit/karmada/pkg/domain/policy"
	"github.com/karmada-toolkit/karmada/pkg/domain/scope"
	"github.com/karmada-toolkit/karmada/pkg/insight/snapshot"
)

// overrides explains which overrides the object gets in each cluster.
func (e *explainer) overrides() (*Stage, *finding) {
	s := &Stage{Name: "overrides"}
	var problem *finding
	for _, t := range e.Targets() {
		cluster := e.Cluster(t.Name)
		if cluster == nil {
			continue
		}
		_, applied, err := override.Apply(e.Template, cluster, e.Facts.Overrides)
		var failed *override.Error
		if errors.As(err, &failed) && problem == nil {
			problem = found(OverrideFailed, "correct that policy: "+e.program+" edit "+overridePolicy(failed.Namespace)+" "+failed.Policy+in(failed.Namespace),
				"not delivered to cluster %s: %s", t.Name, Line(err.Error()))
		}
		if err != nil {
			s.Details = append(s.Details, Detail{t.Name, Line(err.Error())})
			continue
		}
		var policies []string
		for _, rule := range applied.Cluster {
			policies = append(policies, "ClusterOverridePolicy "+rule.PolicyName+overriders(&rule))
		}
		for _, rule := range applied.Namespaced {
			policies = append(policies, "OverridePolicy "+e.object.Namespace+"/"+rule.PolicyName+overriders(&rule))
		}
		if len(policies) > 0 {
			s.Details = append(s.Details, Detail{t.Name, Line(several(policies, 5))})
		}
	}
	if len(s.Details) == 0 {
		return nil, nil
	}
	s.Text = fmt.Sprintf("in %d of %d clusters", len(s.Details), len(e.Targets()))
	return s, problem
}

func overridePolicy(namespace string) string {
	if namespace == "" {
		return "clusteroverridepolicy"
	}
	return "overridepolicy"
}

func in(namespace string) string {
	if namespace == "" {
		return ""
	}
	return " -n " + namespace
}

// overriders returns what a rule changes.
func overriders(rule *override.AppliedRule) string {
	o := &rule.Overriders
	var texts []string
	for i := range o.ImageOverrider {
		texts = append(texts, fmt.Sprintf("image %s %s %s", strings.ToLower(string(o.ImageOverrider[i].Component)), o.ImageOverrider[i].Operator, o.ImageOverrider[i].Value))
	}
	for i := range o.Plaintext {
		texts = append(texts, string(o.Plaintext[i].Operator)+" "+o.Plaintext[i].Path)
	}
	for what, n := range map[string]int{
		"command": len(o.CommandOverrider), "args": len(o.ArgsOverrider), "labels": len(o.LabelsOverrider),
		"annotations": len(o.AnnotationsOverrider), "fields": len(o.FieldOverrider),
	} {
		if n > 0 {
			texts = append(texts, what)
		}
	}
	slices.Sort(texts)
	if len(texts) == 0 {
		return ""
	}
	return ": " + several(texts, 3)
}

// work explains what was applied in each cluster.
func (e *explainer) work() (*Stage, *finding) {
	if len(e.Targets()) == 0 {
		return nil, nil
	}
	s := &Stage{Name: "work"}
	var first *finding
	if c := e.deliverable(); c != nil && c.Status == metav1.ConditionFalse {
		first = found(NotDeliverable, "correct the object or the policy that the message names", "%s: %s", c.Reason, Line(c.Message))
	}
	applied := 0
	for _, t := range e.Targets() {
		text, problem := e.workIn(t.Name)
		if problem == nil {
			applied++
		}
		if first == nil {
			first = problem
		}
		if text != "" {
			s.Details = append(s.Details, Detail{t.Name, text})
		}
	}
	s.Text = fmt.Sprintf("applied in %d of %d clusters", applied, len(e.Targets()))
	return s, first
}

// deliverable returns the condition Deliverable of the binding, or nil.
func (e *explainer) deliverable() *metav1.Condition {
	if e.Binding == nil {
		return nil
	}
	return meta.FindStatusCondition(e.Binding.GetStatus().Conditions, workv1alpha2.Deliverable)
}

// workIn explains the Work of one cluster: in a detail, and what is wrong with it.
func (e *explainer) workIn(name string) (string, *finding) {
	work := e.Works[name]
	unready := e.unready(name, e.Cluster(name))
	switch {
	case work == nil && e.Lacks(snapshot.WorkIn(name)):
		return e.reported(name)
	case scope.DispatchingSuspended(e.suspension(), name):
		return "dispatching is suspended", found(DispatchSuspended, "remove spec.suspension from its policy: "+e.holderCommand(), "not delivered to cluster %s: dispatching is suspended", name)
	case work == nil && unready != nil:
		return unready.answer, unready
	case work == nil:
		return "no Work yet", found(NotYetDelivered, "the log of karmada-controller-manager, and the events of its binding", "not delivered to cluster %s yet: karmada-controller-manager made no Work", name)
	}
	return e.applied(name, work, unready)
}

// applied explains a Work that exists. unready is why nothing is applied in the cluster, or nil.
func (e *explainer) applied(name string, work *workv1alpha1.Work, unready *finding) (string, *finding) {
	condition := meta.FindStatusCondition(work.Status.Conditions, workv1alpha1.WorkApplied)
	switch {
	case condition != nil && condition.Status == metav1.ConditionFalse:
		message := Line(condition.Message)
		return message, found(ApplyFailed, e.culprit(name, condition.Message), "not applied in cluster %s: %s", name, message)
	case unready != nil && (condition == nil || condition.ObservedGeneration < work.Generation):
		return unready.answer, unready
	case condition == nil || condition.ObservedGeneration != 0 && condition.ObservedGeneration < work.Generation:
		return "not applied yet", found(NotYetDelivered, e.deliverer(e.Cluster(name)), "not applied in cluster %s yet", name)
	}
	text := "applied " + duration.HumanDuration(e.Now.Sub(condition.LastTransitionTime.Time)) + " ago"
	if problem := e.appliedProblem(name, work); problem != nil {
		return problem.answer, problem
	}
	if unready != nil {
		text += ", but " + unready.answer
	}
	return text, unready
}

// appliedProblem returns what a Work reports of objects that were applied, or nil.
func (e *explainer) appliedProblem(cluster string, work *workv1alpha1.Work) *finding {
	if c := meta.FindStatusCondition(work.Status.Conditions, workv1alpha1.WorkContested); c != nil && c.Status == metav1.ConditionTrue {
		if c.Reason == workv1alpha1.WorkNodePortTakenReason {
			return found(NodePortTaken, "set nodePort in the template to one that is free in all clusters, if it has to be the same", "applied with other node ports in cluster %s: %s", cluster, Line(c.Message))
		}
		next := "add a retention rule, or leave the field out of the template: " + e.command("get", e.named(), "-o", "yaml")
		if strings.Contains(c.Message, "spec.replicas") {
			next = "if an autoscaler of the cluster sets the replicas, propagate it with a policy and start karmada-controller-manager with --controllers=*,hpaScaleTargetMarker: " + e.command("get", "hpa")
		}
		return found(Contested, next, "changed in cluster %s: %s", cluster, Line(c.Message))
	}
	if c := meta.FindStatusCondition(work.Status.Conditions, interpreted); c != nil && c.Status == metav1.ConditionFalse {
		return found(InterpreterFailed, "correct the interpreter rule: "+e.program+" get resourceinterpretercustomizations", "its status in cluster %s is not known: %s", cluster, Line(c.Message))
	}
	return nil
}

// interpreted is the condition of Works that is False while rules of the interpreter fail.
const interpreted = "Interpreted"

// reported explains a Work that cannot be read, by what the binding reports.
func (e *explainer) reported(cluster string) (string, *finding) {
	if e.Binding == nil {
		return "not known", nil
	}
	switch item := Item(e.Binding, cluster); {
	case item == nil:
		return "not known", nil
	case item.Applied:
		return "applied", nil
	default:
		message := Line(item.AppliedMessage)
		return message, found(ApplyFailed, e.culprit(cluster, item.AppliedMessage), "not applied in cluster %s: %s", cluster, message)
	}
}

// suspension returns that of the binding.
func (e *explainer) suspension() *workv1alpha2.Suspension {
	if e.Binding == nil {
		return nil
	}
	return e.Binding.GetSpec().Suspension
}

// holderCommand returns a command that prints the policy that has the object.
func (e *explainer) holderCommand() string {
	claim, claimed := policy.Of(e.Template)
	if !claimed {
		return e.program + " get clusterpropagationpolicies"
	}
	return e.program + " get " + strings.ToLower(claim.Scope().Kind) + " " + claim.Name + in(claim.Namespace) + " -o yaml"
}

// culprit returns the next step for an object that a cluster does not take, by the words of its API server.
func (e *explainer) culprit(cluster, message string) string {
	var policies []string
	if c := e.Cluster(cluster); c != nil {
		if _, applied, err := override.Apply(e.Template, c, e.Facts.Overrides); err == nil {
			for _, rule := range slices.Concat(applied.Cluster, applied.Namespaced) {
				policies = append(policies, rule.PolicyName)
			}
		}
	}
	switch {
	case strings.Contains(message, "namespaces \""+e.object.Namespace+"\" not found"):
		return "see why the cluster does not have the namespace: " + e.program + " why namespace " + e.object.Namespace
	case strings.Contains(message, "finding the resource of") || strings.Contains(message, "the server could not find the requested resource") || strings.Contains(message, "no matches for kind"):
		return "propagate the type with a ClusterPropagationPolicy for its CustomResourceDefinition: " + e.program + " get customresourcedefinitions"
	case len(policies) > 0:
		return "correct the object, or what its override policies change (" + several(policies, 3) + "): " + e.command("get", e.named(), "-o", "yaml")
	}
	return "correct the object or its policies: " + e.command("get", e.named(), "-o", "yaml")
}

// deliverer returns the log that has why a Work is not applied.
func (e *explainer) deliverer(cluster *clusterv1alpha1.Cluster) string {
	if cluster != nil && cluster.Spec.SyncMode == clusterv1alpha1.Pull {
		return "the log of karmada-agent in cluster " + cluster.Name
	}
	return "the log of karmada-controller-manager"
}

// unready returns why nothing is applied in a cluster, or nil.
func (e *explainer) unready(name string, cluster *clusterv1alpha1.Cluster) *finding {
	describe := e.program + " describe cluster " + name
	switch {
	case cluster == nil && e.Lacks(snapshot.Clusters):
		return nil
	case cluster == nil:
		return found(ClusterGone, e.program+" get clusters", "cluster %s does not exist", name)
	case cluster.DeletionTimestamp != nil:
		return found(ClusterGone, describe, "cluster %s is being removed", name)
	case cluster.Ready():
		return nil
	}
	why, next := "it has not reported yet", describe
	if c := cluster.ReadyCondition(); c != nil {
		why = Line(c.Reason + ": " + c.Message)
		if cluster.Spec.SyncMode == clusterv1alpha1.Pull && c.Status == metav1.ConditionUnknown {
			why = "its agent does not report: " + why
			next += ", and the log of deployment karmada-agent in the cluster; if its credentials were refused or have ended: " + e.program + " register"
		}
		if cluster.Spec.SyncMode == clusterv1alpha1.Push && (c.Reason == "StatusCollectionFailed" || strings.Contains(c.Message, clustercondition.CredentialsRefused)) {
			next = e.program + " join " + name + " --cluster-kubeconfig=FILE, with the kubeconfig of the cluster, renews its credentials"
		}
	}
	return found(ClusterNotReady, next, "cluster %s is not Ready: %s", name, why)
}

// status explains the state of the object in each cluster.
func (e *explainer) status() (*Stage, *finding) {
	if len(e.Targets()) == 0 || e.Binding == nil {
		return nil, nil
	}
	s := &Stage{Name: "status", Text: fmt.Sprintf("healthy in %d of %d clusters", e.healthyTargets(), len(e.Targets()))}
	var first *finding
	for _, t := range e.Targets() {
		text, healthy := e.stateIn(t.Name)
		s.Details = append(s.Details, Detail{t.Name, text})
		if !healthy && first == nil && text != healthNotKnown {
			cause := Unhealthy
			if Item(e.Binding, t.Name) == nil {
				cause = NotYetReported
			}
			next := e.command("describe", e.named(), "-C", t.Name)
			if _, pods, _ := unstructured.NestedMap(e.Template.Object, "spec", "template"); pods {
				next = e.command("get", "pods", "-C", t.Name) + ", or: " + next
			}
			first = found(cause, next, "%s; cluster %s: %s", e.working(), t.Name, text)
		}
	}
	if first == nil && e.leaving() != "" {
		first = found(Evicting, e.program+" failover status", "%s", e.working())
	}
	if first == nil && e.outdated() {
		first = found(StatusOutdated, "the log of karmada-controller-manager", "%s; its status is of an earlier generation", e.working())
	}
	return s, first
}

// outdated reports whether the status of the template is of an earlier generation.
func (e *explainer) outdated() bool {
	observed, has, _ := unstructured.NestedInt64(e.Template.Object, "status", "observedGeneration")
	return has && observed < e.Template.GetGeneration()
}

func (e *explainer) healthyTargets() int {
	n := 0
	for _, t := range e.Targets() {
		if _, healthy := e.stateIn(t.Name); healthy {
			n++
		}
	}
	return n
}

// stateIn returns the state of the object in a cluster, and whether it is healthy.
func (e *explainer) stateIn(cluster string) (text string, healthy bool) {
	item := Item(e.Binding, cluster)
	if item == nil {
		return "no status yet", false
	}
	text = string(cmp.Or(item.Health, workv1alpha2.ResourceUnknown))
	m, read := e.Members[cluster]
	switch {
	case !e.Ruled && item.Health == workv1alpha2.ResourceHealthy:
		return unruled(item.Status)
	case item.Health == workv1alpha2.ResourceHealthy:
		return text, true
	case !read:
		return text, false
	case m.Err != nil:
		return text + ", its pods cannot be read: " + Line(m.Err.Error()), false
	case m.Object == nil:
		return "the object is not there; it is created again", false
	}
	pods := podProblems(m.Pods)
	if problems := slices.Concat(pods, objectProblems(conditionsOf(m.Object), len(pods) > 0)); len(problems) > 0 {
		text += ": " + several(problems, 2)
	}
	return text, false
}

// unruled returns the state of an object of a kind without rules, by its condition Ready, as kstatus has it, and whether it is healthy. One
// without a status is. The health of others is not known.
func unruled(status *runtime.RawExtension) (text string, healthy bool) {
	object := &unstructured.Unstructured{Object: map[string]any{}}
	if status == nil || len(status.Raw) == 0 || json.Unmarshal(status.Raw, &object.Object) != nil {
		return "applied", true
	}
	conditions := conditionsOf(&unstructured.Unstructured{Object: map[string]any{"status": object.Object}})
	for _, c := range conditions {
		switch {
		case c["type"] == "Ready" && c["status"] == "True":
			return "Ready", true
		case c["type"] == "Ready":
			return Line(fmt.Sprintf("Ready is %v: %v: %v", c["status"], c["reason"], c["message"])), false
		}
	}
	return healthNotKnown, false
}

// healthNotKnown is the state of an object of a kind without rules that has no condition Ready.
const healthNotKnown = "health not known: no rules for this kind"

// conditionsOf returns the conditions in the status of an object.
func conditionsOf(u *unstructured.Unstructured) []map[string]any {
	list, _, _ := unstructured.NestedSlice(u.Object, "status", "conditions")
	var out []map[string]any
	for _, c := range list {
		if c, ok := c.(map[string]any); ok {
			out = append(out, c)
		}
	}
	return out
}

// podProblems returns why pods do not run: a line for each cause, with one of its pods.
func podProblems(pods []*corev1.Pod) []string {
	var out []string
	seen := map[string]bool{}
	for _, p := range pods {
		cause := PodProblem(p)
		if cause != "" && !seen[cause] {
			seen[cause] = true
			out = append(out, "pod "+p.Name+": "+cause)
		}
	}
	return out
}

// PodProblem returns why a pod does not run, or nothing.
func PodProblem(p *corev1.Pod) string {
	statuses := slices.Concat(p.Status.InitContainerStatuses, p.Status.ContainerStatuses)
	for i := range statuses {
		if w := statuses[i].State.Waiting; w != nil && w.Reason != "" && w.Reason != "ContainerCreating" && w.Reason != "PodInitializing" {
			return Line(w.Reason + " (" + statuses[i].Image + ")")
		}
		if t := statuses[i].State.Terminated; t != nil && t.ExitCode != 0 {
			return Line(fmt.Sprintf("container %s ended: %s, exit code %d", statuses[i].Name, t.Reason, t.ExitCode))
		}
	}
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse {
			return Line(c.Reason + ": " + c.Message)
		}
	}
	if p.Status.Phase == corev1.PodFailed {
		return Line("Failed: " + p.Status.Reason + " " + p.Status.Message)
	}
	return ""
}

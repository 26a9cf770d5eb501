package why

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"
	"k8s.io/utils/ptr"

	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
	policyv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/policy/v1alpha1"
	workv1alpha2 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha2"
	"github.com/karmada-toolkit/karmada/pkg/domain/clustercondition"
	"github.com/karmada-toolkit/karmada/pkg/domain/schedule/core"
	"github.com/karmada-toolkit/karmada/pkg/domain/schedule/framework"
	"github.com/karmada-toolkit/karmada/pkg/domain/scope"
	"github.com/karmada-toolkit/karmada/pkg/insight/snapshot"
	plugins "github.com/karmada-toolkit/karmada/plugins/scheduler"
)

// maxOut is the number of clusters whose exclusion is explained.
const maxOut = 10

// schedule explains which clusters get the object, and why others do not.
func (e *explainer) schedule() (*Stage, *finding) {
	if e.Binding == nil {
		return nil, nil
	}
	spec, status := e.Binding.GetSpec(), e.Binding.GetStatus()
	if spec.Placement == nil { // it follows others
		return &Stage{Name: "schedule", Text: "follows: " + targets(scope.Targets(spec))}, nil
	}
	condition := meta.FindStatusCondition(status.Conditions, workv1alpha2.Scheduled)
	s := &Stage{Name: "schedule", Text: strategy(spec)}
	if len(spec.Clusters) > 0 {
		s.Text += " -> " + targets(spec.Clusters)
	}
	if condition != nil {
		s.Text += fmt.Sprintf(" (%s ago)", duration.HumanDuration(e.Now.Sub(condition.LastTransitionTime.Time)))
	}
	var out []Detail
	if profile, err := DefaultProfile(); err == nil && !e.Lacks(snapshot.Clusters) {
		out = e.excluded(profile)
		s.Details = append(s.Details, out...)
		if now := e.rebalanced(profile); now != nil {
			text := "anew it would be " + targets(now)
			if core.UsesRoom(spec) {
				text += ", by the resources that clusters report"
			}
			s.Details = append(s.Details, Detail{"now", text + ": " + e.command("rebalance", strings.ToLower(e.object.Kind)+"/"+e.object.Name)})
		}
	}
	for i := range spec.GracefulEvictionTasks {
		task := &spec.GracefulEvictionTasks[i]
		s.Details = append(s.Details, Detail{task.FromCluster, Line("being evicted: " + task.Reason + " " + task.Message)})
	}
	return s, e.notScheduled(condition, out)
}

// notScheduled returns why the binding is not scheduled as it should be, or nil.
func (e *explainer) notScheduled(condition *metav1.Condition, out []Detail) *finding {
	spec := e.Binding.GetSpec()
	switch {
	case spec.Suspension != nil && ptr.Deref(spec.Suspension.Scheduling, false):
		return found(SchedulingSuspended, "set spec.suspension.scheduling of its binding to false", "not scheduled: scheduling is suspended in its binding")
	case condition == nil && len(spec.Clusters) > 0: // it follows with the status of the clusters
		return nil
	case condition == nil && spec.SchedulerName != "" && spec.SchedulerName != policyv1alpha1.DefaultSchedulerName:
		return found(UnknownScheduler, "run that scheduler, or remove schedulerName from the policy", "not scheduled: it waits for scheduler %q, which has not acted", Line(spec.SchedulerName))
	case condition == nil:
		return found(NotYetScheduled, e.program+" get pods -n karmada-system, and the log of karmada-scheduler", "not scheduled yet: karmada-scheduler has not acted")
	case condition.Status == metav1.ConditionTrue:
		return nil
	}
	return e.refused(condition, out)
}

// refused returns why the scheduler made no decision.
func (e *explainer) refused(condition *metav1.Condition, out []Detail) *finding {
	message := Line(condition.Message)
	switch condition.Reason {
	case workv1alpha2.BindingReasonNoClusterFit:
		answer := "not scheduled: no cluster fits: " + message
		if len(out) > 0 {
			answer = "not scheduled: no cluster fits: " + reasons(out)
		}
		return found(NoClusterFit, e.place(out), "%s", answer)
	case workv1alpha2.BindingReasonUnschedulable:
		return found(Unschedulable, e.command("capacity", "--for", strings.ToLower(e.object.Kind)+"/"+e.object.Name), "not scheduled: %s", message)
	case workv1alpha2.BindingReasonQuotaExceeded:
		return found(QuotaExceeded, e.command("get", "federatedresourcequotas"), "not scheduled: %s", message)
	}
	change := "change spreadConstraints or the affinity of its policy, or the clusters: " + e.program + " get clusters"
	if text := e.spread(); text != "" {
		return found(SchedulerError, change, "not scheduled: %s", text)
	}
	if !strings.HasPrefix(message, "failed to select clusters") {
		change = "the log of karmada-scheduler"
	}
	return found(SchedulerError, change, "not scheduled: %s", message)
}

// place returns the next step if no cluster fits.
func (e *explainer) place(out []Detail) string {
	for _, d := range out {
		if c := e.Cluster(d.Of); c != nil && slices.ContainsFunc(c.Spec.Taints, clustercondition.Cordons) && strings.Contains(d.Text, clusterv1alpha1.TaintClusterUnschedulable) {
			return "cluster " + d.Of + " is cordoned: " + e.program + " uncordon " + d.Of
		}
	}
	return "change the placement of its policy, or the clusters: " + e.program + " get clusters"
}

// spread returns which spread constraint cannot be met, with the numbers; empty if all can, or that is not known.
func (e *explainer) spread() string {
	profile, err := DefaultProfile()
	constraints := e.Binding.GetSpec().Placement.SpreadConstraints
	if err != nil || len(constraints) == 0 || e.Lacks(snapshot.Clusters) {
		return ""
	}
	decision, _ := e.decide(profile, e.Binding.GetSpec()) // Explain has the error
	var texts []string
	for _, pass := range decision.Explain().Passes {
		for i, c := range constraints {
			if text := e.unmet(&pass, c); text != "" {
				texts = append(texts, strings.TrimPrefix("affinity "+pass.Affinity+": ", "affinity : ")+fmt.Sprintf("spreadConstraints[%d] %s", i, text))
			}
		}
	}
	return Line(several(texts, 3))
}

// unmet returns why a pass of the scheduler cannot meet a constraint; empty if it can.
func (e *explainer) unmet(pass *core.PassExplanation, c policyv1alpha1.SpreadConstraint) string {
	groups, what := map[string]bool{}, "fit"
	for i := range pass.Clusters {
		if cluster := e.Cluster(pass.Clusters[i].Name); pass.Clusters[i].RejectedBy == "" && cluster != nil {
			groups[cluster.Name] = true
		}
	}
	if c.SpreadByField == policyv1alpha1.SpreadByFieldRegion {
		regions := map[string]bool{}
		for name := range groups {
			regions[e.Cluster(name).Spec.Region] = true
		}
		delete(regions, "")
		groups, what = regions, "have clusters that fit"
	}
	switch {
	case c.MaxGroups == 0:
		return "has no maxGroups, which is the most that is selected"
	case len(groups) < c.MinGroups:
		return fmt.Sprintf("needs %s, and %d %s", Count(c.MinGroups, string(c.SpreadByField)), len(groups), what)
	}
	return ""
}

// reasons joins the exclusions of clusters.
func reasons(out []Detail) string {
	texts := make([]string, len(out))
	for i, d := range out {
		texts[i] = d.Of + ": " + strings.TrimPrefix(d.Text, "out: ")
	}
	return several(texts, 3)
}

// DefaultProfile has the plugins that are on by default.
func DefaultProfile() (*core.Profile, error) {
	filters, err := plugins.Registry(true).New([]string{"*"})
	if err != nil {
		return nil, err
	}
	return core.NewProfile(filters...)
}

// decide schedules the binding, with a spec, as the scheduler decides now without estimators.
func (e *explainer) decide(profile *core.Profile, spec *workv1alpha2.ResourceBindingSpec) (core.Decision, error) {
	return core.Schedule(framework.SnapshotOf(e.Clusters, false), &core.Request{Profile: profile, Binding: framework.Binding{
		Namespace: e.Binding.GetNamespace(), Name: e.Binding.GetName(), Spec: spec, Status: e.Binding.GetStatus(), Now: e.Now,
	}})
}

// rebalanced returns the targets of a decision that does not keep what the clusters have, if it differs from what is recorded.
func (e *explainer) rebalanced(profile *core.Profile) []workv1alpha2.TargetCluster {
	spec := e.Binding.GetSpec()
	if len(spec.Clusters) == 0 || core.FollowsClusters(spec) || e.Binding.GetStatus().LastScheduledTime == nil {
		return nil
	}
	fresh := spec.DeepCopy()
	fresh.RescheduleTriggeredAt = &metav1.Time{Time: e.Now}
	decision, err := e.decide(profile, fresh)
	sorted := func(list []workv1alpha2.TargetCluster) []workv1alpha2.TargetCluster {
		return slices.SortedFunc(slices.Values(list), func(a, b workv1alpha2.TargetCluster) int { return strings.Compare(a.Name, b.Name) })
	}
	same := func(a, b workv1alpha2.TargetCluster) bool { return a.Name == b.Name && a.Replicas == b.Replicas }
	if err != nil || slices.EqualFunc(sorted(decision.Clusters), sorted(spec.Clusters), same) {
		return nil
	}
	return decision.Clusters
}

// excluded returns why clusters do not get the object, as the scheduler decides now.
func (e *explainer) excluded(profile *core.Profile) []Detail {
	spec := e.Binding.GetSpec()
	decision, _ := e.decide(profile, spec) // Explain has the error
	var out []Detail
	for _, pass := range decision.Explain().Passes {
		for i := range pass.Clusters {
			c := &pass.Clusters[i]
			if spec.TargetContains(c.Name) || spec.EvictingFrom(c.Name) || slices.ContainsFunc(out, func(d Detail) bool { return d.Of == c.Name }) {
				continue
			}
			switch {
			case c.RejectedBy != "":
				out = append(out, Detail{c.Name, "out: " + Line(cmp.Or(c.Detail, strings.TrimPrefix(c.Reason, "cluster(s) ")))})
			case len(spec.Clusters) > 0:
				out = append(out, Detail{c.Name, "fits, but got no replicas"})
			}
		}
	}
	if rest := len(out) - maxOut; rest > 0 {
		out = append(out[:maxOut], Detail{"...", fmt.Sprintf("%d more are out", rest)})
	}
	return out
}

// targets returns clusters with their replicas.
func targets(list []workv1alpha2.TargetCluster) string {
	texts := make([]string, len(list))
	for i, t := range list {
		if texts[i] = t.Name; t.Replicas > 0 {
			texts[i] += fmt.Sprintf(" %d", t.Replicas)
		}
	}
	return cmp.Or(several(texts, 5), "no cluster")
}

// strategy returns how replicas are assigned.
func strategy(spec *workv1alpha2.ResourceBindingSpec) string {
	s := spec.Placement.ReplicaScheduling
	switch {
	case spec.Replicas == 0 && len(spec.Components) == 0:
		return "whole"
	case s == nil || s.ReplicaSchedulingType == policyv1alpha1.ReplicaSchedulingTypeDuplicated:
		return "duplicated"
	case s.ReplicaDivisionPreference == policyv1alpha1.ReplicaDivisionPreferenceAggregated:
		return "divided, aggregated in few clusters"
	case s.WeightPreference != nil && s.WeightPreference.DynamicWeight != "":
		return "divided by dynamic weight " + string(s.WeightPreference.DynamicWeight)
	case s.WeightPreference == nil || len(s.WeightPreference.StaticWeightList) == 0:
		return "divided by equal weight"
	}
	var weights []string
	for i := range s.WeightPreference.StaticWeightList {
		weights = append(weights, fmt.Sprint(s.WeightPreference.StaticWeightList[i].Weight))
	}
	return "divided by static weight " + strings.Join(weights, ":")
}

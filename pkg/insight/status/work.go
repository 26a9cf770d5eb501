package status

import (
	"cmp"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	policyv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/policy/v1alpha1"
	searchv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/search/v1alpha1"
	workv1alpha2 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha2"
	"github.com/karmada-toolkit/karmada/pkg/domain/scope"
	"github.com/karmada-toolkit/karmada/pkg/insight/why"
	"github.com/karmada-toolkit/karmada/pkg/operate/failover"
)

// Work is what the federation runs, in numbers.
type Work struct {
	// Bindings is the number of bindings of both scopes, ClusterBindings of those of the cluster scope.
	Bindings        int `json:"bindings"`
	ClusterBindings int `json:"clusterBindings"`
	// NotScheduled are the bindings that are not scheduled, by the reason of their condition.
	NotScheduled map[string]int `json:"notScheduled"`
	// NotApplied is the number of scheduled bindings that are not fully applied.
	NotApplied int `json:"notApplied"`
	// Unhealthy is the number of objects in clusters that are Unhealthy.
	Unhealthy int `json:"unhealthy"`
	// Evictions is the number of evictions under way.
	Evictions int `json:"evictions"`
	// EvictionsStopped reports whether evictions are stopped because many clusters failed at once.
	EvictionsStopped bool `json:"evictionsStopped,omitempty"`
	// Quotas is the number of FederatedResourceQuotas; QuotasFull have nothing left of a resource, QuotasExceeded less.
	Quotas         int `json:"quotas"`
	QuotasFull     int `json:"quotasFull"`
	QuotasExceeded int `json:"quotasExceeded"`
	// Registries is the number of ResourceRegistries, RegistriesNotReady of those that are not Ready.
	Registries         int `json:"registries"`
	RegistriesNotReady int `json:"registriesNotReady"`
}

// grace is how long a binding may be without a decision before that is a problem.
const grace = 30 * time.Second

func (r *reporter) work() {
	w := &r.out.Work
	w.NotScheduled, w.EvictionsStopped = map[string]int{}, slices.ContainsFunc(r.Clusters, evictionsStopped)
	for _, b := range r.Bindings {
		w.Bindings++
		if b.GetNamespace() == "" {
			w.ClusterBindings++
		}
		for _, t := range scope.Targets(b.GetSpec()) {
			r.targets[t.Name]++
		}
		w.Evictions += len(failover.Tasks(b))
		if b.GetDeletionTimestamp() == nil {
			r.binding(b)
		}
	}
}

// binding adds the first problem of a binding, and counts all.
func (r *reporter) binding(b workv1alpha2.Binding) {
	problem := r.schedule(b)
	for _, find := range []func(workv1alpha2.Binding) *Problem{r.apply, r.health} {
		if p := find(b); problem == nil {
			problem = p
		}
	}
	if problem == nil {
		return
	}
	spec := b.GetSpec()
	ref := &spec.Resource
	problem.Object, problem.Workloads, problem.replicas = object(ref.APIVersion, ref.Kind, ref.Namespace, ref.Name), 1, int64(spec.Replicas)
	problem.Text = problem.Object.String() + ": " + problem.Text
	if r.out.OfBindings == nil {
		r.out.OfBindings = map[client.ObjectKey]*Problem{}
	}
	r.out.OfBindings[client.ObjectKeyFromObject(b)] = r.add(*problem, r.explain(b)...)
}

// plain matches what a shell does not interpret. Users may write references of bindings.
var plain = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9:._-]*$`)

// explain returns the command that explains a binding. Only those that the detector named are explained by their template.
func (r *reporter) explain(b workv1alpha2.Binding) []string {
	ref := &b.GetSpec().Resource
	words := []string{r.program, "why", why.TypeName(ref.APIVersion, ref.Kind), ref.Name}
	if !scope.Canonical(b) || !plain.MatchString(ref.Kind) || !plain.MatchString(ref.Name) {
		words = []string{r.program, "describe", strings.ToLower(scope.BindingIn(b.GetNamespace()).Kind), b.GetName()}
	}
	if b.GetNamespace() != "" {
		words = append(words, "-n", b.GetNamespace())
	}
	return words
}

// schedule returns why a binding is not scheduled, or nil. Those without a placement follow others.
func (r *reporter) schedule(b workv1alpha2.Binding) *Problem {
	c := meta.FindStatusCondition(b.GetStatus().Conditions, workv1alpha2.Scheduled)
	notScheduled := r.out.Work.NotScheduled
	switch {
	case b.GetSpec().Placement == nil || c == nil && (!scope.Claimed(b) || len(b.GetSpec().Clusters) > 0) || c != nil && c.Status == metav1.ConditionTrue:
		return nil
	case b.GetSpec().SchedulingSuspended():
		notScheduled[string(why.SchedulingSuspended)]++
		return nil
	case c == nil:
		notScheduled[string(why.NotYetScheduled)]++
		if r.Now.Sub(b.GetCreationTimestamp().Time) < grace {
			return nil
		}
		return &Problem{Reason: string(why.NotYetScheduled), Text: "not scheduled yet", rank: rankScheduled}
	}
	reason := why.Line(c.Reason)
	notScheduled[reason]++
	return &Problem{Reason: reason, Text: "not scheduled: " + reason + ": " + c.Message, rank: rankScheduled}
}

// apply returns why a scheduled binding is not fully applied, or nil. A cluster that is not Ready is a problem of its own.
func (r *reporter) apply(b workv1alpha2.Binding) *Problem {
	targets := scope.Targets(b.GetSpec())
	c := meta.FindStatusCondition(b.GetStatus().Conditions, workv1alpha2.FullyApplied)
	if len(targets) == 0 || c != nil && c.Status == metav1.ConditionTrue {
		return nil
	}
	r.out.Work.NotApplied++
	since := b.GetCreationTimestamp().Time
	if c != nil {
		since = c.LastTransitionTime.Time
	}
	waiting := ""
	for _, t := range targets {
		if r.unready[t.Name] || scope.DispatchingSuspended(b.GetSpec().Suspension, t.Name) {
			continue
		}
		switch item := why.Item(b, t.Name); {
		case item != nil && !item.Applied && item.AppliedMessage != "":
			return &Problem{Reason: string(why.ApplyFailed), Text: "not applied in cluster " + t.Name + ": " + item.AppliedMessage, rank: rankApplied}
		case item == nil || !item.Applied:
			waiting = cmp.Or(waiting, t.Name)
		}
	}
	if waiting == "" || r.Now.Sub(since) < grace {
		return nil
	}
	return &Problem{Reason: string(why.NotYetDelivered), Text: "not applied in cluster " + waiting + " yet", rank: rankApplied}
}

// health returns in which clusters the object of a binding is Unhealthy, or nil.
func (r *reporter) health(b workv1alpha2.Binding) *Problem {
	targets := scope.Names(scope.Targets(b.GetSpec()))
	var clusters []string
	for i := range b.GetStatus().AggregatedStatus {
		item := &b.GetStatus().AggregatedStatus[i]
		if item.Health != workv1alpha2.ResourceUnhealthy {
			continue
		}
		r.out.Work.Unhealthy++
		if targets.Has(item.ClusterName) && !r.unready[item.ClusterName] {
			clusters = append(clusters, item.ClusterName)
		}
	}
	if len(clusters) == 0 {
		return nil
	}
	text := fmt.Sprintf("Unhealthy in %d of %s: %s", len(clusters), why.Count(targets.Len(), "cluster"), strings.Join(clusters, ", "))
	return &Problem{Reason: string(why.Unhealthy), Text: text, rank: rankHealth}
}

// quotas counts the quotas, and adds those that are exceeded, or full while they refuse a binding.
func (r *reporter) quotas() {
	refused := r.refused()
	w := &r.out.Work
	w.Quotas = len(r.Quotas)
	for i := range r.Quotas {
		q := &r.Quotas[i]
		full, exceeded := left(q)
		switch {
		case len(exceeded) > 0:
			w.QuotasExceeded++
		case len(full) > 0:
			w.QuotasFull++
		}
		text, list := "exceeded", exceeded
		if len(list) == 0 {
			text, list = "full", full
		}
		if len(list) == 0 || len(exceeded) == 0 && refused[q.Namespace] == 0 {
			continue
		}
		r.add(Problem{Reason: ReasonQuotaExceeded, Object: object(policyv1alpha1.GroupVersion.String(), "FederatedResourceQuota", q.Namespace, q.Name), Workloads: refused[q.Namespace], rank: rankQuota,
			Text: fmt.Sprintf("FederatedResourceQuota %s/%s is %s (%s refused): %s", q.Namespace, q.Name, text, why.Count(refused[q.Namespace], "workload"), strings.Join(list, ", "))},
			r.program, "describe", "federatedresourcequota", q.Name, "-n", q.Namespace)
	}
}

// refused returns the number of bindings that a quota refuses, by namespace.
func (r *reporter) refused() map[string]int {
	out := map[string]int{}
	for _, b := range r.Bindings {
		if c := meta.FindStatusCondition(b.GetStatus().Conditions, workv1alpha2.Scheduled); c != nil && c.Status != metav1.ConditionTrue && c.Reason == workv1alpha2.BindingReasonQuotaExceeded {
			out[b.GetNamespace()]++
		}
	}
	return out
}

// left returns the resources of which a quota has nothing left, and those of which more is used than it allows.
func left(q *policyv1alpha1.FederatedResourceQuota) (full, exceeded []string) {
	for _, name := range slices.Sorted(maps.Keys(q.Spec.Overall)) {
		limit, used := q.Spec.Overall[name], q.Status.OverallUsed[name]
		text := fmt.Sprintf("%s %s of %s", name, used.String(), limit.String())
		switch order := used.Cmp(limit); {
		case order > 0:
			exceeded = append(exceeded, text)
		case order == 0 && !used.IsZero():
			full = append(full, text)
		}
	}
	return full, exceeded
}

func (r *reporter) registries() {
	w := &r.out.Work
	w.Registries = len(r.Registries)
	for i := range r.Registries {
		registry := &r.Registries[i]
		c := meta.FindStatusCondition(registry.Status.Conditions, searchv1alpha1.RegistryReady)
		if c != nil && c.Status == metav1.ConditionTrue {
			continue
		}
		w.RegistriesNotReady++
		p := Problem{Reason: string(why.NotYetReported), Text: "ResourceRegistry " + registry.Name + " is not Ready", rank: rankRegistry}
		if c != nil {
			p.Reason, p.Text = why.Line(c.Reason), p.Text+": "+c.Reason+": "+c.Message
		}
		p.Object = object(searchv1alpha1.GroupVersion.String(), "ResourceRegistry", "", registry.Name)
		r.add(p, r.program, "describe", "resourceregistry", registry.Name)
	}
}

// finish orders the problems and writes the answer.
func (r *reporter) finish() {
	slices.SortStableFunc(r.problems, func(a, b Problem) int {
		return cmp.Or(cmp.Compare(min(a.rank, rankCluster), min(b.rank, rankCluster)), cmp.Compare(b.Workloads, a.Workloads), cmp.Compare(a.rank, b.rank),
			cmp.Compare(b.replicas, a.replicas), strings.Compare(a.Object.String(), b.Object.String()))
	})
	out := r.out
	out.ProblemCount, out.Healthy = len(r.problems), len(r.problems) == 0
	out.Problems = append([]Problem{}, r.problems[:min(len(r.problems), maxProblems)]...)
	switch {
	case !out.Healthy:
		out.Answer = why.Count(out.ProblemCount, "problem") + "; the worst: " + out.Problems[0].Text
	case len(r.Gaps) > 0:
		out.Answer = "nothing is wrong in what could be read; not all could be"
	default:
		out.Answer = fmt.Sprintf("no problems: %d of %s Ready, %s", out.Clusters.Ready, why.Count(out.Clusters.Total, "cluster"), why.Count(out.Work.Bindings, "binding"))
	}
}

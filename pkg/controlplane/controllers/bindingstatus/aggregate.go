package bindingstatus

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"io"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/karmada-toolkit/karmada/internal/plaintext"
	"github.com/karmada-toolkit/karmada/pkg/apis/names"
	workv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha1"
	workv1alpha2 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha2"
	"github.com/karmada-toolkit/karmada/pkg/domain/eviction"
	"github.com/karmada-toolkit/karmada/pkg/domain/scope"
)

// progress is how far a binding's Works have come.
type progress int

const (
	stable     progress = iota // everything is applied and healthy: no change is expected
	failed                     // an object could not be applied
	unstable                   // everything is applied, something is not healthy yet
	pending                    // Works are missing, or were not handled yet
	unreported                 // no cluster has reported
)

// summary is what the Works of a binding report.
type summary struct {
	// want are the clusters that should have the template.
	want  sets.Set[string]
	items []workv1alpha2.AggregatedStatusItem
	// targeted is set if the binding has a target cluster.
	targeted     bool
	fullyApplied bool
	progress     progress
	// contested is the message of the condition Contested, with its reason; empty if no cluster has it.
	contested, contestedReason string
	// revision differs when one of the Works differs.
	revision uint64
	// moving is set while the workload is evicted from a cluster and not stable in the
	// others. It is not if the scheduler found no other cluster.
	moving bool
}

// maxStatus is the longest status of a cluster that is aggregated, in bytes: the
// status of a binding is one object for all of its clusters.
const maxStatus = 64 << 10

// maxMessage is the longest message of a cluster that is aggregated, in bytes.
const maxMessage = 4 << 10

// summarizeEviction is summarize for a binding with eviction tasks. Tasks that the
// controller of graceful evictions ends because of the summary count as ended: the
// clusters that are left are not reported once more for an instant.
func summarizeEviction(binding workv1alpha2.Binding, works []workv1alpha1.Work) summary {
	spec, observed := binding.GetSpec(), binding.GetStatus().SchedulerObservedGeneration
	s := summarize(spec, works)
	v := eviction.Graceful(eviction.GracefulFacts{Generation: binding.GetGeneration(), Spec: spec, Status: &workv1alpha2.ResourceBindingStatus{
		SchedulerObservedGeneration: observed, AggregatedStatus: s.items,
	}})
	if len(v.Ended) > 0 {
		after := *spec
		after.GracefulEvictionTasks = v.Keep
		s = summarize(&after, works)
	}
	if meta.IsStatusConditionFalse(binding.GetStatus().Conditions, workv1alpha2.Scheduled) {
		return s // there is no other cluster for it
	}
	if s.progress == stable && observed != binding.GetGeneration() {
		s.progress = pending // the scheduler is about to add other clusters
	}
	s.moving = s.progress != stable
	return s
}

// summarize summarizes the Works of a binding. A Work counts if it is the one that
// the binding controller writes for an expected cluster: whoever may write Works of
// one cluster must not report for another, or twice.
func summarize(spec *workv1alpha2.ResourceBindingSpec, works []workv1alpha1.Work) summary {
	want := expected(spec)
	canonical := names.Work(spec.Resource.Kind, spec.Resource.Name, spec.Resource.Namespace)
	s := summary{want: want, targeted: len(scope.Targets(spec)) > 0}
	handled := sets.New[string]()
	failures := false
	for i := range works {
		work := &works[i]
		cluster, err := names.ClusterOfExecutionNamespace(work.Namespace)
		if err != nil || !work.DeletionTimestamp.IsZero() || work.Name != canonical || !want.Has(cluster) {
			continue
		}
		s.revision ^= revision(work)
		s.addContested(cluster, work)
		item := itemOf(spec.Resource, cluster, work)
		s.items = append(s.items, item)
		if condition := meta.FindStatusCondition(work.Status.Conditions, workv1alpha1.WorkApplied); condition != nil {
			handled.Insert(cluster)
			failures = failures || condition.Status != metav1.ConditionTrue
		}
	}
	slices.SortFunc(s.items, func(a, b workv1alpha2.AggregatedStatusItem) int { return cmp.Compare(a.ClusterName, b.ClusterName) })
	s.fullyApplied = fullyApplied(want, s.items)
	s.progress = progressOf(want, s, handled, failures)
	// What is only kept while it is evicted is not applied: no cluster has it.
	s.fullyApplied = s.fullyApplied && s.targeted
	return s
}

// addContested adds the condition Contested of a Work. The cluster that is first by name has the message.
func (s *summary) addContested(cluster string, work *workv1alpha1.Work) {
	condition := meta.FindStatusCondition(work.Status.Conditions, workv1alpha1.WorkContested)
	if condition == nil || condition.Status != metav1.ConditionTrue {
		return
	}
	message := plaintext.Line("Cluster "+cluster+": "+condition.Message, maxMessage)
	if s.contested == "" || message < s.contested {
		s.contested, s.contestedReason = message, workv1alpha1.WorkContestedReason
		if condition.Reason == workv1alpha1.WorkNodePortTakenReason { // of no other text of an agent
			s.contestedReason = condition.Reason
		}
	}
}

// revision returns a hash of the version of a Work.
func revision(work *workv1alpha1.Work) uint64 {
	h := fnv.New64a()
	_, _ = io.WriteString(h, work.Namespace+"/"+work.ResourceVersion)
	return h.Sum64()
}

func progressOf(want sets.Set[string], s summary, handled sets.Set[string], failures bool) progress {
	healthy := !slices.ContainsFunc(s.items, func(i workv1alpha2.AggregatedStatusItem) bool { return i.Health != workv1alpha2.ResourceHealthy })
	missing := !handled.IsSuperset(want)
	switch {
	case s.fullyApplied && healthy, len(want) == 0 && len(s.items) == 0:
		return stable
	case len(handled) == 0:
		return unreported
	case failures:
		return failed
	case missing:
		return pending
	}
	return unstable
}

// expected returns the names of the clusters that should have the template.
func expected(spec *workv1alpha2.ResourceBindingSpec) sets.Set[string] {
	return scope.Names(scope.Kept(scope.Targets(spec), spec.GracefulEvictionTasks))
}

// targets returns the clusters that should have the template, without those that it
// is being evicted from, and the replicas of each. A dependency runs with its own
// replicas wherever it is required.
func targets(spec *workv1alpha2.ResourceBindingSpec) []workv1alpha2.TargetCluster {
	out, scheduled := scope.Targets(spec), scope.Names(spec.Clusters)
	for i := range out {
		if !scheduled.Has(out[i].Name) {
			out[i].Replicas = spec.Replicas
		}
	}
	return out
}

func fullyApplied(want sets.Set[string], items []workv1alpha2.AggregatedStatusItem) bool {
	if len(want) == 0 || len(items) != len(want) {
		return false
	}
	for i := range items {
		if !items[i].Applied || !want.Has(items[i].ClusterName) {
			return false
		}
	}
	return true
}

// itemOf returns what a Work reports about the template.
func itemOf(ref workv1alpha2.ObjectReference, cluster string, work *workv1alpha1.Work) workv1alpha2.AggregatedStatusItem {
	item := workv1alpha2.AggregatedStatusItem{ClusterName: cluster, Health: workv1alpha2.ResourceUnknown}
	applied := meta.FindStatusCondition(work.Status.Conditions, workv1alpha1.WorkApplied)
	if applied == nil {
		return item
	}
	if applied.Status != metav1.ConditionTrue {
		item.AppliedMessage = plaintext.Line(applied.Message, maxMessage)
		return item
	}
	for i := range work.Status.ManifestStatuses {
		m := &work.Status.ManifestStatuses[i]
		if !identifies(ref, m.Identifier) {
			continue
		}
		item.Applied, item.Status = true, m.Status
		if m.Status != nil && len(m.Status.Raw) > maxStatus {
			item.Status = nil
			item.AppliedMessage = fmt.Sprintf("the status in cluster %s is left out: it has %d bytes, more than %d", cluster, len(m.Status.Raw), maxStatus)
		}
		if m.Health != "" {
			item.Health = workv1alpha2.ResourceHealth(m.Health)
		}
		return item
	}
	if !carries(work, ref) {
		item.AppliedMessage = fmt.Sprintf("work %s/%s does not carry %s %s/%s", work.Namespace, work.Name, ref.Kind, ref.Namespace, ref.Name)
		return item
	}
	item.Applied = true
	return item
}

func identifies(ref workv1alpha2.ObjectReference, id workv1alpha1.ResourceIdentifier) bool {
	gv := schema.GroupVersion{Group: id.Group, Version: id.Version}
	return gv.String() == ref.APIVersion && id.Kind == ref.Kind && id.Namespace == ref.Namespace && id.Name == ref.Name
}

// carries reports whether the template is among the objects of a Work.
func carries(work *workv1alpha1.Work, ref workv1alpha2.ObjectReference) bool {
	for i := range work.Spec.Workload.Manifests {
		var m metav1.PartialObjectMetadata
		if json.Unmarshal(work.Spec.Workload.Manifests[i].Raw, &m) == nil &&
			m.APIVersion == ref.APIVersion && m.Kind == ref.Kind && m.Namespace == ref.Namespace && m.Name == ref.Name {
			return true
		}
	}
	return false
}

// complete reports whether items show the template applied and healthy in all of
// the clusters.
func complete(want sets.Set[string], items []workv1alpha2.AggregatedStatusItem) bool {
	return fullyApplied(want, items) &&
		!slices.ContainsFunc(items, func(i workv1alpha2.AggregatedStatusItem) bool { return i.Health != workv1alpha2.ResourceHealthy })
}

// sameItems compares two lists by meaning; before is sorted by cluster, as it was written. A status in now that means the
// same as the one in before is replaced by it.
func sameItems(before, now []workv1alpha2.AggregatedStatusItem) bool {
	for i := range now {
		j, ok := slices.BinarySearchFunc(before, now[i].ClusterName, func(b workv1alpha2.AggregatedStatusItem, name string) int {
			return cmp.Compare(b.ClusterName, name)
		})
		if ok && sameRaw(before[j].Status, now[i].Status) {
			now[i].Status = before[j].Status
		}
	}
	return equality.Semantic.DeepEqual(before, now)
}

// sameRaw compares JSON by meaning.
func sameRaw(a, b *runtime.RawExtension) bool {
	if a == nil || b == nil {
		return a == b
	}
	if bytes.Equal(a.Raw, b.Raw) {
		return true
	}
	var x, y any
	return json.Unmarshal(a.Raw, &x) == nil && json.Unmarshal(b.Raw, &y) == nil && equality.Semantic.DeepEqual(x, y)
}

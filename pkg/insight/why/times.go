package why

import (
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	workv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha1"
	workv1alpha2 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha2"
)

// times returns when the template passed the stages: what its binding and Works record of it.
func (e *explainer) times() []Time {
	var out []Time
	add := func(what, cluster string, at metav1.Time) {
		if !at.IsZero() {
			out = append(out, Time{what, cluster, at})
		}
	}
	add("created", "", e.Template.GetCreationTimestamp())
	if e.Binding != nil {
		add("bound", "", e.Binding.GetCreationTimestamp())
		if last := e.Binding.GetStatus().LastScheduledTime; last != nil {
			add("scheduled", "", *last)
		} else if c := meta.FindStatusCondition(e.Binding.GetStatus().Conditions, workv1alpha2.Scheduled); c != nil {
			add("not scheduled", "", c.LastTransitionTime)
		}
	}
	for _, t := range e.Targets() {
		work := e.Works[t.Name]
		if work == nil {
			continue
		}
		add("delivered", t.Name, work.CreationTimestamp)
		if c := meta.FindStatusCondition(work.Status.Conditions, workv1alpha1.WorkApplied); c != nil && c.Status == metav1.ConditionTrue {
			add("applied", t.Name, c.LastTransitionTime)
		} else if c != nil {
			add("not applied", t.Name, c.LastTransitionTime)
		}
	}
	slices.SortStableFunc(out, func(a, b Time) int { return a.At.Compare(b.At.Time) })
	return out
}

package why

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"

	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
	workv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha1"
)

// NotRemoved is the cause of an object that leaves a cluster, and stays there.
const NotRemoved Cause = "NotRemoved"

// leavingGrace is how long an object may leave a cluster before that is a cause.
const leavingGrace = time.Minute

// leaves explains the clusters that the object leaves.
func (e *explainer) leaves() (*Stage, *finding) {
	s := leavingStage(e.Leaving, e.Now)
	if s == nil {
		return nil, nil
	}
	cluster, text, stuck := firstStuck(e.Leaving, e.Now)
	if !stuck {
		return s, nil
	}
	where := ""
	if len(e.Targets()) > 0 {
		where = e.working() + ", but "
	}
	return s, found(NotRemoved, e.command("get", e.named(), "-C", cluster, "-o", "yaml"), "%sit does not leave cluster %s: %s", where, cluster, text)
}

// Gone explains an object that does not exist in the control plane any more, and leaves clusters.
func Gone(object Object, works map[string]*workv1alpha1.Work, now time.Time, program string) *Account {
	out := &Account{SchemaVersion: SchemaVersion, Object: object, Cause: NotRemoved, Stages: []Stage{*leavingStage(works, now)}}
	e := &explainer{program: program, object: object}
	cluster, text, stuck := firstStuck(works, now)
	if !stuck {
		cluster = slices.Min(slices.Collect(maps.Keys(works)))
		text = leavingText(works[cluster], now)
	}
	out.Answer = fmt.Sprintf("%s: it was deleted in the control plane, and leaves %s: %s: %s", object, Count(len(works), "cluster"), cluster, text)
	out.Next = e.command("get", e.named(), "-C", cluster, "-o", "yaml")
	return out.shortened()
}

// leavingStage returns the stage of the clusters that an object leaves; nil for none.
func leavingStage(works map[string]*workv1alpha1.Work, now time.Time) *Stage {
	if len(works) == 0 {
		return nil
	}
	s := &Stage{Name: "leaves", Text: Count(len(works), "cluster")}
	for i, cluster := range slices.Sorted(maps.Keys(works)) {
		s.add(i, cluster, leavingText(works[cluster], now))
	}
	return s
}

// firstStuck returns the first cluster that an object does not leave, and why.
func firstStuck(works map[string]*workv1alpha1.Work, now time.Time) (cluster, text string, stuck bool) {
	for _, cluster := range slices.Sorted(maps.Keys(works)) {
		if w := works[cluster]; meta.FindStatusCondition(w.Status.Conditions, workv1alpha1.WorkRemoved) != nil || now.Sub(w.DeletionTimestamp.Time) > leavingGrace {
			return cluster, leavingText(w, now), true
		}
	}
	return "", "", false
}

// leavingText returns since when the objects of a Work leave a cluster, and what they wait for.
func leavingText(w *workv1alpha1.Work, now time.Time) string {
	text := "since " + duration.HumanDuration(now.Sub(w.DeletionTimestamp.Time))
	if c := meta.FindStatusCondition(w.Status.Conditions, workv1alpha1.WorkRemoved); c != nil {
		text += ": " + c.Message
	}
	return Line(text)
}

// ObjectOf returns the first object of a Work.
func ObjectOf(w *workv1alpha1.Work) Object {
	m := &metav1.PartialObjectMetadata{}
	if len(w.Spec.Workload.Manifests) == 0 || json.Unmarshal(w.Spec.Workload.Manifests[0].Raw, m) != nil {
		return Object{Kind: "Work", Namespace: w.Namespace, Name: w.Name}
	}
	return Object{m.APIVersion, cmp.Or(m.Kind, "object"), m.Namespace, m.Name}
}

// BadIfTrue reports whether a condition of a cluster reports a problem if it is True. Others do if they are not.
func BadIfTrue(condition string) bool {
	return slices.Contains([]string{
		clusterv1alpha1.ClusterConditionOrphanedObjects, clusterv1alpha1.ClusterConditionStoreRestored, clusterv1alpha1.ClusterConditionObjectsStuck,
		clusterv1alpha1.ClusterConditionAgentRefused, clusterv1alpha1.ClusterConditionEvictionsStopped,
	}, condition)
}

// ClusterProblems returns the conditions of a cluster that report a problem by being True, beside stopped evictions.
func ClusterProblems(c *clusterv1alpha1.Cluster) []metav1.Condition {
	return slices.DeleteFunc(slices.Clone(c.Status.Conditions), func(condition metav1.Condition) bool {
		return condition.Status != metav1.ConditionTrue || !BadIfTrue(condition.Type) || condition.Type == clusterv1alpha1.ClusterConditionEvictionsStopped
	})
}

// clusterProblem returns the answer about the first of these conditions; empty for none.
func clusterProblem(c *clusterv1alpha1.Cluster) string {
	var texts []string
	for _, condition := range ClusterProblems(c) {
		texts = append(texts, condition.Type+": "+condition.Message)
	}
	return Line(strings.Join(texts, "; "))
}

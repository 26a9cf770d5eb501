package orphans

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	testingclock "k8s.io/utils/clock/testing"

	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
)

func orphanOf(name string) Object {
	return Object{kind: "Deployment", key: types.NamespacedName{Namespace: "default", Name: name}, uid: types.UID("uid of " + name)}
}

func TestTracker_ReportsObjectsAfterGrace(t *testing.T) {
	clk := testingclock.NewFakeClock(time.Now())
	o := NewTracker(clk)
	if found, fresh := o.Observe([]Object{orphanOf("a")}); len(found) != 0 || !fresh {
		t.Errorf("at first sight: %v, %t", found, fresh)
	}
	clk.Step(Grace)
	found, fresh := o.Observe([]Object{orphanOf("a"), orphanOf("b")})
	if len(found) != 1 || found[0].key.Name != "a" || !fresh {
		t.Errorf("later: %v, %t", found, fresh)
	}
	// One whose Work is back starts anew.
	o.Observe(nil)
	if found, _ := o.Observe([]Object{orphanOf("a")}); len(found) != 0 {
		t.Errorf("one that was none in between: %v", found)
	}
}

func TestToken_IdentifiesTheObjects(t *testing.T) {
	one := []Object{orphanOf("a"), orphanOf("b")}
	if Token(one) != Token([]Object{orphanOf("a"), orphanOf("b")}) {
		t.Error("the same objects have another token")
	}
	for _, other := range [][]Object{{orphanOf("a")}, {orphanOf("a"), orphanOf("b"), orphanOf("c")}, {orphanOf("a"), {kind: "Deployment", key: one[1].key, uid: "another"}}} {
		if Token(one) == Token(other) {
			t.Errorf("%v has the token of %v", other, one)
		}
	}
}

func TestMessage_ListsObjectsAndCommand(t *testing.T) {
	var many []Object
	for _, name := range []string{"a", "b", "c", "d", "e", "f", "g"} {
		many = append(many, orphanOf(name))
	}
	text := Message("m3", many)
	for _, want := range []string{"7 objects", "Deployment default/a", "and 2 more", "kubectl annotate cluster m3 cluster.karmada.io/delete-orphans=" + Token(many)} {
		if !strings.Contains(text, want) {
			t.Errorf("%q lacks %q", text, want)
		}
	}
}

func TestTracker_NoConditionBeforeTheFirstObject(t *testing.T) {
	o := NewTracker(testingclock.NewFakeClock(time.Now()))
	cluster := &clusterv1alpha1.Cluster{}
	if got := o.Conditions(cluster); got != nil {
		t.Errorf("a cluster that never had any: %v", got)
	}
	o.found, o.message, o.searched = []Object{orphanOf("a")}, "text", true
	got := o.Conditions(cluster)
	if len(got) != 1 || got[0].Status != metav1.ConditionTrue || got[0].Message != "text" {
		t.Errorf("a cluster with one: %v", got)
	}
	cluster.Status.Conditions = got
	o.found = nil
	if got = o.Conditions(cluster); len(got) != 1 || got[0].Status != metav1.ConditionFalse {
		t.Errorf("a cluster that had some: %v", got)
	}
}

func TestTracker_ConditionIsKeptUntilASearchEnded(t *testing.T) {
	o := NewTracker(testingclock.NewFakeClock(time.Now()))
	published := metav1.Condition{Type: clusterv1alpha1.ClusterConditionOrphanedObjects, Status: metav1.ConditionTrue, Reason: reasonFound, Message: "text"}
	cluster := &clusterv1alpha1.Cluster{Status: clusterv1alpha1.ClusterStatus{Conditions: []metav1.Condition{published}}}
	unchanged := func(when string) {
		t.Helper()
		if got := o.Conditions(cluster); len(got) != 1 || got[0] != published {
			t.Errorf("%s: %v", when, got)
		}
	}
	unchanged("before the first look")
	o.Publish("m3", nil, true)
	unchanged("while objects may only seem to be orphans")
	o.Publish("m3", nil, false)
	if got := o.Conditions(cluster); len(got) != 1 || got[0].Status != metav1.ConditionFalse {
		t.Errorf("after a look that found none: %v", got)
	}
}

func TestTracker_RestoredCondition(t *testing.T) {
	began := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	clk := testingclock.NewFakeClock(began)
	cluster := &clusterv1alpha1.Cluster{}
	get := func(o *Tracker) *metav1.Condition {
		got := o.restoredCondition(cluster)
		if len(got) == 0 {
			return nil
		}
		return &got[0]
	}
	o := NewTracker(clk)
	if c := get(o); c != nil {
		t.Errorf("before a restore: %v", c)
	}
	m := newMember(t)
	if o.Open(m, func() {}) != "" {
		t.Error("a member that is opened was restored")
	}
	m = m.restored("90", "40\n"+strings.Repeat("x", 1000))
	if o.Open(m, func() {}) == "" || o.Open(m, func() {}) != "" {
		t.Error("a member that was restored is not reported once")
	}
	c := get(o)
	if c == nil || c.Status != metav1.ConditionTrue || c.Reason != reasonWentBack || !strings.Contains(c.Message, "was 90 and is 40") {
		t.Fatalf("after a restore: %v", c)
	}
	if c := get(o); len(c.Message) > 400 || strings.Contains(c.Message, "\n") {
		t.Errorf("a version of the member is not limited: %q", c.Message)
	}

	c.LastTransitionTime = metav1.NewTime(began)
	cluster.Status.Conditions = []metav1.Condition{*c}
	restarted := NewTracker(clk)
	if got := get(restarted); got == nil || *got != *c {
		t.Errorf("another process replaces %v by %v", c, got)
	}
	clk.Step(restoredFor + time.Second)
	for name, tracker := range map[string]*Tracker{"the same": o, "another": restarted} {
		if got := get(tracker); got == nil || got.Status != metav1.ConditionFalse || got.Reason != reasonCompared || !strings.Contains(got.Message, "2026-01-02T03:04:05Z") {
			t.Errorf("%s process, later: %v", name, got)
		}
	}
	ended := get(restarted)
	cluster.Status.Conditions = []metav1.Condition{*ended}
	if got := get(NewTracker(clk)); got == nil || *got != *ended {
		t.Errorf("what has ended is replaced by %v", got)
	}
	if o.Open(m.restored("95", "30"), func() {}) == "" || get(o).Status != metav1.ConditionTrue {
		t.Errorf("the next restore: %v", get(o))
	}
}

package agent

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	testingclock "k8s.io/utils/clock/testing"

	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
)

func orphanOf(name string) orphan {
	return orphan{kind: "Deployment", key: types.NamespacedName{Namespace: "default", Name: name}, uid: types.UID("uid of " + name), work: name}
}

func TestOrphans_OnlyAfterAWhile(t *testing.T) {
	clk := testingclock.NewFakeClock(time.Now())
	o := newOrphans(&agent{options: &Options{ClusterName: "m3"}, clock: clk})
	if found, fresh := o.ripe([]orphan{orphanOf("a")}); len(found) != 0 || !fresh {
		t.Errorf("at first sight: %v, %t", found, fresh)
	}
	clk.Step(orphanGrace)
	found, fresh := o.ripe([]orphan{orphanOf("a"), orphanOf("b")})
	if len(found) != 1 || found[0].key.Name != "a" || !fresh {
		t.Errorf("later: %v, %t", found, fresh)
	}
	// One whose Work is back starts anew.
	o.ripe(nil)
	if found, _ := o.ripe([]orphan{orphanOf("a")}); len(found) != 0 {
		t.Errorf("one that was none in between: %v", found)
	}
}

func TestToken_StandsForExactlyTheseObjects(t *testing.T) {
	one := []orphan{orphanOf("a"), orphanOf("b")}
	if token(one) != token([]orphan{orphanOf("a"), orphanOf("b")}) {
		t.Error("the same objects have another token")
	}
	for _, other := range [][]orphan{{orphanOf("a")}, {orphanOf("a"), orphanOf("b"), orphanOf("c")}, {orphanOf("a"), {kind: "Deployment", key: one[1].key, uid: "another"}}} {
		if token(one) == token(other) {
			t.Errorf("%v has the token of %v", other, one)
		}
	}
}

func TestMessage_NamesWhatIsThereAndWhatToDo(t *testing.T) {
	var many []orphan
	for _, name := range []string{"a", "b", "c", "d", "e", "f", "g"} {
		many = append(many, orphanOf(name))
	}
	text := message("m3", many)
	for _, want := range []string{"7 objects", "Deployment default/a", "and 2 more", "kubectl annotate cluster m3 cluster.karmada.io/delete-orphans=" + token(many)} {
		if !strings.Contains(text, want) {
			t.Errorf("%q lacks %q", text, want)
		}
	}
}

func TestConditions_NothingUntilThereWereSome(t *testing.T) {
	o := newOrphans(&agent{options: &Options{ClusterName: "m3"}, clock: testingclock.NewFakeClock(time.Now())})
	cluster := &clusterv1alpha1.Cluster{}
	if got := o.conditions(cluster); got != nil {
		t.Errorf("a cluster that never had any: %v", got)
	}
	o.found, o.told, o.sure = []orphan{orphanOf("a")}, "text", true
	got := o.conditions(cluster)
	if len(got) != 1 || got[0].Status != metav1.ConditionTrue || got[0].Message != "text" {
		t.Errorf("a cluster with one: %v", got)
	}
	cluster.Status.Conditions = got
	o.found = nil
	if got = o.conditions(cluster); len(got) != 1 || got[0].Status != metav1.ConditionFalse {
		t.Errorf("a cluster that had some: %v", got)
	}
}

func TestConditions_StayUntilAnAgentThatStartsHasLooked(t *testing.T) {
	o := newOrphans(&agent{options: &Options{ClusterName: "m3"}, clock: testingclock.NewFakeClock(time.Now())})
	told := metav1.Condition{Type: clusterv1alpha1.ClusterConditionOrphanedObjects, Status: metav1.ConditionTrue, Reason: reasonOrphaned, Message: "text"}
	cluster := &clusterv1alpha1.Cluster{Status: clusterv1alpha1.ClusterStatus{Conditions: []metav1.Condition{told}}}
	unchanged := func(when string) {
		t.Helper()
		if got := o.conditions(cluster); len(got) != 1 || got[0] != told {
			t.Errorf("%s: %v", when, got)
		}
	}
	unchanged("before the first look")
	o.publish(cluster, nil, true)
	unchanged("while objects may only seem to be orphans")
	o.publish(cluster, nil, false)
	if got := o.conditions(cluster); len(got) != 1 || got[0].Status != metav1.ConditionFalse {
		t.Errorf("after a look that found none: %v", got)
	}
}

func TestServes_OnlyThisClusterInPullMode(t *testing.T) {
	a := &agent{options: &Options{ClusterName: "m3"}, id: "id-3"}
	tests := []struct {
		name    string
		cluster clusterv1alpha1.Cluster
		want    bool
	}{
		{"its own", clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "m3"}, Spec: clusterv1alpha1.ClusterSpec{SyncMode: clusterv1alpha1.Pull, ID: "id-3"}}, true},
		{"another cluster that took the name", clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "m3"}, Spec: clusterv1alpha1.ClusterSpec{SyncMode: clusterv1alpha1.Pull, ID: "id-4"}}, false},
		{"in Push mode", clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "m3"}, Spec: clusterv1alpha1.ClusterSpec{SyncMode: clusterv1alpha1.Push, ID: "id-3"}}, false},
		{"another name", clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "m4"}, Spec: clusterv1alpha1.ClusterSpec{SyncMode: clusterv1alpha1.Pull, ID: "id-3"}}, false},
	}
	for _, tt := range tests {
		if got := a.serves(&tt.cluster); got != tt.want {
			t.Errorf("%s: %t", tt.name, got)
		}
	}
	a.abandoned.Store(true)
	if a.serves(&tests[0].cluster) {
		t.Error("a cluster that was abandoned is served")
	}
}

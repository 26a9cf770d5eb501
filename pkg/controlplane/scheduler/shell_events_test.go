package scheduler

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/karmada-toolkit/karmada/internal/events"
	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
	policyv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/policy/v1alpha1"
	workv1alpha2 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha2"
	"github.com/karmada-toolkit/karmada/pkg/domain/scope"
)

func TestShell_ClusterEventsQueueOnlyWhatTheyCanAffect(t *testing.T) {
	sc := scope.NamespacedBinding()
	b := newBench(t)
	add := func(name string, placement *policyv1alpha1.Placement, placed bool) {
		obj := fill(sc.New(), sc, placement)
		obj.SetName(name)
		if placed {
			obj.GetSpec().Clusters = []workv1alpha2.TargetCluster{{Name: "m1", Replicas: 3}}
			obj.SetAnnotations(map[string]string{policyv1alpha1.AppliedPlacementAnnotation: "{}"})
		}
		b.bindings.observe(sc, obj)
	}
	only := func(n string) *policyv1alpha1.Placement {
		return &policyv1alpha1.Placement{ClusterAffinity: &policyv1alpha1.ClusterAffinity{ClusterNames: []string{n}}}
	}
	add("divided-and-placed", dividedPlacement(), true)
	add("divided-and-waiting", dividedPlacement(), false)
	add("duplicated-here", only("m1"), true)
	add("duplicated-elsewhere", only("m2"), true)
	b.observer.clusterChanged(cluster("m1", 10), true)
	if active, _, _ := b.queue.Pending(); active > 0 {
		t.Error("the initial list queued bindings")
	}
	status := cluster("m1", 10)
	status.Status.Conditions = []metav1.Condition{{Type: "Ready", Status: "False"}}
	b.observer.clusterChanged(status, false)
	if active, _, _ := b.queue.Pending(); active > 0 {
		t.Error("a change of status queued bindings")
	}
	labeled := cluster("m1", 10)
	labeled.Labels = map[string]string{"a": "b"}
	b.observer.clusterChanged(labeled, false)
	var got []string
	for {
		if active, _, _ := b.queue.Pending(); active == 0 {
			break
		}
		k, _ := b.queue.Get()
		got = append(got, k.Name)
	}
	if diff := cmp.Diff(map[string]bool{"divided-and-waiting": true, "duplicated-here": true}, setOf(got)); diff != "" {
		t.Error(diff)
	}
}

func setOf(list []string) map[string]bool {
	out := map[string]bool{}
	for _, s := range list {
		out[s] = true
	}
	return out
}

func TestShell_DeletingIsSkipped(t *testing.T) {
	for _, sc := range scope.Bindings() {
		t.Run(sc.Kind, func(t *testing.T) {
			b := newBench(t)
			obj := fill(sc.New(), sc, dividedPlacement())
			obj.SetDeletionTimestamp(&metav1.Time{Time: time.Unix(1, 0)})
			b.observer.bindingChanged(sc, nil, obj)
			b.runQueue()
			want := []string{sc.Kind + " Warning ScheduleBindingFailed: skip schedule deleting " + strings.ToLower(sc.Kind[:1]) + sc.Kind[1:] + ": " + keyOf(obj).String()}
			if diff := cmp.Diff(want, b.recorded); diff != "" || len(b.writes) > 0 {
				t.Error(diff, b.writes)
			}
		})
	}
}

// A cluster that becomes Ready, serves its APIs and loses its taint in one write
// wakes every binding that lacks replicas or has a reschedule pending, and moves
// no complete division.
func TestShell_AClusterThatBecomesUsable(t *testing.T) {
	unusable := func() *clusterv1alpha1.Cluster {
		c := cluster("m2", 0)
		c.Status = clusterv1alpha1.ClusterStatus{}
		c.Spec.Taints = []corev1.Taint{{Key: clusterv1alpha1.TaintClusterNotReady, Effect: corev1.TaintEffectNoSchedule}}
		return c
	}
	usable := func() *clusterv1alpha1.Cluster {
		c := cluster("m2", 10)
		c.Generation = 2
		return c
	}
	only := dividedPlacement()
	only.ClusterAffinity = &policyv1alpha1.ClusterAffinity{ClusterNames: []string{"m2"}}
	terms := dividedPlacement()
	for _, n := range []string{"m1", "m2"} {
		terms.ClusterAffinities = append(terms.ClusterAffinities, policyv1alpha1.ClusterAffinityTerm{AffinityName: n, ClusterAffinity: policyv1alpha1.ClusterAffinity{ClusterNames: []string{n}}})
	}
	for name, tc := range map[string]struct {
		placement *policyv1alpha1.Placement
		room      int64
		before    int // replicas
		after     int
	}{
		"it fitted in no cluster":     {only, 10, 0, 3},
		"there was not enough room":   {dividedPlacement(), 2, 0, 3},
		"no term had enough room":     {terms, 2, 0, 3},
		"every replica has its place": {dividedPlacement(), 10, 3, 3},
	} {
		t.Run(name, func(t *testing.T) {
			sc := scope.NamespacedBinding()
			b := newBench(t, fill(sc.New(), sc, tc.placement))
			b.observer.clusterChanged(cluster("m1", tc.room), true)
			b.observer.clusterChanged(unusable(), true)
			b.see(sc)
			b.runQueue()
			count := func() (sum int) {
				for _, c := range b.see(sc).GetSpec().Clusters {
					sum += int(c.Replicas)
				}
				return sum
			}
			if got := count(); got != tc.before {
				t.Fatalf("%d replicas before: %s", got, condition(b.see(sc)))
			}
			b.runQueue()
			b.observer.clusterChanged(usable(), false)
			writes := b.runQueue()
			if got := count(); got != tc.after || (tc.before == tc.after) != (len(writes) == 0) {
				t.Errorf("%d replicas after %v: %s", got, writes, condition(b.see(sc)))
			}
		})
	}
}

// A binding that is being scheduled while a cluster gets more room is scheduled
// again: it may be about to wait for what is there already.
func TestShell_RoomThatComesDuringADecision(t *testing.T) {
	sc := scope.NamespacedBinding()
	b := newBench(t, fill(sc.New(), sc, dividedPlacement()))
	b.observer.clusterChanged(cluster("m1", 2), true)
	b.see(sc)
	k, _ := b.queue.Get()
	o := b.handle(t.Context(), k)
	b.observer.clusterChanged(cluster("m1", 9), false)
	b.observer.wake()
	b.queue.Finish(k, o)
	b.runQueue()
	if got := b.see(sc).GetSpec().Clusters; len(got) != 1 {
		t.Errorf("got %v: %s", got, condition(b.see(sc)))
	}
}

func TestShell_RecordsEverySuccess(t *testing.T) {
	for _, sc := range scope.Bindings() {
		b := newBench(t, fill(sc.New(), sc, dividedPlacement()))
		b.recorder.mode = events.Contract
		b.observer.clusterChanged(cluster("m1", 10), true)
		b.see(sc)
		b.runQueue()
		message := " Normal ScheduleBindingSucceed: Binding has been scheduled successfully. Result" + sc.ResultSeparator + "{m1:3}"
		if diff := cmp.Diff([]string{"Deployment" + message, sc.Kind + message}, b.recorded); diff != "" {
			t.Error(diff)
		}
	}
}

// An explicit reschedule in the second of the last scheduling renews the time too
// where the binding is scheduled anyway.
func TestShell_RescheduleInTheSameSecond(t *testing.T) {
	sc := scope.NamespacedBinding()
	b := newBench(t, fill(sc.New(), sc, &policyv1alpha1.Placement{}))
	b.observer.clusterChanged(cluster("m1", 10), true)
	b.see(sc)
	b.runQueue()
	at := b.clock.Now()
	triggered := b.see(sc).DeepCopyObject().(workv1alpha2.Binding)
	triggered.GetSpec().RescheduleTriggeredAt = &metav1.Time{Time: at}
	triggered.SetGeneration(3)
	if err := b.client.Update(t.Context(), triggered); err != nil {
		t.Fatal(err)
	}
	b.clock.Step(2 * time.Second)
	b.see(sc)
	b.runQueue()
	if got := b.see(sc).GetStatus().LastScheduledTime; !got.Time.Equal(at.Add(2 * time.Second)) {
		t.Errorf("got %s", got)
	}
	b.clock.Step(time.Minute)
	if writes := b.runQueue(); len(writes) > 0 {
		t.Errorf("wrote again: %v", writes)
	}
}

package controllers

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

func TestRateLimiter_Bounds(t *testing.T) {
	for name, tc := range map[string]struct {
		retry       Retry
		first, last time.Duration
	}{
		"defaults":        {Retry{}, 5 * time.Millisecond, 1000 * time.Second},
		"negative values": {Retry{BaseDelay: -1, MaxDelay: -1}, 5 * time.Millisecond, 1000 * time.Second},
		"own values":      {Retry{BaseDelay: time.Second, MaxDelay: 3 * time.Second}, time.Second, 3 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			limiter := RateLimiter[string](tc.retry)
			first := limiter.When("a")
			for range 40 {
				limiter.When("a")
			}
			if last := limiter.When("a"); first != tc.first || last != tc.last {
				t.Errorf("delays are %s and %s, want %s and %s", first, last, tc.first, tc.last)
			}
		})
	}
}

func TestOptions_Workers(t *testing.T) {
	for _, tc := range []struct{ set, want int }{{0, 10}, {-1, 10}, {3, 6}, {1, 1}} {
		if got := Options(tc.set, 5, Retry{}).MaxConcurrentReconciles; got != tc.want {
			t.Errorf("%d workers set: %d, want %d", tc.set, got, tc.want)
		}
	}
}

func TestAddLowPriority(t *testing.T) {
	queue := priorityqueue.New[string](t.Name())
	defer queue.ShutDown()
	AddLowPriority(queue, "later")
	queue.Add("now")
	if key, priority, _ := queue.GetWithPriority(); key != "now" || priority != 0 {
		t.Errorf("first key is %q with priority %d", key, priority)
	}
	if key, priority, _ := queue.GetWithPriority(); key != "later" || priority != handler.LowPriority {
		t.Errorf("second key is %q with priority %d", key, priority)
	}
}

func TestAddLowPriority_QueueWithoutPriorities(t *testing.T) {
	queue := workqueue.NewTyped[string]()
	defer queue.ShutDown()
	AddLowPriority(queue, "a", "b")
	if queue.Len() != 2 {
		t.Errorf("queue holds %d keys, want 2", queue.Len())
	}
}

func TestRequests(t *testing.T) {
	got := Requests([]*corev1.Secret{{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "b"}}})
	if diff := cmp.Diff([]reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: "a", Name: "b"}}}, got); diff != "" {
		t.Error(diff)
	}
}

func TestPredicates(t *testing.T) {
	type passes struct{ Create, Update, Delete, Generic bool }
	of := func(p predicate.Predicate) passes {
		obj := &corev1.Pod{}
		return passes{
			p.Create(event.CreateEvent{Object: obj}), p.Update(event.UpdateEvent{ObjectOld: obj, ObjectNew: obj}),
			p.Delete(event.DeleteEvent{Object: obj}), p.Generic(event.GenericEvent{Object: obj}),
		}
	}
	if diff := cmp.Diff(passes{Create: true}, of(Created())); diff != "" {
		t.Errorf("Created: %s", diff)
	}
	if diff := cmp.Diff(passes{Delete: true}, of(Deleted())); diff != "" {
		t.Errorf("Deleted: %s", diff)
	}
}

func TestChanged(t *testing.T) {
	generation := func(n int64) *corev1.Pod { return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Generation: n}} }
	p := Changed(func(before, after *corev1.Pod) bool { return before.Generation != after.Generation })
	for name, passes := range map[string][2]bool{
		"created":   {p.Create(event.CreateEvent{Object: generation(1)}), true},
		"changed":   {p.Update(event.UpdateEvent{ObjectOld: generation(1), ObjectNew: generation(2)}), true},
		"unchanged": {p.Update(event.UpdateEvent{ObjectOld: generation(1), ObjectNew: generation(1)}), false},
		"deleted":   {p.Delete(event.DeleteEvent{Object: generation(1)}), false},
	} {
		if passes[0] != passes[1] {
			t.Errorf("%s: passes is %t", name, passes[0])
		}
	}
}

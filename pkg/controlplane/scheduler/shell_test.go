package scheduler

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/karmada-toolkit/karmada/internal/kube"
	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
	policyv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/policy/v1alpha1"
	workv1alpha2 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha2"
	"github.com/karmada-toolkit/karmada/pkg/domain/scope"
)

// bench is a scheduler before a fake API server that counts generations.
type bench struct {
	*testing.T
	*scheduler
	client client.Client
	clock  *clocktesting.FakeClock
	// writes and events are what was sent, in order.
	writes   []string
	recorded []string
	// refuse, if set, answers a write instead of the API server.
	refuse func(write string) error
}

// Event implements record.EventRecorder.
func (b *bench) Event(obj runtime.Object, kind, reason, message string) {
	b.recorded = append(b.recorded, fmt.Sprintf("%s %s %s: %s", obj.(*corev1.ObjectReference).Kind, kind, reason, message))
}

// Eventf implements record.EventRecorder.
func (b *bench) Eventf(runtime.Object, string, string, string, ...any) {}

// AnnotatedEventf implements record.EventRecorder.
func (b *bench) AnnotatedEventf(runtime.Object, map[string]string, string, string, string, ...any) {}

func newBench(t *testing.T, objects ...client.Object) *bench {
	t.Helper()
	b := &bench{T: t, clock: clocktesting.NewFakeClock(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))}
	inner := fake.NewClientBuilder().WithScheme(kube.NewScheme()).WithObjects(objects...).
		WithStatusSubresource(&workv1alpha2.ResourceBinding{}, &workv1alpha2.ClusterResourceBinding{}).Build()
	record := func(what string, patch client.Patch, obj client.Object) error {
		data, err := patch.Data(obj)
		if err != nil {
			return err
		}
		write := what + " " + string(data)
		b.writes = append(b.writes, write)
		if b.refuse != nil {
			return b.refuse(write)
		}
		return nil
	}
	b.client = interceptor.NewClient(inner, interceptor.Funcs{
		Patch: func(ctx context.Context, c client.WithWatch, obj client.Object, patch client.Patch, opts ...client.PatchOption) error {
			if err := record("spec", patch, obj); err != nil {
				return err
			}
			return b.patchSpec(ctx, c, obj, patch, opts...)
		},
		SubResourcePatch: func(ctx context.Context, c client.Client, sub string, obj client.Object, patch client.Patch, opts ...client.SubResourcePatchOption) error {
			if err := record(sub, patch, obj); err != nil {
				return err
			}
			return c.SubResource(sub).Patch(ctx, obj, patch, opts...)
		},
	})
	b.scheduler = b.start()
	return b
}

// start returns a scheduler that has observed nothing.
func (b *bench) start() *scheduler {
	b.Helper()
	s, err := newScheduler(NewOptions(), deps{
		client: b.client, live: b.client, events: b, clock: b.clock, metrics: newMetrics(prometheus.NewRegistry()),
	})
	if err != nil {
		b.Fatal(err)
	}
	return s
}

// patchSpec patches and, as a real server does, counts a new generation.
func (b *bench) patchSpec(ctx context.Context, c client.WithWatch, obj client.Object, patch client.Patch, opts ...client.PatchOption) error {
	before := obj.DeepCopyObject().(client.Object)
	if err := c.Get(ctx, client.ObjectKeyFromObject(obj), before); err != nil {
		return err
	}
	if err := c.Patch(ctx, obj, patch, opts...); err != nil {
		return err
	}
	if cmp.Equal(before.(workv1alpha2.Binding).GetSpec(), obj.(workv1alpha2.Binding).GetSpec()) {
		return nil
	}
	obj.SetGeneration(obj.GetGeneration() + 1)
	return c.Update(ctx, obj)
}

// see reads a binding as the informer would and notifies the scheduler.
func (b *bench) see(sc *scope.Binding) workv1alpha2.Binding {
	b.Helper()
	obj := sc.New()
	if err := b.client.Get(b.Context(), types.NamespacedName{Namespace: namespaceOf(sc), Name: "web"}, obj); err != nil {
		b.Fatal(err)
	}
	was, ok := b.bindings.get(keyOf(obj))
	if !ok {
		b.observer.bindingChanged(sc, nil, obj)
	} else {
		b.observer.bindingChanged(sc, was.Binding, obj)
	}
	return obj
}

func namespaceOf(s *scope.Binding) string {
	if s.Kind == "ResourceBinding" {
		return "ns"
	}
	return ""
}

// runQueue handles all queued bindings and returns the writes.
func (b *bench) runQueue() []string {
	b.Helper()
	b.writes = nil
	for range 20 {
		if active, _, _ := b.queue.Pending(); active == 0 {
			return b.writes
		}
		k, _ := b.queue.Get()
		b.queue.Finish(k, b.handle(b.Context(), k))
	}
	b.Fatal("the queue does not become empty")
	return nil
}

func cluster(name string, pods int64) *clusterv1alpha1.Cluster {
	c := &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: name, Generation: 1}}
	c.Status.APIEnablements = []clusterv1alpha1.APIEnablement{{GroupVersion: "apps/v1", Resources: []clusterv1alpha1.APIResource{{Name: "deployments", Kind: "Deployment"}}}}
	c.Status.ResourceSummary = &clusterv1alpha1.ResourceSummary{Allocatable: corev1.ResourceList{corev1.ResourcePods: *resource.NewQuantity(pods, resource.DecimalSI)}}
	return c
}

func fill(b workv1alpha2.Binding, sc *scope.Binding, placement *policyv1alpha1.Placement) workv1alpha2.Binding {
	b.SetName("web")
	b.SetNamespace(namespaceOf(sc))
	b.SetUID("u1")
	b.SetGeneration(1)
	b.SetLabels(map[string]string{policyv1alpha1.PropagationPolicyPermanentIDLabel: "id"})
	spec := b.GetSpec()
	spec.Resource = workv1alpha2.ObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "ns", Name: "web", UID: "t1"}
	spec.Replicas = 3
	spec.Placement = placement
	return b
}

func dividedPlacement() *policyv1alpha1.Placement {
	return &policyv1alpha1.Placement{ReplicaScheduling: &policyv1alpha1.ReplicaSchedulingStrategy{
		ReplicaSchedulingType: policyv1alpha1.ReplicaSchedulingTypeDivided, ReplicaDivisionPreference: policyv1alpha1.ReplicaDivisionPreferenceAggregated,
	}}
}

func condition(b workv1alpha2.Binding) string {
	c := meta.FindStatusCondition(b.GetStatus().Conditions, workv1alpha2.Scheduled)
	if c == nil {
		return ""
	}
	return fmt.Sprintf("%s %s %s", c.Status, c.Reason, c.Message)
}

func kinds(writes []string) string {
	out := make([]string, len(writes))
	for i, w := range writes {
		out[i], _, _ = strings.Cut(w, " ")
	}
	return strings.Join(out, " ")
}

func TestShell_OnePatchOfEachAndThenNothing(t *testing.T) {
	for name, placement := range map[string]*policyv1alpha1.Placement{"divided": dividedPlacement(), "duplicated": {}} {
		t.Run(name, func(t *testing.T) {
			for _, sc := range scope.Bindings() {
				b := newBench(t, fill(sc.New(), sc, placement))
				b.observer.clusterChanged(cluster("m1", 10), true)
				b.see(sc)
				if got := kinds(b.runQueue()); got != "spec status" {
					t.Fatalf("wrote %q: %v", got, b.writes)
				}
				after := b.see(sc)
				if condition(after) != "True Success Binding has been scheduled successfully." {
					t.Error(condition(after))
				}
				if after.GetStatus().SchedulerObservedGeneration != 2 || after.GetGeneration() != 2 {
					t.Errorf("observed %d of generation %d", after.GetStatus().SchedulerObservedGeneration, after.GetGeneration())
				}
				if diff := cmp.Diff([]workv1alpha2.TargetCluster{{Name: "m1", Replicas: 3}}, after.GetSpec().Clusters); diff != "" {
					t.Error(diff)
				}
				applied, _ := json.Marshal(placement)
				if got := after.GetAnnotations()[policyv1alpha1.AppliedPlacementAnnotation]; got != string(applied) {
					t.Errorf("annotation %s", got)
				}
				want := []string{"Deployment Normal ScheduleBindingSucceed: Binding has been scheduled successfully. Result" + sc.ResultSeparator + "{m1:3}"}
				if diff := cmp.Diff(want, b.recorded); diff != "" {
					t.Error(diff)
				}
				b.runQueue()
				if b.recorded = nil; len(b.writes) > 0 {
					t.Errorf("nothing changed, still wrote %v", b.writes)
				}
				b.scheduler = b.start()
				b.observer.clusterChanged(cluster("m1", 10), true)
				b.see(sc)
				b.runQueue()
				if len(b.writes)+len(b.recorded) > 0 {
					t.Errorf("after a restart nothing changed, still wrote %v %v", b.writes, b.recorded)
				}
			}
		})
	}
}

// Whatever ends the scheduler between its two writes, or makes the second one fail, the status follows.
func TestShell_TheStatusFollowsTheTargets(t *testing.T) {
	terms := &policyv1alpha1.Placement{
		ReplicaScheduling: dividedPlacement().ReplicaScheduling,
		ClusterAffinities: []policyv1alpha1.ClusterAffinityTerm{
			{AffinityName: "none", ClusterAffinity: policyv1alpha1.ClusterAffinity{ClusterNames: []string{"m0"}}},
			{AffinityName: "some", ClusterAffinity: policyv1alpha1.ClusterAffinity{ClusterNames: []string{"m1"}}},
		},
	}
	for name, placement := range map[string]*policyv1alpha1.Placement{"divided": dividedPlacement(), "duplicated": {}, "terms": terms} {
		for _, restart := range []bool{true, false} {
			for _, sc := range scope.Bindings() {
				t.Run(fmt.Sprintf("%s/restart=%t/%s", name, restart, sc.Kind), func(t *testing.T) {
					b := newBench(t, fill(sc.New(), sc, placement))
					b.observer.clusterChanged(cluster("m1", 10), true)
					b.see(sc)
					b.refuse = func(write string) error {
						if strings.HasPrefix(write, "status") {
							return errors.New("killed")
						}
						return nil
					}
					k, _ := b.queue.Get()
					b.queue.Finish(k, b.handle(t.Context(), k))
					if b.refuse = nil; kinds(b.writes) != "spec status" {
						t.Fatalf("wrote %v", b.writes)
					}
					if restart {
						b.scheduler = b.start()
						b.observer.clusterChanged(cluster("m1", 10), true)
					} else {
						b.clock.Step(longestBackoff)
						b.queue.Sweep()
					}
					b.see(sc)
					if got := kinds(b.runQueue()); got != "status" {
						t.Errorf("wrote %q, want the status", got)
					}
					after := b.see(sc)
					status := after.GetStatus()
					if condition(after) != "True Success Binding has been scheduled successfully." || status.LastScheduledTime == nil ||
						status.SchedulerObservedGeneration != after.GetGeneration() || (name == "terms") != (status.SchedulerObservedAffinityName == "some") {
						t.Errorf("status %+v", status)
					}
					if len(b.recorded) == 0 {
						t.Error("no event")
					}
					if b.see(sc); len(b.runQueue()) > 0 {
						t.Errorf("nothing changed, still wrote %v", b.writes)
					}
				})
			}
		}
	}
}

// What could not be scheduled and is taken back leaves no failure.
func TestShell_AFailureEndsWithItsCause(t *testing.T) {
	sc := scope.NamespacedBinding()
	b := newBench(t, fill(sc.New(), sc, dividedPlacement()))
	b.observer.clusterChanged(cluster("m1", 10), true)
	b.see(sc)
	b.runQueue()
	for _, step := range []struct {
		replicas int32
		want     string
	}{{1000, "False"}, {3, "True"}} {
		changed := b.see(sc).DeepCopyObject().(workv1alpha2.Binding)
		changed.GetSpec().Replicas = step.replicas
		changed.SetGeneration(changed.GetGeneration() + 1)
		b.update(changed)
		b.see(sc)
		b.runQueue()
		if got := condition(b.see(sc)); !strings.HasPrefix(got, step.want) {
			t.Errorf("with %d replicas: %s, want %s", step.replicas, got, step.want)
		}
	}
}

func TestShell_NoClusterFitsClearsTheTargets(t *testing.T) {
	for _, sc := range scope.Bindings() {
		t.Run(sc.Kind, func(t *testing.T) {
			b := newBench(t, fill(sc.New(), sc, dividedPlacement()))
			b.observer.clusterChanged(cluster("m1", 10), true)
			b.see(sc)
			b.runQueue()
			tainted := cluster("m1", 10)
			tainted.DeletionTimestamp = &metav1.Time{Time: b.clock.Now()}
			b.observer.clusterChanged(tainted, false)
			b.recorded = nil
			b.runQueue()
			after := b.see(sc)
			if len(after.GetSpec().Clusters) > 0 || condition(after) != "False NoClusterFit 0/1 clusters are available: no cluster exists." {
				t.Errorf("%v %s", after.GetSpec().Clusters, condition(after))
			}
			if len(b.recorded) != 2 || !strings.HasPrefix(b.recorded[0], sc.Kind+" Warning ScheduleBindingFailed: 0/1") || !strings.HasPrefix(b.recorded[1], "Deployment Warning") {
				t.Errorf("recorded %v", b.recorded)
			}
			if writes := b.runQueue(); len(writes) > 0 {
				t.Errorf("wrote %v", writes)
			}
			if _, backoff, parked := b.queue.Pending(); backoff+parked > 0 {
				t.Error("waits for a retry")
			}
			b.observer.clusterChanged(cluster("m1", 10), false)
			b.runQueue()
			if after = b.see(sc); len(after.GetSpec().Clusters) != 1 {
				t.Errorf("not scheduled again: %s", condition(after))
			}
		})
	}
}

func TestShell_NotEnoughRoomWaitsForRoom(t *testing.T) {
	sc := scope.NamespacedBinding()
	b := newBench(t, fill(sc.New(), sc, dividedPlacement()))
	b.observer.clusterChanged(cluster("m1", 2), true)
	b.see(sc)
	if got := kinds(b.runQueue()); got != "status" {
		t.Errorf("wrote %q", got)
	}
	want := "False Unschedulable failed to assign replicas: failed to scale up: Clusters available replicas 2 are not enough to schedule. " +
		`Room for more: m1 2 (pods); see "karmadactl capacity --for deployment/web -n ns".`
	if got := condition(b.see(sc)); got != want {
		t.Error(got)
	}
	if _, backoff, parked := b.queue.Pending(); backoff != 0 || parked != 1 {
		t.Fatalf("%d in backoff, %d parked", backoff, parked)
	}
	b.observer.clusterChanged(cluster("m1", 1), false)
	b.observer.wake()
	if active, _, _ := b.queue.Pending(); active > 0 {
		t.Error("less room woke it")
	}
	b.observer.clusterChanged(cluster("m1", 9), false)
	b.observer.wake()
	b.runQueue()
	if got := b.see(sc).GetSpec().Clusters; len(got) != 1 || got[0].Replicas != 3 {
		t.Errorf("got %v", got)
	}
}

func TestShell_ConflictDecidesAgainOnWhatIsThere(t *testing.T) {
	sc := scope.NamespacedBinding()
	b := newBench(t, fill(sc.New(), sc, dividedPlacement()))
	b.observer.clusterChanged(cluster("m1", 10), true)
	stale := b.see(sc)
	newer := stale.DeepCopyObject().(workv1alpha2.Binding)
	newer.GetSpec().Replicas = 5
	newer.SetGeneration(2)
	if err := b.client.Update(t.Context(), newer); err != nil {
		t.Fatal(err)
	}
	if got := kinds(b.runQueue()); got != "spec spec status" {
		t.Errorf("wrote %q", got)
	}
	after := b.see(sc)
	if got := after.GetSpec().Clusters; len(got) != 1 || got[0].Replicas != 5 || after.GetStatus().SchedulerObservedGeneration != 3 {
		t.Errorf("got %v at %d", got, after.GetStatus().SchedulerObservedGeneration)
	}
}

func TestShell_StatusConflictKeepsTheConditionsOfOthers(t *testing.T) {
	sc := scope.NamespacedBinding()
	b := newBench(t, fill(sc.New(), sc, dividedPlacement()))
	b.observer.clusterChanged(cluster("m1", 10), true)
	b.see(sc)
	once := true
	b.refuse = func(write string) error {
		if once && strings.HasPrefix(write, "status") {
			once = false
			other := sc.New()
			if err := b.client.Get(t.Context(), types.NamespacedName{Namespace: "ns", Name: "web"}, other); err != nil {
				t.Fatal(err)
			}
			other.GetStatus().Conditions = append(other.GetStatus().Conditions, metav1.Condition{Type: workv1alpha2.FullyApplied, Status: "True", Reason: "x", LastTransitionTime: metav1.Now()})
			if err := b.client.Status().Update(t.Context(), other); err != nil {
				t.Fatal(err)
			}
		}
		return nil
	}
	if got := kinds(b.runQueue()); got != "spec status status" {
		t.Errorf("wrote %q", got)
	}
	after := b.see(sc)
	if len(after.GetStatus().Conditions) != 2 || !strings.HasPrefix(condition(after), "True Success") {
		t.Errorf("%v", after.GetStatus().Conditions)
	}
}

func TestShell_QuotaExceeded(t *testing.T) {
	sc := scope.NamespacedBinding()
	b := newBench(t, fill(sc.New(), sc, dividedPlacement()))
	b.observer.clusterChanged(cluster("m1", 10), true)
	b.see(sc)
	b.refuse = func(write string) error {
		if strings.HasPrefix(write, "spec") {
			return &apierrors.StatusError{ErrStatus: metav1.Status{Code: 403, Reason: "QuotaExceeded", Message: "quota exceeded for cpu"}}
		}
		return nil
	}
	b.runQueue()
	after := b.see(sc)
	if condition(after) != "False QuotaExceeded quota exceeded for cpu" || after.GetStatus().LastScheduledTime != nil {
		t.Error(condition(after))
	}
	if _, backoff, _ := b.queue.Pending(); backoff != 1 {
		t.Error("it is not tried again")
	}
}

// Where quotas are enforced, a binding that one refused waits for the quota and
// not for a timer.
func TestShell_QuotaThatLeavesMoreWakes(t *testing.T) {
	sc := scope.NamespacedBinding()
	b := newBench(t, fill(sc.New(), sc, dividedPlacement()))
	b.committer.quotas = true
	b.observer.clusterChanged(cluster("m1", 10), true)
	namespace := b.see(sc).GetNamespace()
	denied := true
	b.refuse = func(write string) error {
		if denied && strings.HasPrefix(write, "spec") {
			return &apierrors.StatusError{ErrStatus: metav1.Status{Code: 403, Reason: "QuotaExceeded", Message: "quota exceeded for cpu"}}
		}
		return nil
	}
	b.runQueue()
	if active, backoff, parked := b.queue.Pending(); active != 0 || backoff != 0 || parked != 1 {
		t.Fatalf("%d active, %d in backoff, %d parked", active, backoff, parked)
	}
	if c := condition(b.see(sc)); c != "False QuotaExceeded quota exceeded for cpu" {
		t.Error(c)
	}
	b.runQueue()
	quota := func(namespace, limit, used string) *policyv1alpha1.FederatedResourceQuota {
		q := &policyv1alpha1.FederatedResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "q"}}
		q.Spec.Overall = corev1.ResourceList{"cpu": resource.MustParse(limit)}
		q.Status.OverallUsed = corev1.ResourceList{"cpu": resource.MustParse(used)}
		return q
	}
	handler := b.observer.quotaHandler()
	handler.OnUpdate(quota(namespace, "5", "4"), quota(namespace, "5", "5"))
	handler.OnUpdate(quota("other", "5", "5"), quota("other", "9", "5"))
	if _, _, parked := b.queue.Pending(); parked != 1 {
		t.Error("it was woken for nothing")
	}
	denied = false
	handler.OnUpdate(quota(namespace, "5", "5"), quota(namespace, "5", "3"))
	b.runQueue()
	if c := condition(b.see(sc)); !strings.HasPrefix(c, "True Success") {
		t.Error(c)
	}
}

func TestShell_TermsFallBack(t *testing.T) {
	sc := scope.NamespacedBinding()
	placement := dividedPlacement()
	for _, n := range []string{"m1", "m2"} {
		placement.ClusterAffinities = append(placement.ClusterAffinities, policyv1alpha1.ClusterAffinityTerm{AffinityName: n, ClusterAffinity: policyv1alpha1.ClusterAffinity{ClusterNames: []string{n}}})
	}
	b := newBench(t, fill(sc.New(), sc, placement))
	b.observer.clusterChanged(cluster("m1", 1), true)
	b.observer.clusterChanged(cluster("m2", 9), true)
	b.see(sc)
	b.runQueue()
	after := b.see(sc)
	if after.GetStatus().SchedulerObservedAffinityName != "m2" {
		t.Errorf("observed %q", after.GetStatus().SchedulerObservedAffinityName)
	}
	want := "failed to schedule ResourceBinding(ns/web) with clusterAffiliates index(0): failed to assign replicas: failed to scale up: Clusters available replicas 1 are not enough to schedule."
	if len(b.recorded) != 3 || !strings.HasSuffix(b.recorded[0], want) {
		t.Errorf("recorded %v", b.recorded)
	}
	gone := cluster("m2", 9)
	gone.DeletionTimestamp = &metav1.Time{Time: b.clock.Now()}
	b.observer.clusterChanged(gone, false)
	b.runQueue()
	b.observer.push(sc, b.see(sc), eventCluster)
	writes := b.runQueue()
	after = b.see(sc)
	if len(writes) > 0 || after.GetStatus().SchedulerObservedAffinityName != "m2" || !strings.HasPrefix(condition(after), `False NoClusterFit In affinity group "m2": 0/2 `) {
		t.Errorf("wrote %v, observed %q, %s", writes, after.GetStatus().SchedulerObservedAffinityName, condition(after))
	}
	roomier := cluster("m1", 9)
	roomier.Generation = 2
	b.observer.clusterChanged(roomier, false)
	b.runQueue()
	if after = b.see(sc); after.GetStatus().SchedulerObservedAffinityName != "m1" || !after.GetSpec().TargetContains("m1") {
		t.Errorf("observed %q, %v", after.GetStatus().SchedulerObservedAffinityName, after.GetSpec().Clusters)
	}
}

func TestShell_RescheduleRenewsTheTime(t *testing.T) {
	sc := scope.NamespacedBinding()
	b := newBench(t, fill(sc.New(), sc, dividedPlacement()))
	b.observer.clusterChanged(cluster("m1", 10), true)
	b.see(sc)
	b.runQueue()
	b.clock.Step(time.Hour)
	triggered := b.see(sc).DeepCopyObject().(workv1alpha2.Binding)
	triggered.GetSpec().RescheduleTriggeredAt = &metav1.Time{Time: b.clock.Now()}
	triggered.SetGeneration(3)
	if err := b.client.Update(t.Context(), triggered); err != nil {
		t.Fatal(err)
	}
	b.see(sc)
	if got := kinds(b.runQueue()); got != "status" {
		t.Errorf("wrote %q", got)
	}
	after := b.see(sc).GetStatus()
	if !after.LastScheduledTime.Time.Equal(b.clock.Now()) || after.SchedulerObservedGeneration != 3 {
		t.Errorf("%+v", after)
	}
}

func TestShell_IgnoresWhatIsNotItsOwn(t *testing.T) {
	for name, change := range map[string]func(workv1alpha2.Binding){
		"another scheduler": func(b workv1alpha2.Binding) { b.GetSpec().SchedulerName = "other" },
		"suspended": func(b workv1alpha2.Binding) {
			yes := true
			b.GetSpec().Suspension = &workv1alpha2.Suspension{Scheduling: &yes}
		},
		"no policy":            func(b workv1alpha2.Binding) { b.SetLabels(nil) },
		"status changed alone": nil,
	} {
		t.Run(name, func(t *testing.T) {
			sc := scope.NamespacedBinding()
			b := newBench(t)
			obj := fill(sc.New(), sc, dividedPlacement())
			var was workv1alpha2.Binding
			if change == nil {
				was = obj.DeepCopyObject().(workv1alpha2.Binding)
				obj.GetStatus().LastScheduledTime = &metav1.Time{Time: time.Unix(1, 0)}
			} else {
				change(obj)
			}
			b.observer.bindingChanged(sc, was, obj)
			if active, _, _ := b.queue.Pending(); active > 0 {
				t.Error("queued")
			}
		})
	}
}

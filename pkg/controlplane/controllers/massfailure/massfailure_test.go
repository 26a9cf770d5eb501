package massfailure

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/record"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/karmada-toolkit/karmada/internal/events"
	"github.com/karmada-toolkit/karmada/internal/kube"
	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/env"
	"github.com/karmada-toolkit/karmada/pkg/domain/eviction"
)

var start = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// bench is a Guard over a store of clusters.
type bench struct {
	*testing.T
	*publisher
	store    client.Client
	clock    *clocktesting.FakeClock
	recorder *record.FakeRecorder
	writes   []string
	fail     error // of reads of the ConfigMap
}

func newBench(t *testing.T, threshold float64, clusters ...string) *bench {
	t.Helper()
	b := &bench{T: t, clock: clocktesting.NewFakeClock(start), recorder: record.NewFakeRecorder(100)}
	builder := fake.NewClientBuilder().WithScheme(kube.NewScheme()).WithStatusSubresource(&clusterv1alpha1.Cluster{})
	for _, name := range clusters {
		c := &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID("u-" + name)}}
		c.Spec.SyncMode, c.Spec.SecretRef = clusterv1alpha1.Push, &clusterv1alpha1.LocalSecretReference{Name: name}
		c.Status.KubernetesVersion = "v1"
		c.Status.Conditions = []metav1.Condition{{Type: "Ready", Status: metav1.ConditionTrue, LastTransitionTime: metav1.NewTime(start.Add(-time.Hour))}}
		builder.WithObjects(c)
	}
	record := func(verb string, obj client.Object) {
		b.writes = append(b.writes, verb+" "+obj.GetName())
	}
	b.store = builder.WithInterceptorFuncs(interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
			if _, ok := obj.(*corev1.ConfigMap); ok && b.fail != nil {
				return b.fail
			}
			return c.Get(ctx, key, obj, opts...)
		},
		Create: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.CreateOption) error {
			record("create", obj)
			return c.Create(ctx, obj, opts...)
		},
		Update: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.UpdateOption) error {
			record("update", obj)
			return c.Update(ctx, obj, opts...)
		},
		SubResourcePatch: func(ctx context.Context, c client.Client, sub string, obj client.Object, patch client.Patch, opts ...client.SubResourcePatchOption) error {
			record("status", obj)
			return c.SubResource(sub).Patch(ctx, obj, patch, opts...)
		},
	}).Build()
	b.restart(threshold)
	return b
}

// restart replaces the Guard, as another process does.
func (b *bench) restart(threshold float64) {
	b.publisher = &publisher{Guard: New(&env.Env{Client: b.store, Live: b.store, Clock: b.clock, Metrics: prometheus.NewRegistry()}, events.New(b.recorder), Options{Threshold: threshold})}
	b.writes = nil
}

func (b *bench) must(err error) {
	b.Helper()
	if err != nil {
		b.Fatal(err)
	}
}

func (b *bench) cluster(name string) *clusterv1alpha1.Cluster {
	b.Helper()
	c := &clusterv1alpha1.Cluster{}
	b.must(b.store.Get(b.Context(), client.ObjectKey{Name: name}, c))
	return c
}

// set changes the Ready condition of clusters.
func (b *bench) set(status metav1.ConditionStatus, clusters ...string) {
	b.Helper()
	for _, name := range clusters {
		c := b.cluster(name)
		meta.SetStatusCondition(&c.Status.Conditions, metav1.Condition{Type: "Ready", Status: status, Reason: "R", LastTransitionTime: metav1.NewTime(b.clock.Now())})
		b.must(b.store.Status().Update(b.Context(), c))
	}
}

// observe records probes of clusters now.
func (b *bench) observe(healthy bool, clusters ...string) {
	for _, name := range clusters {
		b.Observe(b.cluster(name), healthy, b.clock.Now())
	}
}

func (b *bench) holds(want bool, clusters ...string) {
	b.Helper()
	for _, name := range clusters {
		if got, err := b.Hold(b.Context(), name); err != nil || got != want {
			b.Errorf("%s at %s: held %t, want %t: %v", name, b.clock.Since(start), got, want, err)
		}
	}
}

// stored returns the data of the ConfigMap.
func (b *bench) stored() map[string]string {
	b.Helper()
	out := &corev1.ConfigMap{}
	b.must(client.IgnoreNotFound(b.store.Get(b.Context(), stateKey(), out)))
	return out.Data
}

func (b *bench) recorded() (out []string) {
	for len(b.recorder.Events) > 0 {
		out = append(out, strings.Join(strings.Fields(<-b.recorder.Events)[:2], " "))
	}
	return out
}

// fail lets all members of a federation of three fail: m1 is not Ready before m2 and m3 are.
func failAll(b *bench) {
	b.Helper()
	b.must(b.publish(b.Context()))
	b.observe(true, "m1", "m2", "m3")
	b.clock.Step(time.Second)
	b.observe(false, "m1", "m2", "m3")
	b.clock.Step(30 * time.Second)
	b.set(metav1.ConditionFalse, "m1")
}

func TestGuard_MassFailure(t *testing.T) {
	b := newBench(t, 0.5, "m1", "m2", "m3")
	failAll(b)
	b.holds(true, "m1")
	b.holds(false, "m2", "m3") // Ready: only a taint by hand could evict them
	b.must(b.publish(t.Context()))
	b.set(metav1.ConditionFalse, "m2", "m3")
	b.must(b.publish(t.Context()))
	b.holds(true, "m1", "m2", "m3")
	for _, name := range []string{"m1", "m2", "m3"} {
		c := meta.FindStatusCondition(b.cluster(name).Status.Conditions, clusterv1alpha1.ClusterConditionEvictionsStopped)
		if c == nil || c.Status != metav1.ConditionTrue || c.Reason != "MassFailure" || !strings.Contains(c.Message, "3 of 3 clusters failed within 1m0s") {
			t.Errorf("%s: %+v", name, c)
		}
	}
	if diff := cmp.Diff([]string{"Warning EvictionsStopped", "Warning EvictionsStopped", "Warning EvictionsStopped"}, b.recorded()); diff != "" {
		t.Error(diff)
	}
	if testutil.ToFloat64(b.metrics.stopped) != 1 || testutil.ToFloat64(b.metrics.held) != 3 {
		t.Error("the metrics are wrong")
	}
	b.writes = nil
	b.must(b.publish(t.Context()))
	if len(b.writes) != 0 {
		t.Errorf("nothing changed, written: %v", b.writes)
	}
	b.clock.Step(time.Minute)
	b.observe(true, "m1", "m2", "m3")
	b.set(metav1.ConditionTrue, "m1", "m2", "m3")
	b.holds(true, "m1") // the taint must be removed first
	b.clock.Step(eviction.RecoveryGrace)
	b.must(b.publish(t.Context()))
	b.holds(false, "m1", "m2", "m3")
	if got := b.stored()[eviction.StateKey]; got != "" || meta.IsStatusConditionTrue(b.cluster("m1").Status.Conditions, clusterv1alpha1.ClusterConditionEvictionsStopped) {
		t.Errorf("it did not end: %s", got)
	}
	if diff := cmp.Diff([]string{"Normal EvictionsResumed", "Normal EvictionsResumed", "Normal EvictionsResumed"}, b.recorded()); diff != "" {
		t.Error(diff)
	}
}

func TestGuard_Restart(t *testing.T) {
	b := newBench(t, 0.5, "m1", "m2", "m3")
	failAll(b)
	b.set(metav1.ConditionFalse, "m2", "m3")
	b.must(b.publish(t.Context()))
	b.clock.Step(10 * time.Minute)
	b.restart(0.5)
	b.holds(true, "m1", "m2", "m3") // the state was not read
	b.fail = errors.New("down")
	if err := b.publish(t.Context()); !errors.Is(err, b.fail) {
		t.Fatal(err)
	}
	b.holds(true, "m1", "m2", "m3")
	b.fail = nil
	b.must(b.publish(t.Context()))
	b.holds(true, "m1", "m2", "m3")
	if len(b.writes) != 0 {
		t.Errorf("nothing changed, written: %v", b.writes)
	}
	b.restart(0) // turned off
	b.must(b.publish(t.Context()))
	b.holds(false, "m1", "m2", "m3")
	if got := b.stored()[eviction.StateKey]; got != "" {
		t.Errorf("stored: %s", got)
	}
}

func TestGuard_AStartWhileAllAreDownBeforeAnythingIsKnown(t *testing.T) {
	b := newBench(t, 0.5, "m1", "m2", "m3")
	b.set(metav1.ConditionFalse, "m1") // long before the others; it is known to be alone only when they were probed
	b.clock.Step(time.Hour)
	b.must(b.publish(t.Context()))
	b.holds(true, "m1")
	b.observe(true, "m2")
	b.holds(true, "m1")
	b.observe(true, "m3")
	b.holds(false, "m1")
}

func TestGuard_Resume(t *testing.T) {
	b := newBench(t, 0.5, "m1", "m2", "m3")
	failAll(b)
	b.set(metav1.ConditionFalse, "m2")
	b.must(b.publish(t.Context()))
	request := func(value string) {
		t.Helper()
		cm := &corev1.ConfigMap{}
		b.must(b.store.Get(t.Context(), stateKey(), cm))
		cm.Data[eviction.ResumeKey] = value
		b.must(b.store.Update(t.Context(), cm))
		b.must(b.publish(t.Context()))
		if _, there := b.stored()[eviction.ResumeKey]; there {
			t.Error("the request remains")
		}
	}
	request("2025-01-01T00:00:00Z") // of an earlier mass failure
	b.holds(true, "m1", "m2")
	state, err := eviction.DecodeMassFailure(b.stored())
	b.must(err)
	request(eviction.ResumeValue(state.Since))
	b.holds(false, "m1", "m2")
	b.restart(0.5)
	b.must(b.publish(t.Context()))
	b.holds(false, "m1", "m2")
	if testutil.ToFloat64(b.metrics.stopped) != 0 {
		t.Error("the metric is wrong")
	}
}

func TestGuard_WhatDoesNotCount(t *testing.T) {
	b := newBench(t, 0.5, "m1", "m2", "m3")
	b.must(b.publish(t.Context()))
	joining := &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "n"}}
	joining.Status.Conditions = []metav1.Condition{{Type: "Ready", Status: metav1.ConditionFalse, LastTransitionTime: metav1.NewTime(start)}}
	b.must(b.store.Create(t.Context(), joining)) // was never Ready
	b.observe(true, "m1", "m2", "m3")
	b.clock.Step(time.Second)
	b.observe(false, "m1")
	b.clock.Step(30 * time.Second)
	b.observe(true, "m2", "m3")
	b.set(metav1.ConditionFalse, "m1")
	b.must(b.publish(t.Context()))
	b.holds(false, "m1")
	if len(b.writes) != 1 { // the create of this test
		t.Errorf("written: %v", b.writes)
	}
}

func TestGuard_AStateThatIsNotReadable(t *testing.T) {
	b := newBench(t, 0.5, "m1", "m2", "m3")
	b.must(b.store.Create(t.Context(), &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: stateKey().Namespace, Name: stateKey().Name}, Data: map[string]string{eviction.StateKey: "{"},
	}))
	failAll(b)
	b.must(b.publish(t.Context()))
	b.holds(true, "m1")
	if state, err := eviction.DecodeMassFailure(b.stored()); err != nil || !state.Stopped() {
		t.Errorf("%+v %v", state, err)
	}
}

func TestGuard_AForgedState(t *testing.T) {
	b := newBench(t, 0.5, "m1", "m2", "m3")
	b.must(b.store.Create(t.Context(), &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: stateKey().Namespace, Name: stateKey().Name},
		Data:       map[string]string{eviction.StateKey: `{"since":"2999-01-01T00:00:00Z","failed":3,"total":3,"clusters":["m1","m2","m3"],"belowSince":"2999-01-01T00:00:00Z"}`},
	}))
	b.must(b.publish(t.Context()))
	b.observe(true, "m2", "m3")
	b.set(metav1.ConditionFalse, "m1")
	b.must(b.publish(t.Context()))
	b.holds(true, "m1")
	b.clock.Step(eviction.MassFailureWindow)
	b.holds(false, "m1")
	b.must(b.publish(t.Context()))
	if got := b.stored()[eviction.StateKey]; got != "" {
		t.Errorf("stored: %s", got)
	}
}

func TestPublish_ForgetsDeletedClusters(t *testing.T) {
	b := newBench(t, 0.5, "m1", "m2", "m3")
	for _, name := range []string{"m1", "m2", "m3"} {
		b.Observe(b.cluster(name), false, start)
	}
	if err := b.publish(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := b.store.Delete(t.Context(), &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "m2"}}); err != nil {
		t.Fatal(err)
	}
	if err := b.publish(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := slices.Sorted(maps.Keys(b.health)); !slices.Equal(got, []types.UID{"u-m1", "u-m3"}) {
		t.Errorf("known: %v", got)
	}
}

// A cluster that was deleted and joined again under its name does not inherit the failures of the earlier one.
func TestGuard_AClusterJoinedAgainStartsWithoutHealth(t *testing.T) {
	b := newBench(t, 0.5, "m1", "m2", "m3")
	b.observe(false, "m1", "m2", "m3")
	again := b.cluster("m1").DeepCopy()
	again.UID = "another"
	if h, ok := b.healthOf(again); !ok || !h.FailingSince.IsZero() || !h.Confirmed.IsZero() {
		t.Errorf("inherited %+v", h)
	}
	if h, ok := b.healthOf(b.cluster("m1")); !ok || h.FailingSince.IsZero() {
		t.Errorf("lost %+v", h)
	}
}

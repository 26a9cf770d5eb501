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
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/karmada-toolkit/karmada/internal/build"
	"github.com/karmada-toolkit/karmada/internal/events"
	"github.com/karmada-toolkit/karmada/internal/testenv/memory"
	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/env"
	"github.com/karmada-toolkit/karmada/pkg/domain/eviction"
)

var start = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// bench is a Guard over a store of clusters.
type bench struct {
	*memory.Env
	*publisher
}

func newBench(t *testing.T, threshold float64, clusters ...string) *bench {
	t.Helper()
	var objs []client.Object
	for _, name := range clusters {
		c := build.Cluster(name)
		c.UID = types.UID("u-" + name)
		c.Spec.SyncMode, c.Spec.SecretRef = clusterv1alpha1.Push, &clusterv1alpha1.LocalSecretReference{Name: name}
		c.Status.KubernetesVersion = "v1"
		c.Status.Conditions = []metav1.Condition{{Type: "Ready", Status: metav1.ConditionTrue, LastTransitionTime: metav1.NewTime(start.Add(-time.Hour))}}
		objs = append(objs, c)
	}
	b := &bench{Env: memory.New(t, objs...)}
	b.restart(threshold)
	return b
}

// restart replaces the Guard, as another process does.
func (b *bench) restart(threshold float64) {
	b.publisher = &publisher{Guard: New(&env.Env{Client: b.Client, Live: b.Client, Clock: b.Clock, Metrics: prometheus.NewRegistry()}, events.New(b.Recorder), Options{Threshold: threshold})}
	b.Writes()
}

func (b *bench) mustPublish() {
	b.Helper()
	b.Must(b.publish(b.Context()))
}

func (b *bench) cluster(name string) *clusterv1alpha1.Cluster {
	b.Helper()
	return memory.Get[*clusterv1alpha1.Cluster](b.Env, memory.Key("", name))
}

// set changes the Ready condition of clusters.
func (b *bench) set(status metav1.ConditionStatus, clusters ...string) {
	b.Helper()
	for _, name := range clusters {
		memory.Change(b.Env, memory.Key("", name), func(c *clusterv1alpha1.Cluster) {
			meta.SetStatusCondition(&c.Status.Conditions, metav1.Condition{Type: "Ready", Status: status, Reason: "R", LastTransitionTime: metav1.NewTime(b.Clock.Now())})
		})
	}
}

// observe records probes of clusters now.
func (b *bench) observe(healthy bool, clusters ...string) {
	for _, name := range clusters {
		b.Observe(b.cluster(name), healthy, b.Clock.Now())
	}
}

func (b *bench) holds(want bool, clusters ...string) {
	b.Helper()
	for _, name := range clusters {
		if got, err := b.Hold(b.Context(), name); err != nil || got != want {
			b.Errorf("%s at %s: held %t, want %t: %v", name, b.Clock.Since(start), got, want, err)
		}
	}
}

// stored returns the data of the ConfigMap.
func (b *bench) stored() map[string]string {
	b.Helper()
	out := &corev1.ConfigMap{}
	b.Must(client.IgnoreNotFound(b.Stored.Get(b.Context(), stateKey(), out)))
	return out.Data
}

func (b *bench) recorded() (out []string) {
	for _, event := range b.Events() {
		out = append(out, strings.Join(strings.Fields(event)[:2], " "))
	}
	return out
}

// fail lets all members of a federation of three fail: m1 is not Ready before m2 and m3 are.
func failAll(b *bench) {
	b.Helper()
	b.mustPublish()
	b.observe(true, "m1", "m2", "m3")
	b.Clock.Step(time.Second)
	b.observe(false, "m1", "m2", "m3")
	b.Clock.Step(30 * time.Second)
	b.set(metav1.ConditionFalse, "m1")
}

func TestGuard_MassFailure(t *testing.T) {
	b := newBench(t, 0.5, "m1", "m2", "m3")
	failAll(b)
	b.holds(true, "m1")
	b.holds(false, "m2", "m3") // Ready: only a taint by hand could evict them
	b.mustPublish()
	b.set(metav1.ConditionFalse, "m2", "m3")
	b.mustPublish()
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
	b.Stable(b.mustPublish)
	b.Clock.Step(time.Minute)
	b.observe(true, "m1", "m2", "m3")
	b.set(metav1.ConditionTrue, "m1", "m2", "m3")
	b.holds(true, "m1") // the taint must be removed first
	b.Clock.Step(eviction.RecoveryGrace)
	b.mustPublish()
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
	b.mustPublish()
	b.Clock.Step(10 * time.Minute)
	b.restart(0.5)
	b.holds(true, "m1", "m2", "m3") // the state was not read
	down := errors.New("down")
	b.live = interceptor.NewClient(b.Client, interceptor.Funcs{
		Get: func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
			return down
		},
	})
	if err := b.publish(t.Context()); !errors.Is(err, down) {
		t.Fatal(err)
	}
	b.holds(true, "m1", "m2", "m3")
	b.live = b.Client
	b.mustPublish()
	b.holds(true, "m1", "m2", "m3")
	if got := b.Writes(); len(got) != 0 {
		t.Errorf("nothing changed, written: %v", got)
	}
	b.restart(0) // turned off
	b.mustPublish()
	b.holds(false, "m1", "m2", "m3")
	if got := b.stored()[eviction.StateKey]; got != "" {
		t.Errorf("stored: %s", got)
	}
}

func TestGuard_AStartWhileAllAreDownBeforeAnythingIsKnown(t *testing.T) {
	b := newBench(t, 0.5, "m1", "m2", "m3")
	b.set(metav1.ConditionFalse, "m1") // long before the others; it is known to be alone only when they were probed
	b.Clock.Step(time.Hour)
	b.mustPublish()
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
	b.mustPublish()
	request := func(value string) {
		t.Helper()
		memory.Change(b.Env, stateKey(), func(cm *corev1.ConfigMap) { cm.Data[eviction.ResumeKey] = value })
		b.mustPublish()
		if _, there := b.stored()[eviction.ResumeKey]; there {
			t.Error("the request remains")
		}
	}
	request("2025-01-01T00:00:00Z") // of an earlier mass failure
	b.holds(true, "m1", "m2")
	state, err := eviction.DecodeMassFailure(b.stored())
	b.Must(err)
	request(eviction.ResumeValue(state.Since))
	b.holds(false, "m1", "m2")
	b.restart(0.5)
	b.mustPublish()
	b.holds(false, "m1", "m2")
	if testutil.ToFloat64(b.metrics.stopped) != 0 {
		t.Error("the metric is wrong")
	}
}

func TestGuard_WhatDoesNotCount(t *testing.T) {
	b := newBench(t, 0.5, "m1", "m2", "m3")
	b.mustPublish()
	joining := &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "n"}}
	joining.Status.Conditions = []metav1.Condition{{Type: "Ready", Status: metav1.ConditionFalse, LastTransitionTime: metav1.NewTime(start)}}
	b.Must(b.Stored.Create(t.Context(), joining)) // was never Ready
	b.observe(true, "m1", "m2", "m3")
	b.Clock.Step(time.Second)
	b.observe(false, "m1")
	b.Clock.Step(30 * time.Second)
	b.observe(true, "m2", "m3")
	b.set(metav1.ConditionFalse, "m1")
	b.mustPublish()
	b.holds(false, "m1")
	if got := b.Writes(); len(got) != 0 {
		t.Errorf("written: %v", got)
	}
}

func TestGuard_AStateThatIsNotReadable(t *testing.T) {
	b := newBench(t, 0.5, "m1", "m2", "m3")
	b.Must(b.Stored.Create(t.Context(), &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: stateKey().Namespace, Name: stateKey().Name}, Data: map[string]string{eviction.StateKey: "{"},
	}))
	failAll(b)
	b.mustPublish()
	b.holds(true, "m1")
	if state, err := eviction.DecodeMassFailure(b.stored()); err != nil || !state.Stopped() {
		t.Errorf("%+v %v", state, err)
	}
}

func TestGuard_AForgedState(t *testing.T) {
	b := newBench(t, 0.5, "m1", "m2", "m3")
	b.Must(b.Stored.Create(t.Context(), &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: stateKey().Namespace, Name: stateKey().Name},
		Data:       map[string]string{eviction.StateKey: `{"since":"2999-01-01T00:00:00Z","failed":3,"total":3,"clusters":["m1","m2","m3"],"belowSince":"2999-01-01T00:00:00Z"}`},
	}))
	b.mustPublish()
	b.observe(true, "m2", "m3")
	b.set(metav1.ConditionFalse, "m1")
	b.mustPublish()
	b.holds(true, "m1")
	b.Clock.Step(eviction.MassFailureWindow)
	b.holds(false, "m1")
	b.mustPublish()
	if got := b.stored()[eviction.StateKey]; got != "" {
		t.Errorf("stored: %s", got)
	}
}

func TestPublish_ForgetsDeletedClusters(t *testing.T) {
	b := newBench(t, 0.5, "m1", "m2", "m3")
	for _, name := range []string{"m1", "m2", "m3"} {
		b.Observe(b.cluster(name), false, start)
	}
	b.Must(b.publish(t.Context()))
	b.Must(b.Stored.Delete(t.Context(), &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "m2"}}))
	b.Must(b.publish(t.Context()))
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

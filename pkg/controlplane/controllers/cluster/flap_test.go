package cluster

import (
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
	"github.com/karmada-toolkit/karmada/pkg/domain/clustercondition"
)

func TestReconcile_FlappingClusterIsTainted(t *testing.T) {
	b := newBench(t, member())
	b.r.options.FlapWindow = 10 * time.Minute
	change := func(to metav1.ConditionStatus) {
		t.Helper()
		b.Clock.Step(time.Minute)
		c := b.get()
		meta.SetStatusCondition(&c.Status.Conditions, metav1.Condition{Type: "Ready", Status: to, Reason: "R", LastTransitionTime: metav1.NewTime(b.Clock.Now())})
		b.Must(b.Stored.Status().Update(t.Context(), c))
	}
	flaps := func() bool { return slices.ContainsFunc(b.get().Spec.Taints, flapTaint) }
	for i, to := range []metav1.ConditionStatus{"True", "False", "True"} {
		if change(to); b.mustReconcile() != 0 || flaps() {
			t.Fatalf("tainted after %d changes", i+1)
		}
	}
	change("Unknown")
	if wait := b.mustReconcile(); wait != 10*time.Minute || !flaps() {
		t.Fatalf("not tainted, waits %s", wait)
	}
	change("True")
	if wait := b.mustReconcile(); wait != 10*time.Minute || !flaps() || len(b.get().Spec.Taints) != 1 {
		t.Fatalf("waits %s, taints %v", wait, b.get().Spec.Taints)
	}
	if got, want := clustercondition.Flaps(b.get()), "flapping until "+b.Clock.Now().Add(10*time.Minute).UTC().Format(time.RFC3339); got != want {
		t.Errorf("it is %q, want %q", got, want)
	}
	b.Clock.Step(9 * time.Minute)
	if got := b.get().Annotations[clusterv1alpha1.ReadyChangesAnnotation]; strings.Count(got, ",") != 3 {
		t.Errorf("the changes are %q", got)
	}
	version := b.get().ResourceVersion
	b.r.tainted = newReconciler(b.r.env, nil, Options{}).tainted // another process
	if wait := b.mustReconcile(); wait != time.Minute || !flaps() {
		t.Fatalf("waits %s", wait)
	}
	if b.get().ResourceVersion != version {
		t.Error("written although nothing changed")
	}
	b.Clock.Step(time.Minute)
	if wait := b.mustReconcile(); wait != 0 || flaps() || len(b.get().Annotations) != 0 || clustercondition.Flaps(b.get()) != "" {
		t.Errorf("it is still tainted: waits %s, %v", wait, b.get().ObjectMeta)
	}
}

func TestReconcile_FlapTaintEndsWhenItIsTurnedOff(t *testing.T) {
	b := newBench(t, member(func(c *clusterv1alpha1.Cluster) {
		c.Annotations = map[string]string{clusterv1alpha1.ReadyChangesAnnotation: "x", clusterv1alpha1.FlappingUntilAnnotation: "x"}
		c.Spec.Taints, _ = flapping{flaps: true}.taints(nil, time.Unix(1, 0))
	}))
	b.mustReconcile()
	if c := b.get(); slices.ContainsFunc(c.Spec.Taints, flapTaint) || len(c.Annotations) != 0 {
		t.Errorf("%v %v", c.Spec.Taints, c.Annotations)
	}
}

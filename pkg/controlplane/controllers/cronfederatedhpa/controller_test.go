package cronfederatedhpa

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/karmada-toolkit/karmada/internal/events"
	"github.com/karmada-toolkit/karmada/internal/testenv/memory"
	autoscalingv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/autoscaling/v1alpha1"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/env"
)

var noon = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

// cron returns an object whose rule was to run two minutes before noon.
func cron() *autoscalingv1alpha1.CronFederatedHPA {
	c := &autoscalingv1alpha1.CronFederatedHPA{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "c", UID: "u"}}
	c.Spec.ScaleTargetRef = autoscalingv2.CrossVersionObjectReference{APIVersion: autoscalingv1alpha1.SchemeGroupVersion.String(), Kind: "FederatedHPA", Name: "h"}
	c.Spec.Rules = []autoscalingv1alpha1.CronFederatedHPARule{{Name: "a", Schedule: "58 11 * * *", TargetMaxReplicas: new(int32(8))}}
	c.Status.ExecutionHistories = []autoscalingv1alpha1.ExecutionHistory{{RuleName: "a", NextExecutionTime: new(metav1.NewTime(noon.Add(-2 * time.Minute)))}}
	return c
}

type bench struct {
	*memory.Env
	*reconciler
}

var key = types.NamespacedName{Namespace: "ns", Name: "c"}

func newBench(t *testing.T, deadline time.Duration) *bench {
	t.Helper()
	hpa := &autoscalingv1alpha1.FederatedHPA{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "h"}}
	hpa.Spec.MaxReplicas = 3
	m := memory.New(t, cron(), hpa)
	m.Clock.SetTime(noon)
	b := &bench{Env: m}
	b.use(m.Client, deadline)
	return b
}

// use makes a new reconciler.
func (b *bench) use(c client.Client, deadline time.Duration) {
	b.reconciler = newReconciler(&env.Env{Client: c, Live: c, Clock: b.Clock, Metrics: prometheus.NewRegistry()}, events.New(b.Recorder), deadline)
}

// run reconciles the object and fails the test unless it is reconciled again after a duration.
func (b *bench) run(after time.Duration) {
	b.Helper()
	if got := b.MustReconcile(b, key); got != after {
		b.Fatalf("reconciled again after %s, want %s", got, after)
	}
}

// wantReplicas compares spec.maxReplicas of the target, and the number of executions in the history.
func (b *bench) wantReplicas(upper int32, executions int) {
	b.Helper()
	hpa := memory.Get[*autoscalingv1alpha1.FederatedHPA](b.Env, memory.Key("ns", "h"))
	c := memory.Get[*autoscalingv1alpha1.CronFederatedHPA](b.Env, key)
	if got := len(c.Status.ExecutionHistories[0].SuccessfulExecutions); hpa.Spec.MaxReplicas != upper || got != executions {
		b.Errorf("maxReplicas is %d after %d executions, want %d after %d", hpa.Spec.MaxReplicas, got, upper, executions)
	}
}

func TestReconcile_StartingDeadline(t *testing.T) {
	for name, tc := range map[string]struct {
		deadline   time.Duration
		upper      int32
		executions int
	}{
		"by default a missed rule is lost": {0, 3, 0},
		"too late":                         {time.Minute, 3, 0},
		"in time":                          {5 * time.Minute, 8, 1},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, tc.deadline)
			b.run(recheck)
			b.wantReplicas(tc.upper, tc.executions)
		})
	}
}

func TestReconcile_RunsAtItsTimeAndOnce(t *testing.T) {
	b := newBench(t, 0)
	b.MustReconcile(b, key)
	b.Clock.SetTime(noon.Add(24*time.Hour - 2*time.Minute - 30*time.Second))
	b.run(30 * time.Second)
	b.Clock.SetTime(noon.Add(24*time.Hour - 2*time.Minute))
	for range 2 {
		b.MustReconcile(b, key)
	}
	b.wantReplicas(8, 1)
}

func TestReconcile_ExecutionIsRecordedAfterAFailedWrite(t *testing.T) {
	b := newBench(t, 5*time.Minute)
	b.FailOn("status CronFederatedHPA ", errors.New("boom"))
	b.run(retryInterval)
	b.Before = nil
	b.MustReconcile(b, key)
	b.wantReplicas(8, 1)
}

// Rules run at their times while no status can be written, and what waits to be recorded is limited.
func TestReconcile_RunsWhileNoStatusCanBeWritten(t *testing.T) {
	b := newBench(t, 0)
	b.FailOn("status CronFederatedHPA ", errors.New("boom"))
	for range 10 {
		b.MustReconcile(b, key)
		b.Clock.Step(24 * time.Hour)
	}
	b.wantReplicas(8, 0)
	executed := b.states[key].executed
	if len(executed) != 3 || executed[2].at != noon.Add(9*24*time.Hour) {
		t.Errorf("%d executions wait to be recorded: %+v", len(executed), executed)
	}
}

// Of many rules that set the replicas of a workload at the same time the last one does, and all are recorded.
func TestReconcile_RulesThatAreDueTogetherScaleOnce(t *testing.T) {
	for name, failing := range map[string]error{"scaled": nil, "failing": errors.New("boom")} {
		t.Run(name, func(t *testing.T) {
			reads, writes := 0, 0
			b := newBench(t, 5*time.Minute)
			b.use(interceptor.NewClient(b.Client, interceptor.Funcs{
				SubResourceGet: func(_ context.Context, _ client.Client, _ string, _, scale client.Object, _ ...client.SubResourceGetOption) error {
					reads++
					scale.(*unstructured.Unstructured).Object["spec"] = map[string]any{"replicas": int64(1)}
					return failing
				},
				SubResourcePatch: func(ctx context.Context, c client.Client, name string, obj client.Object, p client.Patch, opts ...client.SubResourcePatchOption) error {
					if name != "scale" {
						return c.SubResource(name).Patch(ctx, obj, p, opts...)
					}
					writes++
					return nil
				},
			}), 5*time.Minute)
			memory.Change(b.Env, key, func(c *autoscalingv1alpha1.CronFederatedHPA) {
				c.Spec.ScaleTargetRef = autoscalingv2.CrossVersionObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Name: "d"}
				c.Spec.Rules, c.Status.ExecutionHistories = nil, nil
				for i := range 100 {
					rule := autoscalingv1alpha1.CronFederatedHPARule{Name: fmt.Sprintf("r%d", i), Schedule: "58 11 * * *", TargetReplicas: new(int32(i + 2))}
					if i == 50 {
						rule.TargetReplicas = nil // fails for itself
					}
					c.Spec.Rules = append(c.Spec.Rules, rule)
					c.Status.ExecutionHistories = append(c.Status.ExecutionHistories, autoscalingv1alpha1.ExecutionHistory{
						RuleName: rule.Name, NextExecutionTime: new(metav1.NewTime(noon.Add(-2 * time.Minute))),
					})
				}
			})
			b.MustReconcile(b, key)
			if reads != 1 || failing == nil && writes != 1 {
				t.Errorf("%d reads and %d writes", reads, writes)
			}
			succeeded, failed := 0, 0
			for _, h := range memory.Get[*autoscalingv1alpha1.CronFederatedHPA](b.Env, key).Status.ExecutionHistories {
				succeeded += len(h.SuccessfulExecutions)
				failed += len(h.FailedExecutions)
			}
			want := [2]int{99, 1}
			if failing != nil {
				want = [2]int{0, 100}
			}
			if got := [2]int{succeeded, failed}; got != want {
				t.Errorf("%v executions succeeded and failed, want %v", got, want)
			}
		})
	}
}

func TestReconcile_AnInvalidRuleDoesNotStopTheOthers(t *testing.T) {
	b := newBench(t, 5*time.Minute)
	memory.Change(b.Env, key, func(c *autoscalingv1alpha1.CronFederatedHPA) {
		c.Spec.Rules = append(c.Spec.Rules, autoscalingv1alpha1.CronFederatedHPARule{Name: "b", Schedule: "bad", TargetMaxReplicas: new(int32(9))})
	})
	if b.MustReconcile(b, key) == 0 {
		t.Fatal("not reconciled again")
	}
	b.wantReplicas(8, 1)
}

// What is older than the limits goes on, and has an event.
func TestReconcile_LimitsDoNotStopWhatExists(t *testing.T) {
	b := newBench(t, time.Hour)
	memory.Change(b.Env, key, func(c *autoscalingv1alpha1.CronFederatedHPA) {
		c.Spec.Rules = append(c.Spec.Rules, autoscalingv1alpha1.CronFederatedHPARule{Name: "b", Schedule: "@every 1s", TargetMaxReplicas: new(int32(9))})
	})
	for range 2 {
		b.MustReconcile(b, key)
	}
	if got := memory.Get[*autoscalingv1alpha1.FederatedHPA](b.Env, memory.Key("ns", "h")).Spec.MaxReplicas; got != 8 {
		t.Errorf("maxReplicas is %d, want that of the rule", got)
	}
	got := b.Events()
	want := `Warning LimitExceeded spec.rules[1].schedule: Invalid value: "@every 1s": a rule runs at most every 10s; the rules still run, and change only within the limits`
	if len(got) != 1 || got[0] != want {
		t.Errorf("events %q, want one: %s", got, want)
	}
}

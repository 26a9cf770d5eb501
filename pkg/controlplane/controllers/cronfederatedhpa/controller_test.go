package cronfederatedhpa

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/record"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/karmada-toolkit/karmada/internal/events"
	"github.com/karmada-toolkit/karmada/internal/kube"
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

func setup(deadline time.Duration, funcs interceptor.Funcs) (*reconciler, *clocktesting.FakeClock) {
	hpa := &autoscalingv1alpha1.FederatedHPA{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "h"}}
	hpa.Spec.MaxReplicas = 3
	mapper := meta.NewDefaultRESTMapper(nil)
	mapper.Add(appsv1.SchemeGroupVersion.WithKind("Deployment"), meta.RESTScopeNamespace)
	c := fake.NewClientBuilder().WithScheme(kube.NewScheme()).WithRESTMapper(mapper).WithObjects(cron(), hpa).
		WithStatusSubresource(&autoscalingv1alpha1.CronFederatedHPA{}).WithInterceptorFuncs(funcs).Build()
	clk := clocktesting.NewFakeClock(noon)
	return newReconciler(&env.Env{Client: c, Live: c, Clock: clk, Metrics: prometheus.NewRegistry()}, events.New(record.NewFakeRecorder(10)), deadline), clk
}

func (r *reconciler) run(t *testing.T) (reconcile.Result, error) {
	t.Helper()
	return r.Reconcile(t.Context(), reconcile.Request{NamespacedName: types.NamespacedName{Namespace: "ns", Name: "c"}})
}

// maxReplicas returns spec.maxReplicas of the target, and the number of executions in the history.
func (r *reconciler) maxReplicas(t *testing.T) (upper int32, executions int) {
	t.Helper()
	hpa, c := &autoscalingv1alpha1.FederatedHPA{}, &autoscalingv1alpha1.CronFederatedHPA{}
	err := errors.Join(r.client.Get(t.Context(), types.NamespacedName{Namespace: "ns", Name: "h"}, hpa), r.client.Get(t.Context(), types.NamespacedName{Namespace: "ns", Name: "c"}, c))
	if err != nil {
		t.Fatal(err)
	}
	return hpa.Spec.MaxReplicas, len(c.Status.ExecutionHistories[0].SuccessfulExecutions)
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
			r, _ := setup(tc.deadline, interceptor.Funcs{})
			result, err := r.run(t)
			if err != nil || result.RequeueAfter != recheck {
				t.Fatal(result, err)
			}
			if upper, executions := r.maxReplicas(t); upper != tc.upper || executions != tc.executions {
				t.Errorf("maxReplicas is %d after %d executions, want %d after %d", upper, executions, tc.upper, tc.executions)
			}
		})
	}
}

func TestReconcile_RunsAtItsTimeAndOnce(t *testing.T) {
	r, clk := setup(0, interceptor.Funcs{})
	if _, err := r.run(t); err != nil {
		t.Fatal(err)
	}
	clk.SetTime(noon.Add(24*time.Hour - 2*time.Minute - 30*time.Second))
	if result, err := r.run(t); err != nil || result.RequeueAfter != 30*time.Second {
		t.Fatal(result, err)
	}
	clk.SetTime(noon.Add(24*time.Hour - 2*time.Minute))
	for range 2 {
		if _, err := r.run(t); err != nil {
			t.Fatal(err)
		}
	}
	if upper, executions := r.maxReplicas(t); upper != 8 || executions != 1 {
		t.Errorf("maxReplicas is %d after %d executions", upper, executions)
	}
}

func TestReconcile_ExecutionIsRecordedAfterAFailedWrite(t *testing.T) {
	fail := true
	r, _ := setup(5*time.Minute, interceptor.Funcs{
		SubResourcePatch: func(ctx context.Context, c client.Client, name string, obj client.Object, p client.Patch, opts ...client.SubResourcePatchOption) error {
			if fail {
				return errors.New("boom")
			}
			return c.SubResource(name).Patch(ctx, obj, p, opts...)
		},
	})
	if result, err := r.run(t); err != nil || result.RequeueAfter != retryInterval {
		t.Fatal(result, err)
	}
	fail = false
	if _, err := r.run(t); err != nil {
		t.Fatal(err)
	}
	if upper, executions := r.maxReplicas(t); upper != 8 || executions != 1 {
		t.Errorf("maxReplicas is %d after %d executions", upper, executions)
	}
}

// Rules run at their times while no status can be written, and what waits to be recorded is limited.
func TestReconcile_RunsWhileNoStatusCanBeWritten(t *testing.T) {
	r, clk := setup(0, interceptor.Funcs{
		SubResourcePatch: func(context.Context, client.Client, string, client.Object, client.Patch, ...client.SubResourcePatchOption) error {
			return errors.New("boom")
		},
	})
	for range 10 {
		if _, err := r.run(t); err != nil {
			t.Fatal(err)
		}
		clk.SetTime(clk.Now().Add(24 * time.Hour))
	}
	if upper, _ := r.maxReplicas(t); upper != 8 {
		t.Errorf("maxReplicas is %d: the rule did not run", upper)
	}
	executed := r.states[types.NamespacedName{Namespace: "ns", Name: "c"}].executed
	if len(executed) != 3 || executed[2].at != noon.Add(9*24*time.Hour) {
		t.Errorf("%d executions wait to be recorded: %+v", len(executed), executed)
	}
}

// Of many rules that set the replicas of a workload at the same time the last one does, and all are recorded.
func TestReconcile_RulesThatAreDueTogetherScaleOnce(t *testing.T) {
	for name, failing := range map[string]error{"scaled": nil, "failing": errors.New("boom")} {
		t.Run(name, func(t *testing.T) {
			reads, writes := 0, 0
			r, _ := setup(5*time.Minute, interceptor.Funcs{
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
			})
			c := cron()
			if err := r.client.Get(t.Context(), client.ObjectKeyFromObject(c), c); err != nil {
				t.Fatal(err)
			}
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
			if err := r.client.Update(t.Context(), c.DeepCopy()); err != nil {
				t.Fatal(err)
			}
			stored := cron()
			if err := r.client.Get(t.Context(), client.ObjectKeyFromObject(c), stored); err != nil {
				t.Fatal(err)
			}
			stored.Status = c.Status
			if err := r.client.Status().Patch(t.Context(), stored, client.Merge); err != nil {
				t.Fatal(err)
			}
			if _, err := r.run(t); err != nil {
				t.Fatal(err)
			}
			if reads != 1 || failing == nil && writes != 1 {
				t.Errorf("%d reads and %d writes", reads, writes)
			}
			if err := r.client.Get(t.Context(), client.ObjectKeyFromObject(c), stored); err != nil {
				t.Fatal(err)
			}
			succeeded, failed := 0, 0
			for _, h := range stored.Status.ExecutionHistories {
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
	r, _ := setup(5*time.Minute, interceptor.Funcs{})
	c := cron()
	if err := r.client.Get(t.Context(), client.ObjectKeyFromObject(c), c); err != nil {
		t.Fatal(err)
	}
	c.Spec.Rules = append(c.Spec.Rules, autoscalingv1alpha1.CronFederatedHPARule{Name: "b", Schedule: "bad", TargetMaxReplicas: new(int32(9))})
	if err := r.client.Update(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	if result, err := r.run(t); err != nil || result.RequeueAfter == 0 {
		t.Fatal(result, err)
	}
	if upper, executions := r.maxReplicas(t); upper != 8 || executions != 1 {
		t.Errorf("maxReplicas is %d after %d executions", upper, executions)
	}
}

// What is older than the limits goes on, and has an event.
func TestReconcile_LimitsDoNotStopWhatExists(t *testing.T) {
	r, _ := setup(time.Hour, interceptor.Funcs{})
	recorder := record.NewFakeRecorder(10)
	r.events = events.New(recorder)
	c := cron()
	if err := r.client.Get(t.Context(), client.ObjectKeyFromObject(c), c); err != nil {
		t.Fatal(err)
	}
	c.Spec.Rules = append(c.Spec.Rules, autoscalingv1alpha1.CronFederatedHPARule{Name: "b", Schedule: "@every 1s", TargetMaxReplicas: new(int32(9))})
	if err := r.client.Update(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if _, err := r.run(t); err != nil {
			t.Fatal(err)
		}
	}
	if upper, _ := r.maxReplicas(t); upper != 8 {
		t.Errorf("maxReplicas is %d, want that of the rule", upper)
	}
	close(recorder.Events)
	var got []string
	for e := range recorder.Events {
		got = append(got, e)
	}
	want := `Warning LimitExceeded spec.rules[1].schedule: Invalid value: "@every 1s": a rule runs at most every 10s; the rules still run, and change only within the limits`
	if len(got) != 1 || got[0] != want {
		t.Errorf("events %q, want one: %s", got, want)
	}
}

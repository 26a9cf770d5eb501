package bindingstatus

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/karmada-toolkit/karmada/internal/status"
	policyv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/policy/v1alpha1"
	workv1alpha2 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha2"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/env"
	"github.com/karmada-toolkit/karmada/pkg/domain/interpreter"
	"github.com/karmada-toolkit/karmada/pkg/domain/scope"
)

// conditionsOf returns "Type=Status Reason" of each condition of the template.
func (b *bench) conditionsOf() []string {
	b.Helper()
	obj := b.template()
	list, _, _ := unstructured.NestedSlice(obj.Object, "status", "conditions")
	var out []string
	for _, entry := range list {
		c, _ := entry.(map[string]any)
		out = append(out, c["type"].(string)+"="+c["status"].(string)+" "+c["reason"].(string))
	}
	return out
}

func (b *bench) template() *unstructured.Unstructured {
	b.Helper()
	obj := &unstructured.Unstructured{}
	obj.SetAPIVersion("apps/v1")
	obj.SetKind("Deployment")
	obj.SetNamespace("default")
	obj.SetName("a")
	b.Must(b.Stored.Get(b.Context(), client.ObjectKey{Namespace: "default", Name: "a"}, obj))
	return obj
}

func TestReconcile_WritesConditionsWithTheStatus(t *testing.T) {
	b := newBench(t, scope.NamespacedBinding(), "m1")
	b.use(&env.Env{Interpreter: interpreter.New()}, Options{TemplateConditions: true})
	obj := b.template()
	obj.Object["spec"] = map[string]any{"replicas": int64(2), "progressDeadlineSeconds": int64(600)}
	b.Must(b.Stored.Update(t.Context(), obj))
	b.change(func(binding workv1alpha2.Binding) { binding.GetSpec().Clusters[0].Replicas = 2 })
	b.patches = nil

	const reported = `{"generation":1,"observedGeneration":1,"resourceTemplateGeneration":1,"replicas":2,"updatedReplicas":2`
	b.set(workIn("m1", "True", "Unhealthy", reported+`}`))
	again := b.until(t)
	want := []string{"Available=False MinimumReplicasUnavailable", "Progressing=True ReplicaSetUpdated"}
	if diff := cmp.Diff(want, b.conditionsOf()); diff != "" {
		t.Error(diff)
	}
	for _, want := range []time.Duration{status.WrittenTTL, 600*time.Second - status.WrittenTTL} {
		if again != want {
			t.Errorf("reconciled again after %s, want %s", again, want)
		}
		b.Clock.Step(again)
		if want == status.WrittenTTL {
			again, _ = b.reconcile()
		}
	}
	if _, err := b.reconcile(); err != nil {
		t.Fatal(err)
	}
	want[1] = "Progressing=False ProgressDeadlineExceeded"
	if diff := cmp.Diff(want, b.conditionsOf()); diff != "" {
		t.Error(diff)
	}
	b.set(workIn("m1", "True", "Healthy", reported+`,"readyReplicas":2,"availableReplicas":2}`))
	b.until(t)
	want = []string{"Available=True MinimumReplicasAvailable", "Progressing=True NewReplicaSetAvailable"}
	if diff := cmp.Diff(want, b.conditionsOf()); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"binding", "template", "template", "binding", "template"}, b.patches); diff != "" {
		t.Errorf("writes: %s", diff)
	}
	b.patches = nil
	b.Clock.Step(time.Hour)
	again, err := b.reconcile()
	if err != nil || again != 0 || b.patches != nil {
		t.Errorf("later: writes %v, reconciled again after %s, error %v", b.patches, again, err)
	}
}

// The first status of a binding that was created with its targets confirms these, unless the binding changed since, or the scheduler
// is not in this process.
func TestReconcile_ConfirmsWhatWasCreatedWithTargets(t *testing.T) {
	for name, tc := range map[string]struct {
		scheduler  env.Scheduler
		generation int64
		want       bool
	}{
		"created":      {struct{ env.Scheduler }{}, 1, true},
		"changed":      {struct{ env.Scheduler }{}, 2, false},
		"by a process": {nil, 1, false},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, scope.NamespacedBinding(), "m1")
			b.use(&env.Env{Interpreter: b.interp, Scheduler: tc.scheduler}, Options{})
			b.change(func(binding workv1alpha2.Binding) {
				binding.GetSpec().Placement = &policyv1alpha1.Placement{}
				binding.SetAnnotations(map[string]string{policyv1alpha1.AppliedPlacementAnnotation: "{}"})
				binding.SetGeneration(tc.generation)
				binding.SetCreationTimestamp(metav1.NewTime(b.Clock.Now()))
				binding.GetStatus().Conditions = nil
			})
			b.set(workIn("m1", "True", "Healthy", `{"replicas":1}`))
			b.patches = nil
			b.until(t)
			status := b.status()
			if got := meta.IsStatusConditionTrue(status.Conditions, workv1alpha2.Scheduled); got != tc.want ||
				(status.SchedulerObservedGeneration == 1) != tc.want || (status.LastScheduledTime != nil) != tc.want {
				t.Errorf("confirmed %t, want %t: %+v", got, tc.want, status)
			}
			if diff := cmp.Diff([]string{"binding", "template"}, b.patches); diff != "" {
				t.Errorf("writes: %s", diff)
			}
		})
	}
}

// until reconciles until the statuses are written, and returns after how long the
// binding is reconciled again.
func (b *bench) until(t *testing.T) time.Duration {
	t.Helper()
	for range 10 {
		before := len(b.patches)
		again, err := b.reconcile()
		if err != nil {
			t.Fatal(err)
		}
		if len(b.patches) > before {
			return again
		}
		b.Clock.Step(again)
	}
	t.Fatal("nothing is written")
	return 0
}

package conditions_test

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	workv1alpha2 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha2"
	"github.com/karmada-toolkit/karmada/pkg/domain/conditions"
	"github.com/karmada-toolkit/karmada/pkg/domain/conditions/conditionstest"
)

func TestDeployment_Rollout(t *testing.T) {
	f := conditionstest.New(t, "apps/v1", "Deployment", conditionstest.DeploymentSpec, 2, 2)
	for _, tc := range []struct {
		name                   string
		after                  time.Duration
		healthy                bool
		reports                []string
		available, progressing string
		done, failed           bool
		recheck                time.Duration
	}{
		{
			name: "one cluster has no work", reports: []string{conditionstest.Deployment(2, 2, 2), "-"},
			available: "False MinimumReplicasUnavailable", progressing: "True ReplicaSetUpdated", recheck: 600 * time.Second,
		},
		{
			name: "pods are not available", after: 10 * time.Second, reports: []string{conditionstest.Deployment(2, 2, 0), conditionstest.Deployment(2, 2, 0)},
			available: "False MinimumReplicasUnavailable", progressing: "True ReplicaSetUpdated", recheck: 600 * time.Second,
		},
		{
			name: "nothing changes", after: 100 * time.Second, reports: []string{conditionstest.Deployment(2, 2, 0), conditionstest.Deployment(2, 2, 0)},
			available: "False MinimumReplicasUnavailable", progressing: "True ReplicaSetUpdated", recheck: 500 * time.Second,
		},
		{
			name: "nothing changes until the deadline", after: 500 * time.Second, reports: []string{conditionstest.Deployment(2, 2, 0), conditionstest.Deployment(2, 2, 0)},
			available: "False MinimumReplicasUnavailable", progressing: "False ProgressDeadlineExceeded", failed: true,
		},
		{
			name: "one cluster makes progress", after: time.Second, reports: []string{conditionstest.Deployment(2, 2, 2), conditionstest.Deployment(2, 2, 0)},
			available: "False MinimumReplicasUnavailable", progressing: "True ReplicaSetUpdated", recheck: 600 * time.Second,
		},
		{
			name: "everything runs", after: time.Second, healthy: true, reports: []string{conditionstest.Deployment(2, 2, 2), conditionstest.Deployment(2, 2, 2)},
			available: "True MinimumReplicasAvailable", progressing: "True NewReplicaSetAvailable", done: true,
		},
		{
			name: "a pod is lost long after", after: time.Hour, reports: []string{conditionstest.Deployment(2, 2, 1), conditionstest.Deployment(2, 2, 2)},
			available: "False MinimumReplicasUnavailable", progressing: "True NewReplicaSetAvailable",
		},
	} {
		f.Now = f.Now.Add(tc.after)
		f.Report(tc.healthy, tc.reports...).Aggregate()
		got := []any{f.Condition("Available"), f.Condition("Progressing"), f.Recheck}
		want := []any{tc.available, tc.progressing, tc.recheck}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: %s", tc.name, diff)
		}
		done, err := f.RolledOut()
		if done != tc.done || (err != nil) != tc.failed {
			t.Errorf("%s: rollout status: done %v, error %v", tc.name, done, err)
		}
	}
	f.Settled()
}

func TestDeployment_NewGenerationRestartsProgress(t *testing.T) {
	f := conditionstest.New(t, "apps/v1", "Deployment", conditionstest.DeploymentSpec, 2, 2).
		Report(true, conditionstest.Deployment(2, 2, 2), conditionstest.Deployment(2, 2, 2)).Aggregate()
	f.Template.SetGeneration(3)
	f.Now = f.Now.Add(time.Hour)
	f.Aggregate() // the members still run generation 2
	if done, err := f.RolledOut(); done || err != nil {
		t.Errorf("rollout status: done %v, error %v", done, err)
	}
	if got := f.Condition("Progressing"); got != "True ReplicaSetUpdated" {
		t.Errorf("Progressing is %s", got)
	}
}

func TestDeployment_ConditionsBySpec(t *testing.T) {
	all := []string{conditionstest.Deployment(2, 2, 2), conditionstest.Deployment(2, 2, 2)}
	for name, tc := range map[string]struct {
		spec                   string
		label                  bool
		healthy                bool
		targets                []int32
		reports                []string
		available, progressing string
	}{
		"without a deadline": {`{"replicas":4}`, false, true, []int32{2, 2}, all, "True MinimumReplicasAvailable", ""},
		"a deadline without end": {
			fmt.Sprintf(`{"replicas":4,"progressDeadlineSeconds":%d}`, math.MaxInt32), false, true, []int32{2, 2}, all, "True MinimumReplicasAvailable", "",
		},
		"paused": {
			`{"replicas":4,"paused":true,"progressDeadlineSeconds":600}`, false, true, []int32{2, 2}, all, "True MinimumReplicasAvailable", "Unknown DeploymentPaused",
		},
		"no replicas": {`{"replicas":0,"progressDeadlineSeconds":600}`, false, true, nil, nil, "True MinimumReplicasAvailable", "True NewReplicaSetAvailable"},
		"within maxUnavailable": {
			conditionstest.DeploymentSpec, false, false, []int32{4}, []string{conditionstest.Deployment(4, 4, 3)}, "True MinimumReplicasAvailable", "True ReplicaSetUpdated",
		},
		"duplicated": {
			`{"replicas":2,"progressDeadlineSeconds":600}`, false, true, []int32{2, 2}, all, "True MinimumReplicasAvailable", "True NewReplicaSetAvailable",
		},
		"an override reduces the replicas of a cluster": {
			conditionstest.DeploymentSpec, false, true, []int32{2, 2}, []string{conditionstest.Deployment(2, 2, 2), conditionstest.Deployment(1, 1, 1)}, "True MinimumReplicasAvailable", "True NewReplicaSetAvailable",
		},
		"replicas retained by the members": {
			conditionstest.DeploymentSpec, true, false, []int32{2, 2}, []string{conditionstest.Deployment(1, 1, 1), conditionstest.Deployment(1, 1, 1)}, "True MinimumReplicasAvailable", "True ReplicaSetUpdated",
		},
		"old pods are left": {
			conditionstest.DeploymentSpec, false, true, []int32{4}, []string{conditionstest.Deployment(5, 4, 4)}, "True MinimumReplicasAvailable", "True ReplicaSetUpdated",
		},
		"members that report conditions of their own": {
			conditionstest.DeploymentSpec, false, false, []int32{4}, []string{
				`{"generation":1,"observedGeneration":1,"resourceTemplateGeneration":2,"replicas":4,"updatedReplicas":4,"conditions":[{"type":"Available","status":"False"},{"type":"Progressing","status":"False","reason":"ProgressDeadlineExceeded"}]}`,
			}, "False MinimumReplicasUnavailable", "False ProgressDeadlineExceeded",
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := conditionstest.New(t, "apps/v1", "Deployment", tc.spec, tc.targets...)
			if tc.label {
				f.Template.SetLabels(map[string]string{workv1alpha2.RetainReplicasLabel: "true"})
			}
			f.Report(tc.healthy, tc.reports...).Aggregate()
			got := []string{f.Condition("Available"), f.Condition("Progressing")}
			if diff := cmp.Diff([]string{tc.available, tc.progressing}, got); diff != "" {
				t.Error(diff)
			}
			f.Settled()
		})
	}
}

// TestWorkloads_RolloutStatus has a twin in testdata/kstatus.
func TestWorkloads_RolloutStatus(t *testing.T) {
	for _, w := range conditionstest.Workloads() {
		t.Run(w.Kind, func(t *testing.T) {
			f := conditionstest.New(t, w.APIVersion, w.Kind, w.Spec, 2, 2)
			for _, stage := range w.Stages() {
				f.Report(stage.Ready, stage.Reports...).Aggregate()
				if !w.Rollout {
					continue
				}
				if done, err := f.RolledOut(); err != nil || done != stage.Ready {
					t.Errorf("%s: rollout status: done %v, error %v", stage.Name, done, err)
				}
			}
			f.Settled()
		})
	}
}

func TestJob_CompleteOnlyWithAllClusters(t *testing.T) {
	const complete = `{"succeeded":1,"startTime":"2026-01-01T11:00:00Z","completionTime":"2026-01-01T11:01:00Z","conditions":[{"type":"Complete","status":"True"}]}`
	f := conditionstest.New(t, "batch/v1", "Job", `{"completions":2}`, 1, 1)
	for _, tc := range []struct{ second, want string }{{"-", ""}, {"", ""}, {complete, "True Completed"}} {
		f.Report(true, complete, tc.second).Aggregate()
		if got := f.Condition("Complete"); got != tc.want {
			t.Errorf("with %q of the second cluster: %q, want %q", tc.second, got, tc.want)
		}
		if got := f.Condition("SuccessCriteriaMet"); (got == "") != (tc.want == "") {
			t.Errorf("with %q of the second cluster: SuccessCriteriaMet %q", tc.second, got)
		}
		f.Settled()
	}
}

func TestPod_ConditionsOfAllMembers(t *testing.T) {
	const ready = `{"phase":"Running","conditions":[{"type":"Ready","status":"True"}]}`
	f := conditionstest.New(t, "v1", "Pod", `{}`, 0, 0)
	for _, tc := range []struct{ second, want string }{
		{"-", "False "},
		{`{"phase":"Running","conditions":[{"type":"Ready","status":"False","reason":"ContainersNotReady"}]}`, "False ContainersNotReady"},
		{ready, "True "},
	} {
		f.Report(true, ready, tc.second).Aggregate()
		if got := f.Condition("Ready"); strings.TrimSuffix(got, "<nil>") != tc.want {
			t.Errorf("with %s: Ready is %q, want %q", tc.second, got, tc.want)
		}
		f.Settled()
	}
}

func TestReplicaSet_LabeledReplicas(t *testing.T) {
	f := conditionstest.New(t, "apps/v1", "ReplicaSet", `{"replicas":4}`, 2, 2)
	f.Report(false, `{"replicas":2}`, `{"replicas":2,"fullyLabeledReplicas":1,"conditions":[{"type":"ReplicaFailure","status":"True","reason":"FailedCreate"}]}`).Aggregate()
	got := []any{f.Template.Object["status"].(map[string]any)["fullyLabeledReplicas"], f.Condition("ReplicaFailure")}
	if diff := cmp.Diff([]any{int64(3), "True FailedCreate"}, got); diff != "" {
		t.Error(diff)
	}
	f.Settled()
	f.Report(true, `{"replicas":2}`, `{"replicas":2}`).Aggregate()
	if got := f.Condition("ReplicaFailure"); got != "" {
		t.Errorf("the failure stays: %s", got)
	}
}

func TestJob_EndsAsTheAPIServerAccepts(t *testing.T) {
	const (
		failed = `{"failed":1,"startTime":"2026-01-01T11:00:00Z","conditions":[{"type":"FailureTarget","status":"True"},{"type":"Failed","status":"True"}]}`
		active = `{"active":1,"startTime":"2026-01-01T11:05:00Z"}`
	)
	f := conditionstest.New(t, "batch/v1", "Job", `{"completions":2}`, 1, 1)
	f.Report(false, failed, active).Aggregate()
	if got := []string{f.Condition("FailureTarget"), f.Condition("Failed")}; !cmp.Equal(got, []string{"True JobFailed", ""}) {
		t.Errorf("with an active member: %v", got)
	}
	if got := f.Template.Object["status"].(map[string]any)["startTime"]; got != "2026-01-01T11:00:00Z" {
		t.Errorf("started at %v", got)
	}
	f.Settled()
	f.Report(false, failed, failed).Aggregate()
	if got := []string{f.Condition("FailureTarget"), f.Condition("Failed")}; !cmp.Equal(got, []string{"True JobFailed", "True JobFailed"}) {
		t.Errorf("at the end: %v", got)
	}
	f.Settled()
}

func TestApply_KeepsOtherKindsAndItsInput(t *testing.T) {
	f := conditionstest.New(t, "v1", "Service", `{"type":"LoadBalancer"}`, 1)
	f.Template.Object["status"] = map[string]any{"loadBalancer": map[string]any{}}
	r, err := conditions.Apply(conditions.Input{Template: f.Template, Aggregated: f.Template, Targets: f.Targets, Now: f.Now})
	if err != nil || r.Template != f.Template {
		t.Errorf("got %v, error %v", r.Template, err)
	}
	d := conditionstest.New(t, "apps/v1", "Deployment", conditionstest.DeploymentSpec, 2, 2).Report(true, conditionstest.Deployment(2, 2, 2), "-").Aggregate()
	before := d.Template.DeepCopy()
	d.Report(true, conditionstest.Deployment(2, 2, 2), conditionstest.Deployment(2, 2, 2))
	template := d.Template
	d.Aggregate()
	if diff := cmp.Diff(before, template); diff != "" {
		t.Errorf("the input changed: %s", diff)
	}
}

//go:build kstatus

package kstatus

import (
	"testing"
	"time"

	"github.com/fluxcd/cli-utils/pkg/kstatus/status"

	"github.com/karmada-toolkit/karmada/pkg/domain/conditions/conditionstest"
)

func compute(t *testing.T, f *conditionstest.Fixture) status.Status {
	t.Helper()
	r, err := status.Compute(f.Template)
	if err != nil {
		t.Fatal(err)
	}
	return r.Status
}

func TestWorkloads(t *testing.T) {
	for _, w := range conditionstest.Workloads() {
		t.Run(w.Kind, func(t *testing.T) {
			f := conditionstest.New(t, w.APIVersion, w.Kind, w.Spec, 2, 2)
			for _, stage := range w.Stages() {
				want := status.InProgressStatus
				if stage.Ready || w.Kind == "Job" { // kstatus takes a Job that runs for current
					want = status.CurrentStatus
				}
				f.Report(stage.Ready, stage.Reports...).Aggregate()
				if got := compute(t, f); got != want {
					t.Errorf("%s: %s, want %s: %v", stage.Name, got, want, f.Template.Object["status"])
				}
			}
		})
	}
}

func TestDeployment_ExceedsItsDeadline(t *testing.T) {
	f := conditionstest.New(t, "apps/v1", "Deployment", conditionstest.DeploymentSpec, 2, 2).
		Report(false, conditionstest.Deployment(2, 2, 0), conditionstest.Deployment(2, 2, 2)).Aggregate()
	if got := compute(t, f); got != status.InProgressStatus {
		t.Errorf("%s before the deadline", got)
	}
	f.Now = f.Now.Add(10 * time.Minute)
	f.Aggregate()
	if got := compute(t, f); got != status.FailedStatus {
		t.Errorf("%s after the deadline", got)
	}
	f.Report(true, conditionstest.Deployment(2, 2, 2), conditionstest.Deployment(2, 2, 2)).Aggregate()
	if got := compute(t, f); got != status.CurrentStatus {
		t.Errorf("%s at the end", got)
	}
}

func TestDeployment_NewGeneration(t *testing.T) {
	f := conditionstest.New(t, "apps/v1", "Deployment", conditionstest.DeploymentSpec, 2, 2).
		Report(true, conditionstest.Deployment(2, 2, 2), conditionstest.Deployment(2, 2, 2)).Aggregate()
	f.Template.SetGeneration(3)
	f.Aggregate()
	if got := compute(t, f); got != status.InProgressStatus {
		t.Errorf("%s while no member has the new generation", got)
	}
}

// TestDeployment_CopiesCountAsExtraPods keeps a limit of kstatus on record: the
// replicas of a Deployment that is duplicated to several clusters are the sum of the
// copies, as the contract has it, and kstatus takes more than spec.replicas for pods
// that are still to be deleted.
func TestDeployment_CopiesCountAsExtraPods(t *testing.T) {
	f := conditionstest.New(t, "apps/v1", "Deployment", `{"replicas":2,"progressDeadlineSeconds":600}`, 2, 2).
		Report(true, conditionstest.Deployment(2, 2, 2), conditionstest.Deployment(2, 2, 2)).Aggregate()
	if got := compute(t, f); got != status.InProgressStatus {
		t.Errorf("%s: the limit is gone; correct docs/differences.md", got)
	}
}

func TestJob_Failed(t *testing.T) {
	const failed = `{"failed":1,"startTime":"2026-01-01T11:00:00Z","conditions":[{"type":"Failed","status":"True"}]}`
	f := conditionstest.New(t, "batch/v1", "Job", `{"completions":2}`, 1, 1).Report(false, failed, failed).Aggregate()
	if got := compute(t, f); got != status.FailedStatus {
		t.Error(got)
	}
}

//go:build integration

// Covers pkg/domain/conditions.

package controllers_test

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/karmada-toolkit/karmada/pkg/domain/conditions/conditionstest"
)

// storedTemplate creates the template of a fixture, so that each status of it goes through the
// API server.
func storedTemplate(t *testing.T, c client.Client, f *conditionstest.Fixture) {
	t.Helper()
	f.Template.SetResourceVersion("")
	f.Template.SetName("")
	f.Template.SetGenerateName("app-")
	status := f.Template.Object["status"]
	containers := map[string]any{"containers": []any{map[string]any{"name": "c", "image": "i"}}}
	labels := map[string]any{"app": "a"}
	spec, _ := f.Template.Object["spec"].(map[string]any)
	switch f.Template.GetKind() {
	case "Pod":
		f.Template.Object["spec"] = containers
	case "Job":
		containers["restartPolicy"] = "Never"
		spec["template"] = map[string]any{"spec": containers}
	default:
		spec["template"] = map[string]any{"metadata": map[string]any{"labels": labels}, "spec": containers}
		spec["selector"] = map[string]any{"matchLabels": labels}
	}
	delete(f.Template.Object, "status")
	if err := c.Create(t.Context(), f.Template); err != nil {
		t.Fatal(err)
	}
	f.Template.Object["status"] = status
	f.Store = func(obj *unstructured.Unstructured) *unstructured.Unstructured {
		t.Helper()
		out := obj.DeepCopy()
		out.SetManagedFields(nil)
		if err := c.Status().Update(t.Context(), out); err != nil {
			t.Fatalf("%s: %v", obj.GetKind(), err)
		}
		return out
	}
}

// TestStatus_IsAccepted writes computed statuses to a real API server, which rejects
// inconsistent conditions of Jobs.
func TestStatus_IsAccepted(t *testing.T) {
	t.Parallel()
	cluster := apiServer(t)
	c, err := client.New(cluster.Config, client.Options{Scheme: runtime.NewScheme()})
	if err != nil {
		t.Fatal(err)
	}
	for _, w := range conditionstest.Workloads() {
		t.Run(w.Kind, func(t *testing.T) {
			f := conditionstest.New(t, w.APIVersion, w.Kind, w.Spec, 2, 2)
			storedTemplate(t, c, f)
			for _, stage := range w.Stages() {
				f.Report(stage.Ready, stage.Reports...).Aggregate()
			}
			f.Settled()
		})
	}
	t.Run("a Job that fails in one cluster first", func(t *testing.T) {
		const (
			failed = `{"failed":1,"startTime":"2026-01-01T11:00:00Z","conditions":[{"type":"FailureTarget","status":"True"},{"type":"Failed","status":"True"}]}`
			active = `{"active":1,"startTime":"2026-01-01T11:05:00Z"}`
			done   = `{"succeeded":1,"startTime":"2026-01-01T11:05:00Z","completionTime":"2026-01-01T11:06:00Z","conditions":[{"type":"SuccessCriteriaMet","status":"True"},{"type":"Complete","status":"True"}]}`
		)
		f := conditionstest.New(t, "batch/v1", "Job", `{"completions":2,"parallelism":2}`, 1, 1)
		storedTemplate(t, c, f)
		f.Report(false, failed, "-").Aggregate()
		f.Report(false, failed, active).Aggregate()
		f.Report(false, failed, done).Aggregate()
		if got := f.Condition("Failed"); got != "True JobFailed" {
			t.Errorf("Failed is %q", got)
		}
		f.Settled()
	})
}

package services_test

import (
	"fmt"
	"testing"
	"time"

	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	workv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha1"
	"github.com/karmada-toolkit/karmada/pkg/domain/services"
)

func exportWork() *workv1alpha1.Work {
	work := &workv1alpha1.Work{ObjectMeta: metav1.ObjectMeta{Namespace: "karmada-es-m1", Name: "web"}}
	work.Spec.Workload.Manifests = []workv1alpha1.Manifest{{RawExtension: runtime.RawExtension{Raw: []byte(
		`{"apiVersion":"multicluster.x-k8s.io/v1alpha1","kind":"ServiceExport","metadata":{"namespace":"default","name":"web"}}`)}}}
	work.Status.Conditions = []metav1.Condition{{Type: workv1alpha1.WorkApplied, Status: metav1.ConditionTrue}}
	return work
}

func TestExportStatus(t *testing.T) {
	m1 := services.ExportingCluster{Name: "m1", Applied: true, Slices: 1}
	m2 := services.ExportingCluster{Name: "m2", Applied: true}
	of := func(cluster services.ExportingCluster, work *workv1alpha1.Work, at int64) (*workv1alpha1.Work, string) {
		t.Helper()
		now := metav1.Time{Time: time.Unix(at, 0)}
		status := services.ExportStatus(services.ExportConditions("web", nil, []services.ExportingCluster{m1, m2}), cluster, work, now)
		next, _, err := services.WithStatus(work, status)
		if err != nil {
			t.Fatal(err)
		}
		text := ""
		for _, c := range status.Conditions {
			text += fmt.Sprintf("%s=%s since %d ", c.Type, c.Status, c.LastTransitionTime.Unix())
		}
		return next, text
	}
	work, text := of(m1, exportWork(), 1)
	if text != "Valid=True since 1 Ready=True since 1 Conflict=False since 1 " {
		t.Error(text)
	}
	if again, _ := of(m1, work, 2); again != work {
		t.Errorf("written again: %v", again.Annotations)
	}
	if _, text = of(m2, work, 3); text != "Valid=True since 1 Ready=False since 3 Conflict=False since 1 " {
		t.Error(text)
	}
}

func TestReport(t *testing.T) {
	with := func(change func(*workv1alpha1.Work)) *workv1alpha1.Work {
		work, _, err := services.WithStatus(exportWork(), map[string]any{"conditions": []any{}})
		if err != nil {
			t.Fatal(err)
		}
		change(work)
		return work
	}
	for name, tc := range map[string]struct {
		work *workv1alpha1.Work
		want bool
	}{
		"a status that the member lacks": {with(func(*workv1alpha1.Work) {}), true},
		"another status in the member": {with(func(w *workv1alpha1.Work) {
			w.Status.ManifestStatuses = []workv1alpha1.ManifestStatus{{Status: &runtime.RawExtension{Raw: []byte(`{"conditions":[{}]}`)}}}
		}), true},
		"the member has it": {with(func(w *workv1alpha1.Work) {
			w.Status.ManifestStatuses = []workv1alpha1.ManifestStatus{{Status: &runtime.RawExtension{Raw: []byte(`{"conditions":[]}`)}}}
		}), false},
		"an empty status": {with(func(w *workv1alpha1.Work) { w.Annotations[services.StatusAnnotation] = "{}" }), false},
		"no status":       {exportWork(), false},
		"not applied":     {with(func(w *workv1alpha1.Work) { w.Status.Conditions = nil }), false},
		"being deleted":   {with(func(w *workv1alpha1.Work) { w.DeletionTimestamp = &metav1.Time{} }), false},
		"suspended":       {with(func(w *workv1alpha1.Work) { w.Spec.SuspendDispatching = new(true) }), false},
		"not JSON":        {with(func(w *workv1alpha1.Work) { w.Annotations[services.StatusAnnotation] = "x" }), false},
		"of another object": {with(func(w *workv1alpha1.Work) {
			w.Spec.Workload.Manifests[0].Raw = []byte(`{"apiVersion":"v1","kind":"Service"}`)
		}), false},
	} {
		if got := services.Report(tc.work) != nil; got != tc.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

func TestImportStatus(t *testing.T) {
	from := func(namespace string) discoveryv1.EndpointSlice {
		return discoveryv1.EndpointSlice{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{"work.karmada.io/namespace": namespace}}}
	}
	got := services.ImportStatus([]discoveryv1.EndpointSlice{from("karmada-es-m2"), from("karmada-es-m1"), from("karmada-es-m2"), from("other")})
	if text := fmt.Sprint(got.Clusters); text != "[{m1} {m2}]" {
		t.Error(text)
	}
}

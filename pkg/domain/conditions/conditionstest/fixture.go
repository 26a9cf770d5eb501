// Package conditionstest aggregates templates as the status controller does, for
// tests.
package conditionstest

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/kubectl/pkg/polymorphichelpers"

	workv1alpha2 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha2"
	"github.com/karmada-toolkit/karmada/pkg/domain/conditions"
	"github.com/karmada-toolkit/karmada/pkg/domain/interpreter"
)

// Fixture is a template of a kind with its members, of which each test changes some.
type Fixture struct {
	t testing.TB
	// Template is the template as it was stored last.
	Template *unstructured.Unstructured
	Targets  []workv1alpha2.TargetCluster
	items    []workv1alpha2.AggregatedStatusItem
	// Now is the time of the next Aggregate.
	Now time.Time
	// Recheck and Writes are what came of the last one, and of all.
	Recheck time.Duration
	Writes  int
	// Store writes the status, if it is set, and returns the object as stored.
	Store func(*unstructured.Unstructured) *unstructured.Unstructured
}

// start is when a test begins.
func start() time.Time { return time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC) }

// New returns a template with target clusters m1, m2 and so on, and the replicas of each.
func New(t testing.TB, apiVersion, kind, spec string, targets ...int32) *Fixture {
	t.Helper()
	f := &Fixture{t: t, Now: start(), Template: &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": apiVersion, "kind": kind,
		"metadata": map[string]any{"namespace": "default", "name": "app", "generation": int64(2)},
		"spec":     tree(t, spec),
	}}}
	for i, replicas := range targets {
		f.Targets = append(f.Targets, workv1alpha2.TargetCluster{Name: fmt.Sprintf("m%d", i+1), Replicas: replicas})
	}
	return f
}

func tree(t testing.TB, text string) map[string]any {
	t.Helper()
	u := &unstructured.Unstructured{}
	if err := json.Unmarshal([]byte(`{"apiVersion":"v1","kind":"X","spec":`+text+`}`), u); err != nil {
		t.Fatal(err)
	}
	spec, _ := u.Object["spec"].(map[string]any)
	return spec
}

// Report sets what the members report; an empty text is a member with a Work and
// no status, "-" one without a Work.
func (f *Fixture) Report(healthy bool, statuses ...string) *Fixture {
	f.items = nil
	for i, text := range statuses {
		if text == "-" {
			continue
		}
		item := workv1alpha2.AggregatedStatusItem{ClusterName: fmt.Sprintf("m%d", i+1), Applied: true, Health: workv1alpha2.ResourceUnhealthy}
		if healthy {
			item.Health = workv1alpha2.ResourceHealthy
		}
		if text != "" {
			item.Status = &runtime.RawExtension{Raw: []byte(text)}
		}
		f.items = append(f.items, item)
	}
	return f
}

// Aggregate does what the status controller does with the template.
func (f *Fixture) Aggregate() *Fixture {
	f.t.Helper()
	aggregated, err := interpreter.New().AggregateStatus(f.Template.DeepCopy(), f.items)
	if err != nil {
		f.t.Fatal(err)
	}
	r, err := conditions.Apply(conditions.Input{Template: f.Template, Aggregated: aggregated, Items: f.items, Targets: f.Targets, Now: f.Now})
	if err != nil {
		f.t.Fatal(err)
	}
	data, err := json.Marshal(r.Template) // as the API server stores it
	if err != nil {
		f.t.Fatal(err)
	}
	stored := &unstructured.Unstructured{}
	if err := json.Unmarshal(data, stored); err != nil {
		f.t.Fatal(err)
	}
	if !cmp.Equal(stored.Object["status"], f.Template.Object["status"]) {
		f.Writes++
		if f.Store != nil {
			stored = f.Store(stored)
		}
	}
	f.Template, f.Recheck = stored, r.Recheck
	return f
}

// Settled expects that the same reports make no second write, however late.
func (f *Fixture) Settled() {
	f.t.Helper()
	before := f.Writes
	f.Now = f.Now.Add(time.Minute)
	f.Aggregate()
	if f.Writes != before {
		f.t.Errorf("the same reports are written again: %v", f.Template.Object["status"])
	}
}

// Condition returns "Status Reason" of a condition, or "".
func (f *Fixture) Condition(name string) string {
	list, _, _ := unstructured.NestedSlice(f.Template.Object, "status", "conditions")
	for _, entry := range list {
		if c, _ := entry.(map[string]any); c["type"] == name {
			return fmt.Sprintf("%v %v", c["status"], c["reason"])
		}
	}
	return ""
}

// RolledOut returns what "kubectl rollout status" finds.
func (f *Fixture) RolledOut() (bool, error) {
	f.t.Helper()
	viewer, err := polymorphichelpers.StatusViewerFor(f.Template.GroupVersionKind().GroupKind())
	if err != nil {
		f.t.Fatal(err)
	}
	_, done, err := viewer.Status(f.Template, 0)
	return done, err
}

// Deployment is the status of a member that runs want replicas of which some
// are updated and available.
func Deployment(want, updated, available int) string {
	return fmt.Sprintf(`{"generation":1,"observedGeneration":1,"resourceTemplateGeneration":2,"replicas":%d,"updatedReplicas":%d,"readyReplicas":%d,"availableReplicas":%d}`,
		want, updated, available, available)
}

// DeploymentSpec is the spec of a Deployment with 4 replicas and the defaults of the
// API server.
const DeploymentSpec = `{"replicas":4,"progressDeadlineSeconds":600,"strategy":{"type":"RollingUpdate","rollingUpdate":{"maxUnavailable":"25%","maxSurge":"25%"}}}`

// Workload is a kind of workload with the statuses of a member that is ready and of
// one that is not.
type Workload struct {
	APIVersion, Kind, Spec string
	Ready, NotReady        string
	// Rollout reports whether "kubectl rollout status" knows the kind.
	Rollout bool
}

// Stage is a state on the way of a workload to two clusters.
type Stage struct {
	Name    string
	Ready   bool
	Reports []string
}

// Stages returns the states in which the workload is on its way to two clusters.
func (w Workload) Stages() []Stage {
	return []Stage{
		{"the second cluster has no work yet", false, []string{w.Ready, "-"}},
		{"the second cluster is not ready", false, []string{w.Ready, w.NotReady}},
		{"both are ready", true, []string{w.Ready, w.Ready}},
	}
}

// Workloads returns the kinds of workloads of Kubernetes that have a status.
func Workloads() []Workload {
	const generations = `"generation":1,"observedGeneration":1,"resourceTemplateGeneration":2`
	return []Workload{
		{"apps/v1", "Deployment", DeploymentSpec, Deployment(2, 2, 2), Deployment(2, 2, 1), true},
		{
			"apps/v1", "StatefulSet", `{"replicas":4,"updateStrategy":{"type":"RollingUpdate","rollingUpdate":{"partition":0}}}`,
			`{` + generations + `,"replicas":2,"readyReplicas":2,"currentReplicas":2,"updatedReplicas":2,"availableReplicas":2}`,
			`{` + generations + `,"replicas":2,"readyReplicas":1,"currentReplicas":2,"updatedReplicas":2}`, true,
		},
		{
			"apps/v1", "DaemonSet", `{"updateStrategy":{"type":"RollingUpdate"}}`,
			`{` + generations + `,"currentNumberScheduled":1,"desiredNumberScheduled":1,"numberAvailable":1,"numberReady":1,"updatedNumberScheduled":1}`,
			`{` + generations + `,"currentNumberScheduled":1,"desiredNumberScheduled":1,"updatedNumberScheduled":1}`, true,
		},
		{
			"apps/v1", "ReplicaSet", `{"replicas":4}`,
			`{` + generations + `,"replicas":2,"readyReplicas":2,"availableReplicas":2}`,
			`{` + generations + `,"replicas":2,"readyReplicas":1,"availableReplicas":1}`, false,
		},
		{
			"batch/v1", "Job", `{"completions":4}`,
			`{"succeeded":2,"startTime":"2026-01-01T11:00:00Z","completionTime":"2026-01-01T11:01:00Z","conditions":[{"type":"Complete","status":"True"}]}`,
			``, false,
		},
		{
			"v1", "Pod", `{}`,
			`{"phase":"Running","conditions":[{"type":"Ready","status":"True"},{"type":"ContainersReady","status":"True"}]}`,
			`{"phase":"Running","conditions":[{"type":"Ready","status":"False","reason":"ContainersNotReady"}]}`, false,
		},
	}
}

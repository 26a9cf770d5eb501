package interpreter

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	configv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/config/v1alpha1"
	workv1alpha2 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha2"
	"github.com/karmada-toolkit/karmada/pkg/domain/interpreter/lua"
)

func members(statuses ...string) []workv1alpha2.AggregatedStatusItem {
	var items []workv1alpha2.AggregatedStatusItem
	for i, status := range statuses {
		it := workv1alpha2.AggregatedStatusItem{ClusterName: "m" + string(rune('1'+i)), Applied: true}
		if status != "" {
			it.Status = &runtime.RawExtension{Raw: []byte(status)}
		}
		items = append(items, it)
	}
	return items
}

func TestHookEnabled(t *testing.T) {
	in := New()
	custom := schema.GroupVersionKind{Group: "example.io", Version: "v1", Kind: "Foo"}
	if !in.HookEnabled(custom, configv1alpha1.InterpreterOperationInterpretStatus) {
		t.Error("the status of any kind is collected")
	}
	if in.HookEnabled(custom, configv1alpha1.InterpreterOperationInterpretHealth) {
		t.Error("an unknown kind has no health")
	}
	if in.HookEnabled(schema.GroupVersionKind{Group: "apps", Version: "v1beta1", Kind: "Deployment"}, configv1alpha1.InterpreterOperationInterpretReplica) {
		t.Error("another version is another kind")
	}
	if in.HookEnabled(schema.GroupVersionKind{Group: "batch", Version: "v1", Kind: "Job"}, configv1alpha1.InterpreterOperationInterpretHealth) {
		t.Error("Jobs have no health")
	}
}

func TestUnknownKind(t *testing.T) {
	in, obj := New(), parse(t, `{apiVersion: example.io/v1, kind: Foo, metadata: {name: a}, status: {x: 1}}`)
	_, _, err := in.GetReplicas(obj)
	if !errors.Is(err, ErrNoRule) || err.Error() != `default InterpretReplica interpreter for "example.io/v1, Kind=Foo" not found` {
		t.Error(err)
	}
	if _, err := in.GetComponents(obj); !errors.Is(err, ErrNoRule) || err.Error() != "interface GetComponents not implemented yet" {
		t.Error(err)
	}
	if _, err := in.GetDependencies(obj); !errors.Is(err, ErrNoRule) || err.Error() != "default interpreter for operation InterpretDependency not found" {
		t.Error(err)
	}
	status, err := in.ReflectStatus(obj)
	if err != nil || string(status.Raw) != `{"x":1}` {
		t.Errorf("got %s, %v", status.Raw, err)
	}
}

type fakeLayer struct{ rules *Rules }

func (f fakeLayer) Rules(schema.GroupVersionKind) *Rules { return f.rules }

func TestLayers_TheFirstRuleAnswersAlsoWhenItFails(t *testing.T) {
	broken := errors.New("broken")
	in := New(
		WithLayer(fakeLayer{&Rules{Health: func(*unstructured.Unstructured) (bool, error) { return true, broken }}}),
		WithLayer(fakeLayer{&Rules{
			Health:   func(*unstructured.Unstructured) (bool, error) { return true, nil },
			Replicas: func(*unstructured.Unstructured) (int32, *workv1alpha2.ReplicaRequirements, error) { return 7, nil, nil },
		}}))
	obj := parse(t, deploymentYAML)
	if _, err := in.InterpretHealth(obj); !errors.Is(err, broken) {
		t.Errorf("got %v", err)
	}
	if n, _, err := in.GetReplicas(obj); n != 7 || err != nil {
		t.Errorf("got %d, %v", n, err)
	}
	if _, err := in.ReflectStatus(obj); err != nil {
		t.Error(err)
	}
}

func TestGetReplicas_PriorityClassName(t *testing.T) {
	obj := parse(t, `{apiVersion: apps/v1, kind: Deployment, metadata: {name: a, namespace: default}, spec: {template: {spec: {
priorityClassName: high, containers: [{name: a, resources: {requests: {cpu: 1}}}]}}}}`)
	for enabled, want := range map[bool]string{false: "", true: "high"} {
		_, requirements, err := New(WithPriorityClassName(enabled)).GetReplicas(obj)
		if err != nil || requirements == nil || requirements.PriorityClassName != want {
			t.Errorf("enabled %v: %+v, %v", enabled, requirements, err)
		}
	}
}

func TestAggregateJob(t *testing.T) {
	now := metav1.NewTime(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))
	in := New(func(s *settings) { s.now = func() metav1.Time { return now } })
	job := parse(t, `{apiVersion: batch/v1, kind: Job, metadata: {name: a, namespace: default}, spec: {}}`)
	got, err := in.AggregateStatus(job, members(
		`{"succeeded":1,"startTime":"2026-01-01T01:00:00Z","completionTime":"2026-01-01T03:00:00Z","conditions":[{"type":"SuccessCriteriaMet","status":"True"},{"type":"Complete","status":"True"}]}`,
		`{"succeeded":2,"startTime":"2026-01-01T00:00:00Z","completionTime":"2026-01-01T02:00:00Z","conditions":[{"type":"SuccessCriteriaMet","status":"True"},{"type":"Complete","status":"True"}]}`))
	if err != nil {
		t.Fatal(err)
	}
	condition := func(kind, reason, message string) map[string]any {
		return map[string]any{"type": kind, "status": "True", "reason": reason, "message": message,
			"lastProbeTime": "2026-01-02T03:04:05Z", "lastTransitionTime": "2026-01-02T03:04:05Z"}
	}
	want := map[string]any{
		"succeeded": int64(3), "startTime": "2026-01-01T00:00:00Z", "completionTime": "2026-01-01T03:00:00Z",
		"conditions": []any{
			condition("Complete", "Completed", "Job completed"),
			condition("SuccessCriteriaMet", "CompletionsReached", "All member clusters have met success criteria"),
		},
	}
	if diff := cmp.Diff(want, got.Object["status"]); diff != "" {
		t.Error(diff)
	}
	again, err := in.AggregateStatus(got, members(`{"active":1}`))
	if err != nil || again != got {
		t.Errorf("a finished Job changed: %v", err)
	}
	failed, err := in.AggregateStatus(job, members(`{"failed":1,"conditions":[{"type":"Failed","status":"True"}]}`, "", `{"conditions":[{"type":"Failed","status":"True"}]}`))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]any{condition("Failed", "JobFailed", "Job executed failed in member clusters m1,m3")}, child(failed.Object, "status")["conditions"]); diff != "" {
		t.Error(diff)
	}
}

func TestAggregate_NothingNewReturnsTheTemplate(t *testing.T) {
	in, obj := New(), parse(t, deploymentYAML)
	got, err := in.AggregateStatus(obj, members(`{"replicas":2,"updatedReplicas":2,"readyReplicas":2,"availableReplicas":2}`))
	if err != nil || got != obj {
		t.Errorf("got another object, %v", err)
	}
}

func TestAggregate_BrokenStatusIsLeftOut(t *testing.T) {
	for _, broken := range []string{`{"replicas":"x","readyReplicas":7}`, `{"replicas":1e300}`, `[]`, `{"x":"1e-300000000"}`} {
		got, err := New().AggregateStatus(parse(t, deploymentYAML), members(`{"replicas":1,"readyReplicas":1}`, broken))
		if err != nil {
			t.Fatal(err)
		}
		if n := child(got.Object, "status")["readyReplicas"]; n != int64(1) {
			t.Errorf("%s: %v replicas are ready", broken, n)
		}
	}
}

func TestInterpreter_HostileQuantities(t *testing.T) {
	for _, q := range []string{"1e300000000", "1e-300000000", strings.Repeat("9", 100)} {
		if _, err := resourceAdd([]any{"1", q}); err == nil {
			t.Errorf("%.20s was added", q)
		}
		if _, err := getResourceQuantity([]any{q}); err == nil {
			t.Errorf("%.20s was read", q)
		}
	}
	template := map[string]any{"spec": map[string]any{"containers": []any{map[string]any{
		"resources": map[string]any{"requests": map[string]any{"cpu": "1e-300000000"}},
	}}}}
	if _, err := accuratePodRequirements([]any{template}); err == nil {
		t.Error("the requirements of a pod were computed")
	}
}

// TestInterpreter_TextLikeANumber has abbreviated hashes that read like numbers where a pod template has text.
func TestInterpreter_TextLikeANumber(t *testing.T) {
	const hash = "1e23456"
	template := map[string]any{
		"metadata": map[string]any{"labels": map[string]any{"commit": hash}},
		"spec": map[string]any{"containers": []any{map[string]any{
			"env":       []any{map[string]any{"name": "COMMIT", "value": hash}},
			"args":      []any{hash},
			"resources": map[string]any{"requests": map[string]any{"cpu": "100m"}},
		}}},
	}
	got, err := accuratePodRequirements([]any{template})
	if err != nil {
		t.Fatal(err)
	}
	if text := fmt.Sprint(got); !strings.Contains(text, "100m") {
		t.Errorf("got %s", text)
	}
}

// TestInterpreter_ASlowObjectCostsItsClusterOnly has a script exceed its limits for the
// objects of one cluster.
func TestInterpreter_ASlowObjectCostsItsClusterOnly(t *testing.T) {
	layer := NewDeclarative(NewLuaEngine(lua.Limits{Memory: 1 << 20}))
	c := &configv1alpha1.ResourceInterpreterCustomization{}
	c.Spec.Target = configv1alpha1.CustomizationTarget{APIVersion: "v1", Kind: "Slow"}
	c.Spec.Customizations.HealthInterpretation = &configv1alpha1.HealthInterpretation{LuaScript: `function InterpretHealth(obj)
  while obj.slow do end
  return true
end`}
	layer.Load([]*configv1alpha1.ResourceInterpreterCustomization{c})
	in := New(WithLayer(layer))
	slow := parse(t, `{apiVersion: v1, kind: Slow, slow: true}`)
	quick := parse(t, `{apiVersion: v1, kind: Slow}`)
	for range 5 {
		if _, err := in.ForCluster("m1").InterpretHealth(slow); !errors.Is(err, lua.ErrLimit) {
			t.Fatal(err)
		}
	}
	if _, err := in.ForCluster("m1").InterpretHealth(quick); !errors.Is(err, lua.ErrLimit) {
		t.Errorf("the script is not paused for the cluster: %v", err)
	}
	for name, other := range map[string]*Interpreter{"another cluster": in.ForCluster("m2"), "templates": in} {
		if healthy, err := other.InterpretHealth(quick); err != nil || !healthy {
			t.Errorf("%s: %v, %v", name, healthy, err)
		}
	}
}

func TestAggregateService_MergesAndSorts(t *testing.T) {
	svc := parse(t, `{apiVersion: v1, kind: Service, metadata: {name: a}, spec: {type: LoadBalancer}}`)
	got, err := New().AggregateStatus(svc, members(
		`{"loadBalancer":{"ingress":[{"ip":"2.2.2.2"},{"hostname":"b"},{"ip":"1.1.1.1","ports":[{"port":443,"protocol":"TCP"}]}]}}`,
		`{"loadBalancer":{"ingress":[{"hostname":"a"},{"ip":"1.1.1.1","ports":[{"port":80,"protocol":"TCP","error":"x"},{"port":80,"protocol":"TCP"},{"port":443,"protocol":"TCP"}]},{"ip":"1.1.1.1","ipMode":"VIP"}]}}`))
	if err != nil {
		t.Fatal(err)
	}
	port := func(n int64) map[string]any { return map[string]any{"port": n, "protocol": "TCP"} }
	want := []any{
		map[string]any{"hostname": "a"},
		map[string]any{"hostname": "b"},
		map[string]any{"ip": "1.1.1.1", "ipMode": "VIP"},
		map[string]any{"ip": "1.1.1.1", "ports": []any{port(80), map[string]any{"port": int64(80), "protocol": "TCP", "error": "x"}, port(443)}},
		map[string]any{"ip": "2.2.2.2"},
	}
	if diff := cmp.Diff(want, child(got.Object, "status", "loadBalancer")["ingress"]); diff != "" {
		t.Error(diff)
	}
}

func TestLenientStatus(t *testing.T) {
	sts := parse(t, `{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: a, generation: 3}, status: {replicas: 1, availableReplicas: 1, observedGeneration: 3}}`)
	if _, err := New().ReflectStatus(sts); err == nil {
		t.Error("without the annotation want an error")
	}
	in := New(WithLenientStatus())
	status, err := in.ReflectStatus(sts)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := string(status.Raw), `{"observedGeneration":3,"replicas":1,"availableReplicas":1,"generation":3}`; got != want {
		t.Errorf("got %s", got)
	}
	template := parse(t, `{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: a, generation: 5}}`)
	got, err := in.AggregateStatus(template, members(`{"observedGeneration":3,"generation":3,"resourceTemplateGeneration":5,"replicas":1}`))
	if err != nil {
		t.Fatal(err)
	}
	if n := number(child(got.Object, "status"), "observedGeneration"); n != 5 {
		t.Errorf("observed generation %d", n)
	}
}

func TestVerifyDependencies(t *testing.T) {
	for _, tc := range []struct {
		name string
		d    configv1alpha1.DependentObjectReference
		ok   bool
	}{
		{"by name", configv1alpha1.DependentObjectReference{APIVersion: "v1", Kind: "Secret", Name: "a"}, true},
		{"by selector", configv1alpha1.DependentObjectReference{APIVersion: "v1", Kind: "Secret", LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"a": "b"}}}, true},
		{"without version", configv1alpha1.DependentObjectReference{Kind: "Secret", Name: "a"}, false},
		{"without kind", configv1alpha1.DependentObjectReference{APIVersion: "v1", Name: "a"}, false},
		{"without name and selector", configv1alpha1.DependentObjectReference{APIVersion: "v1", Kind: "Secret"}, false},
		{"with a bad selector", configv1alpha1.DependentObjectReference{APIVersion: "v1", Kind: "Secret", LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"a": "-b-"}}}, false},
	} {
		if err := VerifyDependencies([]configv1alpha1.DependentObjectReference{tc.d}); (err == nil) != tc.ok {
			t.Errorf("%s: %v", tc.name, err)
		}
	}
}

func TestIngressDependencies_EmptySecretNamesAreSkipped(t *testing.T) {
	got, err := New().GetDependencies(parse(t, `{apiVersion: networking.k8s.io/v1, kind: Ingress, metadata: {name: a, namespace: ns}, spec: {tls: [{hosts: [h]}, {secretName: b}, {secretName: a}]}}`))
	if err != nil {
		t.Fatal(err)
	}
	want := []configv1alpha1.DependentObjectReference{
		{APIVersion: "v1", Kind: "Secret", Namespace: "ns", Name: "a"}, {APIVersion: "v1", Kind: "Secret", Namespace: "ns", Name: "b"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestRevise_OwnedByTheCaller(t *testing.T) {
	obj := parse(t, deploymentYAML)
	before := obj.DeepCopy()
	got, err := New().ReviseReplica(obj, 5)
	if err != nil {
		t.Fatal(err)
	}
	got.SetLabels(nil)
	child(got.Object, "spec", "template", "metadata")["labels"] = nil
	if diff := cmp.Diff(before.Object, obj.Object); diff != "" {
		t.Error("the template changed:", diff)
	}
	if n := number(child(got.Object, "spec"), "replicas"); n != 5 {
		t.Errorf("got %d replicas", n)
	}
}

func TestAggregateDisruptionBudget_CountersAreWrittenWithoutAnyStatus(t *testing.T) {
	in := New()
	template := parse(t, `{"apiVersion":"policy/v1","kind":"PodDisruptionBudget","metadata":{"name":"b"}}`)
	want := map[string]any{"currentHealthy": int64(0), "desiredHealthy": int64(0), "disruptionsAllowed": int64(0), "expectedPods": int64(0)}
	got, err := in.AggregateStatus(template, nil)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got.Object["status"]); diff != "" {
		t.Error(diff)
	}
	again, err := in.AggregateStatus(got, nil)
	if err != nil || again != got {
		t.Errorf("aggregated again: %v, %v", again, err)
	}
}

func TestAggregateCronJob_KeepsTheLatestTimes(t *testing.T) {
	template := parse(t, `{"apiVersion":"batch/v1","kind":"CronJob","metadata":{"name":"c"}}`)
	const latest = "2026-01-02T00:00:00Z"
	got, err := New().AggregateStatus(template, members(
		`{"lastScheduleTime":"`+latest+`","lastSuccessfulTime":"`+latest+`"}`,
		`{"lastScheduleTime":"2026-01-01T00:00:00Z","lastSuccessfulTime":"2026-01-01T00:00:00Z"}`))
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]any{"lastScheduleTime": latest, "lastSuccessfulTime": latest}
	if diff := cmp.Diff(want, got.Object["status"]); diff != "" {
		t.Error(diff)
	}
}

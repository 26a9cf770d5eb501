package interpreter

import (
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/karmada-toolkit/karmada/internal/build"
	configv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/config/v1alpha1"
	"github.com/karmada-toolkit/karmada/pkg/domain/interpreter/lua"
)

func customization(t testing.TB, name, customizations string) *configv1alpha1.ResourceInterpreterCustomization {
	t.Helper()
	c := &configv1alpha1.ResourceInterpreterCustomization{}
	c.Name = name
	c.Spec.Target = configv1alpha1.CustomizationTarget{APIVersion: "example.io/v1", Kind: "Foo"}
	if err := yaml.UnmarshalStrict([]byte(customizations), &c.Spec.Customizations); err != nil {
		t.Fatal(err)
	}
	return c
}

func declarative(t testing.TB, customizations ...*configv1alpha1.ResourceInterpreterCustomization) (*Interpreter, *Declarative) {
	t.Helper()
	layer := NewDeclarative(NewLuaEngine(lua.DefaultLimits()))
	layer.Load(customizations)
	return New(WithLayer(layer)), layer
}

const foo = `{apiVersion: example.io/v1, kind: Foo, metadata: {name: a, namespace: ns}, spec: {size: 3, empty: {}, list: [], template: {spec: {serviceAccountName: robot, containers: [{name: a, resources: {requests: {cpu: 1500m}}}]}}}, status: {ok: true, conditions: []}}`

func TestDeclarative_Operations(t *testing.T) {
	in, _ := declarative(t, customization(t, "foo", `
replicaResource: {luaScript: "local kube = require('kube') function GetReplicas(o) return o.spec.size, kube.accuratePodRequirements(o.spec.template) end"}
componentResource: {luaScript: "function GetComponents(o) return {{name = 'a', replicas = 2}} end"}
replicaRevision: {luaScript: "function ReviseReplica(o, n) o.spec.size = n return o end"}
retention: {luaScript: "function Retain(d, o) d.spec.size = o.spec.size d.spec.gone = {} return d end"}
statusReflection: {luaScript: "function ReflectStatus(o) return o.status end"}
statusAggregation: {luaScript: "function AggregateStatus(o, items) o.status = {count = #items, first = items[1].clusterName} return o end"}
healthInterpretation: {luaScript: "function InterpretHealth(o) return o.status.ok end"}
dependencyInterpretation: {luaScript: "local kube = require('kube') function GetDependencies(o) return kube.getPodDependencies(o.spec.template, o.metadata.namespace) end"}
`))
	obj := parse(t, foo)
	before := obj.DeepCopy()
	replicas, requirements, err := in.GetReplicas(obj)
	if err != nil || replicas != 3 || requirements.ResourceRequest.Cpu().String() != "1500m" {
		t.Errorf("GetReplicas: %d, %v, %v", replicas, requirements, err)
	}
	if components, err := in.GetComponents(obj); err != nil || len(components) != 1 || components[0].Replicas != 2 {
		t.Errorf("GetComponents: %v, %v", components, err)
	}
	revised, err := in.ReviseReplica(obj, 7)
	if err != nil {
		t.Fatal(err)
	}
	want := obj.DeepCopy()
	child(want.Object, "spec")["size"] = int64(7)
	if diff := cmp.Diff(want.Object, revised.Object); diff != "" {
		t.Error("ReviseReplica:", diff)
	}
	observed := parse(t, strings.Replace(foo, "size: 3", "size: 9", 1))
	retained, err := in.Retain(obj, observed)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(observed.Object, retained.Object); diff != "" {
		t.Error("Retain:", diff)
	}
	if status, err := in.ReflectStatus(obj); err != nil || string(status.Raw) != `{"ok":true}` {
		t.Errorf("ReflectStatus: %s, %v", status.Raw, err)
	}
	aggregated, err := in.AggregateStatus(obj, members(`{}`, ``))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]any{"count": int64(2), "first": "m1"}, aggregated.Object["status"]); diff != "" {
		t.Error("AggregateStatus:", diff)
	}
	if healthy, err := in.InterpretHealth(obj); err != nil || !healthy {
		t.Errorf("InterpretHealth: %v, %v", healthy, err)
	}
	dependencies, err := in.GetDependencies(obj)
	if diff := cmp.Diff([]configv1alpha1.DependentObjectReference{{APIVersion: "v1", Kind: "ServiceAccount", Namespace: "ns", Name: "robot"}}, dependencies); diff != "" || err != nil {
		t.Error("GetDependencies:", diff, err)
	}
	if diff := cmp.Diff(before.Object, obj.Object); diff != "" {
		t.Error("the object changed:", diff)
	}
}

func TestDeclarative_Errors(t *testing.T) {
	obj := parse(t, foo)
	for _, tc := range []struct {
		name, customization, want string
		run                       func(in *Interpreter) error
	}{
		{"replicas", `replicaResource: {luaScript: "function GetReplicas(o) return 'x' end"}`, "result type string is not number",
			func(in *Interpreter) error { _, _, err := in.GetReplicas(obj); return err }},
		{"requirements", `replicaResource: {luaScript: "function GetReplicas(o) return 1, 2 end"}`, "expect the returned requires type is table but got number",
			func(in *Interpreter) error { _, _, err := in.GetReplicas(obj); return err }},
		{"components", `componentResource: {luaScript: "function GetComponents(o) return 1 end"}`, "expected result type 'table' or 'nil' from GetComponents, but got 'number'",
			func(in *Interpreter) error { _, err := in.GetComponents(obj); return err }},
		{"status", `statusReflection: {luaScript: "function ReflectStatus(o) end"}`, "expect the returned replica type is table but got nil",
			func(in *Interpreter) error { _, err := in.ReflectStatus(obj); return err }},
		{"health", `healthInterpretation: {luaScript: "function InterpretHealth(o) return 1 end"}`, "result type number is not bool",
			func(in *Interpreter) error { _, err := in.InterpretHealth(obj); return err }},
		{"dependencies", `dependencyInterpretation: {luaScript: "function GetDependencies(o) end"}`, "expect the returned requires type is table but got nil",
			func(in *Interpreter) error { _, err := in.GetDependencies(obj); return err }},
		{"a dependency without kind", `dependencyInterpretation: {luaScript: "function GetDependencies(o) return {{apiVersion = 'v1', name = 'a'}} end"}`, "missing required kind",
			func(in *Interpreter) error { _, err := in.GetDependencies(obj); return err }},
		{"an object without kind", `replicaRevision: {luaScript: "function ReviseReplica(o) return {a = 1} end"}`, "no kind",
			func(in *Interpreter) error { _, err := in.ReviseReplica(obj, 1); return err }},
		{"a missing function", `healthInterpretation: {luaScript: "x = 1"}`, "not found function InterpretHealth",
			func(in *Interpreter) error { _, err := in.InterpretHealth(obj); return err }},
		{"syntax", `healthInterpretation: {luaScript: "function"}`, "<string>",
			func(in *Interpreter) error { _, err := in.InterpretHealth(obj); return err }},
	} {
		t.Run(tc.name, func(t *testing.T) {
			in, _ := declarative(t, customization(t, "foo", tc.customization))
			if err := tc.run(in); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, want %q", err, tc.want)
			}
		})
	}
}

func TestDeclarative_NoHealthReturnedIsUnhealthy(t *testing.T) {
	in, _ := declarative(t, customization(t, "foo", `healthInterpretation: {luaScript: "function InterpretHealth(o) end"}`))
	if healthy, err := in.InterpretHealth(parse(t, foo)); healthy || err != nil {
		t.Errorf("got %v, %v", healthy, err)
	}
}

func TestDeclarative_Merge(t *testing.T) {
	health := func(value string) string {
		return `healthInterpretation: {luaScript: "function InterpretHealth(o) return ` + value + ` end"}`
	}
	depend := func(names string) string {
		return `dependencyInterpretation: {luaScript: "function GetDependencies(o) local l = {} for n in string.gmatch('` + names + `', '%w+') do l[#l + 1] = {apiVersion = 'v1', kind = 'Secret', namespace = 'ns', name = n} end return l end"}`
	}
	in, layer := declarative(t,
		customization(t, "c", health("false")+"\n"+depend("b a")),
		customization(t, "b", health("true")+"\n"+depend("c b")),
		customization(t, "a", `healthInterpretation: {luaScript: ""}`))
	obj := parse(t, foo)
	if healthy, err := in.InterpretHealth(obj); !healthy || err != nil {
		t.Errorf("the first script by name must win: %v, %v", healthy, err)
	}
	dependencies, err := in.GetDependencies(obj)
	var names []string
	for _, d := range dependencies {
		names = append(names, d.Name)
	}
	if diff := cmp.Diff([]string{"a", "b", "c"}, names); diff != "" || err != nil {
		t.Error(diff, err)
	}
	layer.Load(nil)
	if in.HookEnabled(schema.GroupVersionKind{Group: "example.io", Version: "v1", Kind: "Foo"}, configv1alpha1.InterpreterOperationInterpretHealth) {
		t.Error("removed rules are still there")
	}
}

func TestDeclarative_ChangesWhileCallsRun(t *testing.T) {
	one := customization(t, "foo", `healthInterpretation: {luaScript: "function InterpretHealth(o) return true end"}`)
	two := customization(t, "foo", `healthInterpretation: {luaScript: "function InterpretHealth(o) return not false end"}`)
	in, layer := declarative(t, one)
	obj := parse(t, foo)
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 50 {
				if healthy, err := in.InterpretHealth(obj); !healthy || err != nil {
					t.Errorf("got %v, %v", healthy, err)
					return
				}
			}
		})
	}
	for i := range 50 {
		layer.Load([]*configv1alpha1.ResourceInterpreterCustomization{[]*configv1alpha1.ResourceInterpreterCustomization{one, two}[i%2]})
	}
	wg.Wait()
}

func TestKube(t *testing.T) {
	for _, tc := range []struct {
		name string
		fn   func([]any) (any, error)
		args []any
		want any
		err  bool
	}{
		{"sum", resourceAdd, []any{"500m", nil, "1"}, "1500m", false},
		{"sum of nothing", resourceAdd, nil, "0", false},
		{"sum of a number", resourceAdd, []any{int64(1)}, nil, true},
		{"sum of no quantity", resourceAdd, []any{"x"}, nil, true},
		{"quantity", getResourceQuantity, []any{"1500m"}, 1.5, false},
		{"no quantity", getResourceQuantity, []any{nil}, 0.0, false},
		{"negative quantity", getResourceQuantity, []any{"-1"}, nil, true},
		{"requirements of no template", accuratePodRequirements, []any{"x"}, nil, true},
		{"requirements of two", accuratePodRequirements, []any{map[string]any{}, map[string]any{}}, nil, true},
		{"no requirements", accuratePodRequirements, []any{map[string]any{}}, nil, false},
		{"dependencies need a namespace argument", getPodDependencies, []any{map[string]any{}}, nil, true},
		{"no dependencies", getPodDependencies, []any{map[string]any{}, nil}, nil, false},
		{"the default namespace", getPodDependencies, []any{map[string]any{"spec": map[string]any{"serviceAccountName": "a"}}, nil},
			[]any{map[string]any{"apiVersion": "v1", "kind": "ServiceAccount", "namespace": "default", "name": "a"}}, false},
	} {
		got, err := tc.fn(tc.args)
		if (err != nil) != tc.err {
			t.Errorf("%s: %v", tc.name, err)
		}
		if diff := cmp.Diff(tc.want, got); diff != "" {
			t.Errorf("%s: %s", tc.name, diff)
		}
	}
}

func FuzzGetReplicas(f *testing.F) {
	f.Add("100m", "1Gi", "nvidia.com/gpu", "1", int64(3))
	f.Add("-1", "1e30", "hugepages-2Mi", "0", int64(-1))
	in := New()
	f.Fuzz(func(t *testing.T, cpu, memory, name, amount string, replicas int64) {
		obj := parse(t, deploymentYAML)
		spec := child(obj.Object, "spec")
		spec["replicas"] = replicas
		c, _ := list(child(spec, "template", "spec"), "containers")[0].(map[string]any)
		c["resources"] = map[string]any{"requests": map[string]any{"cpu": cpu, "memory": memory}, "limits": map[string]any{name: amount}}
		build.Bounded(t, time.Minute, 64<<20+uint64(4096*(len(cpu)+len(memory)+len(name)+len(amount))), func() {
			_, requirements, err := in.GetReplicas(obj)
			if err != nil || requirements == nil {
				return
			}
			if _, err := encode(requirements); err != nil {
				t.Error(err)
			}
		})
	})
}

func TestLoad_ReturnsTheKindsThatChanged(t *testing.T) {
	layer := NewDeclarative(NewLuaEngine(lua.DefaultLimits()))
	health := func(name, kind, script string) *configv1alpha1.ResourceInterpreterCustomization {
		c := &configv1alpha1.ResourceInterpreterCustomization{}
		c.Name, c.Spec.Target = name, configv1alpha1.CustomizationTarget{APIVersion: "example.io/v1", Kind: kind}
		c.Spec.Customizations.HealthInterpretation = &configv1alpha1.HealthInterpretation{LuaScript: script}
		return c
	}
	kinds := func(list ...*configv1alpha1.ResourceInterpreterCustomization) string {
		var names []string
		for _, gvk := range layer.Load(list) {
			names = append(names, gvk.Kind)
		}
		slices.Sort(names)
		return strings.Join(names, ",")
	}
	a, b := health("a", "A", "x = 1"), health("b", "B", "x = 1")
	for i, step := range []struct{ got, want string }{
		{kinds(a, b), "A,B"},
		{kinds(b, a), ""},
		{kinds(a, health("b", "B", "x = 2")), "B"},
		{kinds(a, health("b", "B", "x = 2"), health("c", "A", "x = 3")), ""}, // the first one counts
		{kinds(health("b", "B", "x = 2"), health("c", "A", "x = 3")), "A"},
		{kinds(), "A,B"},
	} {
		if step.got != step.want {
			t.Errorf("step %d: %q changed, want %q", i, step.got, step.want)
		}
	}
}

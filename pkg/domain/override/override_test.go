package override

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
	policyv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/policy/v1alpha1"
)

func parse(t testing.TB, text string, into any) {
	t.Helper()
	if err := yaml.UnmarshalStrict([]byte(text), into); err != nil {
		t.Fatal(err)
	}
}

func object(t testing.TB, text string) *unstructured.Unstructured {
	t.Helper()
	data, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	obj := &unstructured.Unstructured{}
	if err := obj.UnmarshalJSON(data); err != nil {
		t.Fatal(err)
	}
	return obj
}

func cluster(name string) *clusterv1alpha1.Cluster {
	c := &clusterv1alpha1.Cluster{}
	c.Name = name
	return c
}

func op(t testing.TB, name, spec string) *policyv1alpha1.OverridePolicy {
	t.Helper()
	p := &policyv1alpha1.OverridePolicy{}
	p.Namespace, p.Name = "default", name
	parse(t, spec, &p.Spec)
	return p
}

func cop(t testing.TB, name, spec string) *policyv1alpha1.ClusterOverridePolicy {
	t.Helper()
	p := &policyv1alpha1.ClusterOverridePolicy{}
	p.Name = name
	parse(t, spec, &p.Spec)
	return p
}

const deployment = `{apiVersion: apps/v1, kind: Deployment, metadata: {name: web, namespace: default, labels: {app: web}},
  spec: {replicas: 2, template: {spec: {initContainers: [{name: i, image: busybox}], containers: [{name: a, image: "nginx:1.19", args: [x, z, x]}, {name: b, image: "r.io:5000/t/app@sha256:1111111111111111111111111111111111111111111111111111111111111111"}]}}}}`

func apply(t *testing.T, text string, policies ...policyv1alpha1.OverridePolicyObject) (*unstructured.Unstructured, Applied) {
	t.Helper()
	obj := object(t, text)
	before := obj.DeepCopy()
	got, applied, err := Apply(obj, cluster("m1"), policies)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(before.Object, obj.Object); diff != "" {
		t.Error("the template changed:", diff)
	}
	return got, applied
}

func TestApply_NothingMatchesReturnsTheObjectItself(t *testing.T) {
	obj := object(t, deployment)
	other := op(t, "other", `overrideRules: [{overriders: {labelsOverrider: [{operator: add, value: {a: b}}]}}]`)
	other.Namespace = "elsewhere"
	got, applied, err := Apply(obj, cluster("m1"), Policies{
		other,
		op(t, "cluster", `overrideRules: [{targetCluster: {clusterNames: [m2]}, overriders: {labelsOverrider: [{operator: add, value: {a: b}}]}}]`),
		cop(t, "kind", `{resourceSelectors: [{apiVersion: v1, kind: Pod}], overrideRules: [{overriders: {labelsOverrider: [{operator: add, value: {a: b}}]}}]}`),
	})
	if err != nil || got != obj {
		t.Errorf("got another object, %v", err)
	}
	if annotations, err := applied.Annotations(); annotations != nil || err != nil {
		t.Errorf("got %v, %v", annotations, err)
	}
}

func TestApply_Order(t *testing.T) {
	set := func(value string) string {
		return `overrideRules: [{overriders: {annotationsOverrider: [{operator: add, value: {last: ` + value + `}}]}}]`
	}
	selectors := func(by string) string {
		return `resourceSelectors: [{apiVersion: apps/v1, kind: Deployment` + by + "}]\n"
	}
	got, applied := apply(t, deployment,
		op(t, "c", selectors("")+set("c")),
		op(t, "a", selectors(", name: web")+set("named")),
		op(t, "b", set("b")),
		cop(t, "z", selectors(", name: web")+set("cluster")),
		op(t, "l", selectors(", labelSelector: {matchLabels: {app: web}}")+set("labelled")),
	)
	if last := got.GetAnnotations()["last"]; last != "named" {
		t.Errorf("got %q, the most specific policy must win", last)
	}
	var names []string
	for _, rule := range append(applied.Cluster, applied.Namespaced...) {
		names = append(names, rule.PolicyName)
	}
	if diff := cmp.Diff([]string{"z", "b", "c", "l", "a"}, names); diff != "" {
		t.Error(diff)
	}
	annotations, err := applied.Annotations()
	if err != nil {
		t.Fatal(err)
	}
	if got := annotations[policyv1alpha1.AppliedClusterOverridesAnnotation]; got != `[{"policyName":"z","overriders":{"annotationsOverrider":[{"operator":"add","value":{"last":"cluster"}}]}}]` {
		t.Error(got)
	}
	if got := annotations[policyv1alpha1.AppliedOverridesAnnotation]; !strings.HasPrefix(got, `[{"policyName":"a",`) || strings.Count(got, "policyName") != 4 {
		t.Error(got)
	}
}

func TestApply_LabelsOfClusterPoliciesAreSeenByNamespacedOnes(t *testing.T) {
	got, _ := apply(t, deployment,
		cop(t, "a", `overrideRules: [{overriders: {labelsOverrider: [{operator: add, value: {tier: fe}}]}}]`),
		op(t, "b", `{resourceSelectors: [{apiVersion: apps/v1, kind: Deployment, labelSelector: {matchLabels: {tier: fe}}}], overrideRules: [{overriders: {labelsOverrider: [{operator: add, value: {seen: "yes"}}]}}]}`))
	if got.GetLabels()["seen"] != "yes" {
		t.Error("the policy did not match")
	}
}

func TestApply_NamespacedPoliciesLeaveClusterScopedObjectsAlone(t *testing.T) {
	p := op(t, "b", `overrideRules: [{overriders: {labelsOverrider: [{operator: add, value: {seen: "yes"}}]}}]`)
	if got, _ := apply(t, `{apiVersion: v1, kind: Namespace, metadata: {name: default}}`, p); got.GetLabels() != nil {
		t.Error("the policy was applied")
	}
}

func TestApply_Overriders(t *testing.T) {
	const digest = "sha256:1111111111111111111111111111111111111111111111111111111111111111"
	for _, tc := range []struct {
		name, overriders string
		path             []string
		want             any
	}{
		{"registry of an image without one", `imageOverrider: [{component: Registry, operator: add, value: mirror.io}]`,
			[]string{"spec", "template", "spec", "containers", "0", "image"}, "mirror.io/nginx:1.19"},
		{"init containers keep their image", `imageOverrider: [{component: Registry, operator: add, value: mirror.io}]`,
			[]string{"spec", "template", "spec", "initContainers", "0", "image"}, "busybox"},
		{"two changes in a row", `imageOverrider: [{component: Registry, operator: remove}, {component: Repository, operator: add, value: -x}]`,
			[]string{"spec", "template", "spec", "containers", "1", "image"}, "t/app-x@" + digest},
		{"a tag replaces a digest", `imageOverrider: [{component: Tag, operator: replace, value: v2}]`,
			[]string{"spec", "template", "spec", "containers", "1", "image"}, "r.io:5000/t/app:v2"},
		{"a digest replaces a tag", `imageOverrider: [{component: Tag, operator: replace, value: "` + digest + `"}]`,
			[]string{"spec", "template", "spec", "containers", "0", "image"}, "nginx@" + digest},
		{"an invalid tag changes nothing", `imageOverrider: [{component: Tag, operator: replace, value: "@x"}]`,
			[]string{"spec", "template", "spec", "containers", "0", "image"}, "nginx:1.19"},
		{"by path", `imageOverrider: [{predicate: {path: /spec/template/spec/initContainers/0/image}, component: Tag, operator: add, value: v1}]`,
			[]string{"spec", "template", "spec", "initContainers", "0", "image"}, "busybox:v1"},
		{"a command is made", `commandOverrider: [{containerName: a, operator: add, value: [c, d]}]`,
			[]string{"spec", "template", "spec", "containers", "0", "command"}, []any{"c", "d"}},
		{"every equal argument goes", `argsOverrider: [{containerName: a, operator: remove, value: [x]}]`,
			[]string{"spec", "template", "spec", "containers", "0", "args"}, []any{"z"}},
		{"removing from nothing leaves an empty list", `argsOverrider: [{containerName: b, operator: remove, value: [x]}]`,
			[]string{"spec", "template", "spec", "containers", "1", "args"}, []any{}},
		{"labels that are missing are not replaced", `labelsOverrider: [{operator: replace, value: {app: new, none: x}}]`,
			[]string{"metadata", "labels"}, map[string]any{"app": "new"}},
		{"labels are removed", `labelsOverrider: [{operator: remove, value: {app: ""}}]`,
			[]string{"metadata", "labels"}, map[string]any{}},
		{"annotations are made", `annotationsOverrider: [{operator: add, value: {a/b: c}}]`,
			[]string{"metadata", "annotations"}, map[string]any{"a/b": "c"}},
		{"plaintext keeps integers", `plaintext: [{path: /spec/replicas, operator: replace, value: 9007199254740993}]`,
			[]string{"spec", "replicas"}, int64(9007199254740993)},
		{"plaintext at a negative index", `plaintext: [{path: /spec/template/spec/containers/-1/image, operator: replace, value: x}]`,
			[]string{"spec", "template", "spec", "containers", "1", "image"}, "x"},
		{"plaintext without a value is null", `plaintext: [{path: /spec/paused, operator: add}]`,
			[]string{"spec", "paused"}, nil},
		{"plaintext with escapes", `plaintext: [{path: /metadata/labels/a~1b~0c, operator: add, value: v}]`,
			[]string{"metadata", "labels", "a/b~c"}, "v"},
		{"plaintext appends", `plaintext: [{path: /spec/template/spec/containers/0/args/-, operator: add, value: w}]`,
			[]string{"spec", "template", "spec", "containers", "0", "args"}, []any{"x", "z", "x", "w"}},
		{"plaintext inserts", `plaintext: [{path: /spec/template/spec/containers/0/args/1, operator: add, value: w}]`,
			[]string{"spec", "template", "spec", "containers", "0", "args"}, []any{"x", "w", "z", "x"}},
		{"plaintext removes", `plaintext: [{path: /spec/template/spec/containers/0/args/1, operator: remove}]`,
			[]string{"spec", "template", "spec", "containers", "0", "args"}, []any{"x", "x"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, _ := apply(t, deployment, op(t, "p", "overrideRules: [{overriders: {"+tc.overriders+"}}]"))
			value, err := lookup(got.Object, tc.path)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, value); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestApply_Field(t *testing.T) {
	const config = `{apiVersion: v1, kind: ConfigMap, metadata: {name: web, namespace: default}, data: {c.yaml: "b: 1\na: 2 # why\n", c.json: '{"b":1,"a":{"y":1,"x":2}}'}}`
	got, _ := apply(t, config, op(t, "p", `overrideRules: [{overriders: {fieldOverrider: [
  {fieldPath: /data/c.yaml, yaml: [{subPath: /c, operator: add, value: [x]}]}, {fieldPath: /data/c.json, json: [{subPath: /a/x, operator: remove}]}]}}]`))
	want := map[string]any{"c.yaml": "a: 2\nb: 1\nc:\n- x\n", "c.json": `{"b":1,"a":{"y":1}}`}
	if diff := cmp.Diff(want, got.Object["data"]); diff != "" {
		t.Error(diff)
	}
	got, _ = apply(t, config, op(t, "old", `overriders: {fieldOverrider: [{fieldPath: /data/c.yaml}]}`))
	if diff := cmp.Diff("", got.Object["data"].(map[string]any)["c.yaml"]); diff != "" {
		t.Error(diff)
	}
}

func TestApply_Errors(t *testing.T) {
	for _, tc := range []struct{ name, overriders, want string }{
		{"path without a slash", `imageOverrider: [{predicate: {path: spec}, component: Tag, operator: remove}]`, "imagePath should be start with / character"},
		{"path to nothing", `imageOverrider: [{predicate: {path: /spec/nope}, component: Tag, operator: remove}]`, `imageOverrider[0]: image path "/spec/nope": there is no "nope"`},
		{"path out of range", `imageOverrider: [{predicate: {path: /spec/template/spec/containers/7/image}, component: Tag, operator: remove}]`, "index 7 is out of range"},
		{"path with a key for an index", `imageOverrider: [{predicate: {path: /spec/template/spec/containers/a/image}, component: Tag, operator: remove}]`, `"a" is not an index`},
		{"path through a number", `imageOverrider: [{predicate: {path: /spec/replicas/0}, component: Tag, operator: remove}]`, "is looked for in int64"},
		{"path to a number", `imageOverrider: [{predicate: {path: /spec/replicas}, component: Tag, operator: remove}]`, "int64 is not a string"},
		{"an image that is none any more", `imageOverrider: [{component: Repository, operator: remove}, {component: Tag, operator: remove}]`, "imageOverrider[1]: parsing image"},
		{"removing what is not there", `plaintext: [{path: /spec/x, operator: remove}]`, `plaintext[0]: remove "/spec/x": there is no "x"`},
		{"replacing what is not there", `plaintext: [{path: /spec/x, operator: replace, value: 1}]`, `there is no "x"`},
		{"adding without a parent", `plaintext: [{path: /spec/x/y, operator: add, value: 1}]`, `there is no "x"`},
		{"inserting out of range", `plaintext: [{path: /spec/template/spec/containers/3, operator: add, value: 1}]`, "out of range"},
		{"replacing the object by a list", `plaintext: [{path: "", operator: replace, value: [1]}]`, "the object would become []interface"},
		{"taking the kind away", `plaintext: [{path: /kind, operator: remove}]`, `kind "Deployment" would become ""`},
		{"a field that is no string", `fieldOverrider: [{fieldPath: /spec/replicas, json: [{subPath: /a, operator: remove}]}]`, "Get object's value by overrider's path(/spec/replicas) is not string"},
		{"a field that is no JSON", `fieldOverrider: [{fieldPath: /metadata/name, json: [{subPath: /a, operator: remove}]}]`, "changing the JSON document"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			p := op(t, "p", "overrideRules: [{targetCluster: {clusterNames: [m2]}, overriders: {}}, {overriders: {"+tc.overriders+"}}]")
			_, _, err := Apply(object(t, deployment), cluster("m1"), Policies{p})
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Fatalf("got %v, want %q", err, tc.want)
			}
			var located *Error
			if errors.As(err, &located) && (located.Policy != "p" || located.Namespace != "default" || located.Rule != 1 || located.Cluster != "m1") {
				t.Errorf("got %+v", located)
			}
		})
	}
}

func TestApply_KindsOfOtherGroupsAreNoWorkloads(t *testing.T) {
	const text = `{apiVersion: batch.volcano.sh/v1alpha1, kind: Job, metadata: {name: a, namespace: default}, spec: {template: {spec: {containers: [{name: a, image: nginx}]}}}}`
	got, _ := apply(t, text, op(t, "p", `overrideRules: [{overriders: {imageOverrider: [{component: Tag, operator: add, value: v1}]}}]`))
	if diff := cmp.Diff(object(t, text).Object, got.Object); diff != "" {
		t.Error(diff)
	}
}

func BenchmarkApply(b *testing.B) {
	obj, c := object(b, deployment), cluster("m1")
	image := op(b, "image", `overrideRules: [{overriders: {imageOverrider: [{component: Registry, operator: add, value: mirror.io}]}}]`)
	plain := op(b, "plain", `overrideRules: [{overriders: {plaintext: [{path: /spec/replicas, operator: replace, value: 3}]}}]`)
	none := op(b, "none", `overrideRules: [{targetCluster: {clusterNames: [m2]}, overriders: {}}]`)
	for name, policies := range map[string]Policies{"nothing": nil, "other cluster": {none}, "image": {image}, "plaintext": {plain}} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, _, err := Apply(obj, c, policies); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

package override

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/clock"

	"github.com/karmada-toolkit/karmada/internal/build"
	policyv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/policy/v1alpha1"
)

func manyContainers(n int) *unstructured.Unstructured {
	containers := make([]any, n)
	for i := range containers {
		containers[i] = map[string]any{"name": fmt.Sprintf("c%d", i), "image": "nginx:1.19"}
	}
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apps/v1", "kind": "Deployment", "metadata": map[string]any{"name": "d", "namespace": "default"},
		"spec": map[string]any{"template": map[string]any{"spec": map[string]any{"containers": containers}}},
	}}
}

func policyOf(overriders policyv1alpha1.Overriders) *policyv1alpha1.OverridePolicy {
	p := &policyv1alpha1.OverridePolicy{}
	p.Name, p.Namespace = "p", "default"
	p.Spec.OverrideRules = []policyv1alpha1.RuleWithCluster{{Overriders: overriders}}
	return p
}

func registries(n int, value string, path string) policyv1alpha1.Overriders {
	out := policyv1alpha1.Overriders{}
	for i := range n {
		o := policyv1alpha1.ImageOverrider{Component: policyv1alpha1.Registry, Operator: policyv1alpha1.OverriderOpReplace, Value: value}
		if path != "" && i%2 == 1 {
			o.Predicate = &policyv1alpha1.ImagePredicate{Path: path}
		}
		out.ImageOverrider = append(out.ImageOverrider, o)
	}
	return out
}

func plaintext(n int, path func(i int) string, value string) policyv1alpha1.Overriders {
	out := policyv1alpha1.Overriders{}
	for i := range n {
		out.Plaintext = append(out.Plaintext, policyv1alpha1.PlaintextOverrider{
			Path: path(i), Operator: policyv1alpha1.OverriderOpAdd, Value: apiextensionsv1.JSON{Raw: []byte(value)},
		})
	}
	return out
}

func config(text string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "c", "namespace": "default"}, "data": map[string]any{"c": text},
	}}
}

func document(n int, yaml bool) policyv1alpha1.Overriders {
	out := policyv1alpha1.Overriders{}
	for range n {
		f := policyv1alpha1.FieldOverrider{FieldPath: "/data/c"}
		if op := (policyv1alpha1.JSONPatchOperation{SubPath: "/x", Operator: policyv1alpha1.OverriderOpAdd, Value: apiextensionsv1.JSON{Raw: []byte("1")}}); yaml {
			f.YAML = []policyv1alpha1.YAMLPatchOperation{policyv1alpha1.YAMLPatchOperation(op)}
		} else {
			f.JSON = []policyv1alpha1.JSONPatchOperation{op}
		}
		out.FieldOverrider = append(out.FieldOverrider, f)
	}
	return out
}

// Small policies must not make gigabytes or keep a worker busy.
func TestApply_Budget(t *testing.T) {
	deep := strings.Repeat("[", 400) + strings.Repeat("]", 400)
	for _, tc := range []struct {
		name       string
		obj        *unstructured.Unstructured
		overriders policyv1alpha1.Overriders
	}{
		{"a long registry in many containers", manyContainers(10_000), registries(1, "r.io/"+strings.Repeat("x", 100_000), "")},
		{"many overriders of many containers", manyContainers(3000), registries(4000, "mirror.io", "")},
		{"overriders that have the workload converted each time", manyContainers(3000), registries(2000, "mirror.io", "/spec/template/spec/containers/0/image")},
		{"values that add up", manyContainers(1), plaintext(255, func(i int) string { return fmt.Sprintf("/spec/x%d", i) }, `"`+strings.Repeat("<", 800)+strings.Repeat("y", 20_000)+`"`)},
		{"values in each other", manyContainers(1), plaintext(3, func(i int) string { return "/spec/x" + strings.Repeat("/0", 399*i) }, deep)},
		{"a long path", manyContainers(1), plaintext(1, func(int) string { return strings.Repeat("/a", 1_000_000) }, "1")},
		{"a large document many times", config("{\"a\":\"" + strings.Repeat("x", 900_000) + "\"}"), document(256, false)},
		{"a large YAML document many times", config("a: " + strings.Repeat("x", 900_000)), document(256, true)},
		{"more than the annotations of a Work hold", manyContainers(1), policyv1alpha1.Overriders{CommandOverrider: []policyv1alpha1.CommandArgsOverrider{
			{ContainerName: "none", Operator: policyv1alpha1.OverriderOpAdd, Value: []string{strings.Repeat("x", 300_000)}},
		}}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			build.Bounded(t, time.Minute, 1<<30, func() {
				_, _, err := Apply(tc.obj, cluster("m1"), Policies{policyOf(tc.overriders)})
				located, ok := errors.AsType[*Error](err)
				if !errors.Is(err, ErrBudget) || !ok || located.Policy != "p" || len(err.Error()) > 1024 {
					t.Errorf("got %.1000v", err)
				}
			})
		})
	}
}

func TestApply_YAMLWithoutAliases(t *testing.T) {
	text := "a0: &a0 [x,x,x,x,x,x,x,x,x,x]\n"
	for i := 1; i < 9; i++ {
		text += fmt.Sprintf("a%d: &a%d [%s]\n", i, i, strings.TrimSuffix(strings.Repeat(fmt.Sprintf("*a%d,", i-1), 10), ","))
	}
	build.Bounded(t, time.Minute, 64<<20, func() {
		if _, _, err := Apply(config(text), cluster("m1"), Policies{policyOf(document(1, true))}); err == nil || !strings.Contains(err.Error(), "YAML with aliases is not allowed") {
			t.Errorf("got %v", err)
		}
	})
}

// What admission admits for workloads of a usual size fits the budget.
func TestApply_WhatIsAllowedFitsTheBudget(t *testing.T) {
	for name, tc := range map[string]struct {
		obj        *unstructured.Unstructured
		overriders policyv1alpha1.Overriders
	}{
		"images":              {manyContainers(100), registries(256, "mirror.io", "")},
		"images by path":      {manyContainers(100), registries(256, "mirror.io", "/spec/template/spec/containers/0/image")},
		"a document":          {config("a: " + strings.Repeat("x", 900_000)), document(1, true)},
		"a small one, often":  {config("a: b"), document(256, true)},
		"values":              {manyContainers(100), plaintext(256, func(i int) string { return fmt.Sprintf("/spec/x%d", i) }, `"value"`)},
		"a value, over again": {manyContainers(1), plaintext(10, func(int) string { return "/spec/x" }, `"`+strings.Repeat("x", 20_000)+`"`)},
	} {
		if _, _, err := Apply(tc.obj, cluster("m1"), Policies{policyOf(tc.overriders)}); err != nil {
			t.Errorf("%s: %.500v", name, err)
		}
	}
}

// late is a clock on which a minute passes between two looks.
type late struct {
	clock.PassiveClock
	now *time.Time
}

func (l late) Now() time.Time { return *l.now }
func (l late) Since(start time.Time) time.Duration {
	*l.now = l.now.Add(time.Minute)
	return l.now.Sub(start)
}

func TestApplyInTime(t *testing.T) {
	now := time.Unix(0, 0)
	_, _, err := ApplyInTime(manyContainers(1000), cluster("m1"), Policies{policyOf(registries(100, "mirror.io", ""))}, late{now: &now})
	if !errors.Is(err, ErrBudget) || !strings.Contains(err.Error(), "longer than 10s") {
		t.Errorf("got %v", err)
	}
}

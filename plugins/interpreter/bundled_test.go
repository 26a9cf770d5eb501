package interpreter

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"

	configv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/config/v1alpha1"
	workv1alpha2 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha2"
	"github.com/karmada-toolkit/karmada/pkg/domain/interpreter"
	"github.com/karmada-toolkit/karmada/pkg/domain/interpreter/lua"
)

var update = flag.Bool("update", false, "write the outputs of the cases anew")

// bundledCase is one document of a cases.yaml.
type bundledCase struct {
	Name          string                              `json:"name"`
	Operation     string                              `json:"operation"`
	DesiredObj    *unstructured.Unstructured          `json:"desiredObj,omitempty"`
	ObservedObj   *unstructured.Unstructured          `json:"observedObj,omitempty"`
	StatusItems   []workv1alpha2.AggregatedStatusItem `json:"statusItems,omitempty"`
	InputReplicas int64                               `json:"inputReplicas,omitempty"`
	Output        any                                 `json:"output"`
}

func TestCustomizations(t *testing.T) {
	all, err := Customizations()
	if err != nil {
		t.Fatal(err)
	}
	engine := interpreter.NewLuaEngine(lua.DefaultLimits())
	seen := map[schema.GroupVersionKind]bool{}
	for _, c := range all {
		gvk := schema.FromAPIVersionAndKind(c.Spec.Target.APIVersion, c.Spec.Target.Kind)
		if seen[gvk] {
			t.Errorf("%s is customized twice", gvk)
		}
		seen[gvk] = true
		if c.Annotations != nil {
			t.Errorf("%s has the annotations of its file: %v", gvk, c.Annotations)
		}
		if want := strings.ToLower(gvk.Kind) + "." + gvk.Version + "." + gvk.Group; c.Name != want {
			t.Errorf("%s is named %q, want %q", gvk, c.Name, want)
		}
		data, err := json.Marshal(c.Spec.Customizations)
		if err != nil {
			t.Fatal(err)
		}
		var scripts map[string]struct{ LuaScript string }
		if err := json.Unmarshal(data, &scripts); err != nil {
			t.Fatal(err)
		}
		for operation, script := range scripts {
			if err := engine.Script(script.LuaScript).Check(); err != nil {
				t.Errorf("%s, %s: %v", gvk, operation, err)
			}
		}
	}
	if len(seen) < 33 {
		t.Errorf("%d kinds are customized", len(seen))
	}
	sorted := slices.IsSortedFunc(all, func(a, b *configv1alpha1.ResourceInterpreterCustomization) int {
		return strings.Compare(a.Spec.Target.APIVersion+"/"+a.Spec.Target.Kind, b.Spec.Target.APIVersion+"/"+b.Spec.Target.Kind)
	})
	if !sorted {
		t.Error("the customizations are not sorted")
	}
}

// TestCases runs the cases beside each customization, for each version that it is for;
// -update writes their outputs anew.
func TestCases(t *testing.T) {
	layer, err := NewLayer(interpreter.NewLuaEngine(lua.DefaultLimits()))
	if err != nil {
		t.Fatal(err)
	}
	paths, err := fs.Glob(os.DirFS("."), "*/*/*/customization.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range paths {
		dir := filepath.Dir(path)
		gvk := schema.GroupVersionKind{
			Group: filepath.Dir(filepath.Dir(dir)), Version: filepath.Base(filepath.Dir(dir)), Kind: filepath.Base(dir),
		}
		versions := versionsOf(t, path, gvk)
		for _, version := range versions {
			t.Run(filepath.Join(gvk.Group, version, gvk.Kind), func(t *testing.T) {
				rules := layer.Rules(gvk.GroupKind().WithVersion(version))
				if rules == nil {
					t.Fatal("there are no rules")
				}
				runCases(t, rules, filepath.Join(dir, "cases.yaml"), gvk.GroupVersion(), version)
			})
		}
	}
}

// versionsOf returns the version of the kind in whose directory the file of a customization
// is, and the others that it names.
func versionsOf(t *testing.T, path string, gvk schema.GroupVersionKind) []string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var c configv1alpha1.ResourceInterpreterCustomization
	if err := yaml.UnmarshalStrict(data, &c); err != nil {
		t.Fatal(err)
	}
	if c.Spec.Target.APIVersion != gvk.GroupVersion().String() || c.Spec.Target.Kind != gvk.Kind {
		t.Errorf("%s is for %s, %s", path, c.Spec.Target.APIVersion, c.Spec.Target.Kind)
	}
	versions := []string{gvk.Version}
	if others := c.Annotations[otherVersions]; others != "" {
		versions = append(versions, strings.Split(others, ",")...)
	}
	return versions
}

// runCases runs the cases of a file, which are of objects of a group and version, with
// objects of another version of the group or the same.
func runCases(t *testing.T, rules *interpreter.Rules, path string, written schema.GroupVersion, version string) {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	write := *update && version == written.Version
	data = bytes.ReplaceAll(data, []byte("apiVersion: "+written.String()+"\n"), []byte("apiVersion: "+written.Group+"/"+version+"\n"))
	var rewritten bytes.Buffer
	covered := map[string]bool{}
	documents := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(data)))
	for {
		document, err := documents.Read()
		if errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		var c bundledCase
		if err := yaml.UnmarshalStrict(document, &c); err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		covered[c.Operation] = true
		got, err := runCase(rules, &c)
		if err != nil {
			t.Errorf("%s: %v", c.Name, err)
			continue
		}
		if diff := cmp.Diff(c.Output, got); diff != "" && !*update {
			t.Errorf("%s: -want +got %s", c.Name, diff)
		}
		c.Output = got
		text, err := yaml.Marshal(c)
		if err != nil {
			t.Fatal(err)
		}
		if rewritten.Len() > 0 {
			rewritten.WriteString("---\n")
		}
		rewritten.Write(text)
	}
	if write {
		if err := os.WriteFile(path, rewritten.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for operation, has := range map[string]bool{
		"InterpretReplica": rules.Replicas != nil, "InterpretComponent": rules.Components != nil, "ReviseReplica": rules.Revise != nil,
		"Retain": rules.Retain != nil, "InterpretStatus": rules.Reflect != nil, "AggregateStatus": rules.Aggregate != nil,
		"InterpretHealth": rules.Health != nil, "InterpretDependency": rules.Dependencies != nil,
	} {
		if has && !covered[operation] {
			t.Errorf("there is no case of %s", operation)
		}
	}
}

// runCase returns the result of an operation as plain JSON.
func runCase(rules *interpreter.Rules, c *bundledCase) (any, error) {
	result, err := operate(rules, c)
	if err != nil {
		return nil, err
	}
	data, err := json.Marshal(result)
	if err != nil {
		return nil, err
	}
	var plain any
	return plain, json.Unmarshal(data, &plain)
}

func operate(rules *interpreter.Rules, c *bundledCase) (any, error) {
	object, name := c.DesiredObj, "desiredObj"
	if c.Operation == "InterpretStatus" || c.Operation == "InterpretHealth" {
		object, name = c.ObservedObj, "observedObj"
	}
	if object == nil {
		return nil, fmt.Errorf("%s needs %s", c.Operation, name)
	}
	switch c.Operation {
	case "InterpretReplica":
		replicas, requirements, err := rules.Replicas(c.DesiredObj)
		return map[string]any{"replica": replicas, "requires": requirements}, err
	case "InterpretComponent":
		components, err := rules.Components(c.DesiredObj)
		return map[string]any{"components": components}, err
	case "ReviseReplica":
		revised, err := rules.Revise(c.DesiredObj, c.InputReplicas)
		return map[string]any{"revised": revised}, err
	case "Retain":
		retained, err := rules.Retain(c.DesiredObj, c.ObservedObj)
		return map[string]any{"retained": retained}, err
	case "AggregateStatus":
		aggregated, err := rules.Aggregate(c.DesiredObj, c.StatusItems)
		if err != nil {
			return nil, err
		}
		return map[string]any{"aggregatedStatus": aggregated.Object["status"]}, nil
	case "InterpretDependency":
		dependencies, err := rules.Dependencies(c.DesiredObj)
		return map[string]any{"dependencies": dependencies}, err
	case "InterpretStatus":
		status, err := rules.Reflect(c.ObservedObj)
		return map[string]any{"status": status}, err
	case "InterpretHealth":
		healthy, err := rules.Health(c.ObservedObj)
		return map[string]any{"healthy": healthy}, err
	}
	return nil, errors.New("unknown operation " + c.Operation)
}

func TestNew_UsersComeFirst(t *testing.T) {
	engine := interpreter.NewLuaEngine(lua.DefaultLimits())
	own := interpreter.NewDeclarative(engine)
	in, err := New(engine, interpreter.WithLayer(own))
	if err != nil {
		t.Fatal(err)
	}
	policy := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "kyverno.io/v1", "kind": "Policy", "status": map[string]any{"ready": true},
	}}
	if healthy, err := in.InterpretHealth(policy); !healthy || err != nil {
		t.Errorf("the bundled rule: %v, %v", healthy, err)
	}
	var c configv1alpha1.ResourceInterpreterCustomization
	if err := yaml.UnmarshalStrict([]byte(`
spec:
  target: {apiVersion: kyverno.io/v1, kind: Policy}
  customizations: {healthInterpretation: {luaScript: "function InterpretHealth() return false end"}}`), &c); err != nil {
		t.Fatal(err)
	}
	own.Load([]*configv1alpha1.ResourceInterpreterCustomization{&c})
	if healthy, err := in.InterpretHealth(policy); healthy || err != nil {
		t.Errorf("the user's rule: %v, %v", healthy, err)
	}
}

// A user's customization of one version of a kind is for that version only, though one
// bundled customization is for several.
func TestNew_UsersOverrideOneVersion(t *testing.T) {
	var c configv1alpha1.ResourceInterpreterCustomization
	if err := yaml.UnmarshalStrict([]byte(`
spec:
  target: {apiVersion: source.toolkit.fluxcd.io/v1beta2, kind: Bucket}
  customizations: {healthInterpretation: {luaScript: "function InterpretHealth() return false end"}}`), &c); err != nil {
		t.Fatal(err)
	}
	in, err := NewOffline([]*configv1alpha1.ResourceInterpreterCustomization{&c})
	if err != nil {
		t.Fatal(err)
	}
	for version, want := range map[string]bool{"v1": true, "v1beta2": false} {
		ready := map[string]any{"type": "Ready", "status": "True", "reason": "Succeeded"}
		bucket := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "source.toolkit.fluxcd.io/" + version, "kind": "Bucket", "status": map[string]any{"conditions": []any{ready}},
		}}
		if healthy, err := in.InterpretHealth(bucket); healthy != want || err != nil {
			t.Errorf("%s: %v, %v", version, healthy, err)
		}
	}
}

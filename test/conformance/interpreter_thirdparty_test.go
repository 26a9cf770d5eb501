package conformance

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/equality"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"

	workv1alpha2 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha2"
	"github.com/karmada-toolkit/karmada/pkg/domain/interpreter"
	"github.com/karmada-toolkit/karmada/pkg/domain/interpreter/lua"
	bundled "github.com/karmada-toolkit/karmada/plugins/interpreter"
)

func TestThirdParty(t *testing.T) {
	layer, err := bundled.NewLayer(interpreter.NewLuaEngine(lua.DefaultLimits()))
	if err != nil {
		t.Fatal(err)
	}
	in := interpreter.New(interpreter.WithLayer(layer))
	run := func(t *testing.T, line []byte) (string, error) {
		var c interpreterCase
		if err := json.Unmarshal(line, &c); err != nil {
			t.Fatal(err)
		}
		return c.Name, runThirdPartyCase(in, &c)
	}
	if dir := os.Getenv("CONFORMANCE_DATA"); dir != "" {
		replayTree(t, filepath.Join(dir, "thirdparty"), run)
		return
	}
	replayLines(t, "interpreter-thirdparty", run)
}

// replayTree runs every document of every YAML file of a directory.
func replayTree(t *testing.T, dir string, run func(*testing.T, []byte) (string, error)) {
	t.Helper()
	if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) {
		t.Skip("thirdparty is not in $CONFORMANCE_DATA")
	}
	passed := 0
	var failed []string
	err := filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, ".yaml") {
			return err
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		documents := utilyaml.NewYAMLOrJSONDecoder(bytes.NewReader(data), 4096)
		for {
			var document map[string]any
			if err := documents.Decode(&document); errors.Is(err, io.EOF) {
				return nil
			} else if err != nil {
				return fmt.Errorf("%s: %w", path, err)
			}
			if document == nil {
				continue
			}
			line, err := json.Marshal(document)
			if err != nil {
				return err
			}
			label, err := run(t, line)
			if err == nil {
				passed++
				continue
			}
			failed = append(failed, label)
			t.Errorf("%s: %s: %v", path, label, err)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	fmt.Fprintf(os.Stdout, "thirdparty: %d passed, %d failed %s\n", passed, len(failed), strings.Join(failed, ", "))
}

func runThirdPartyCase(in *interpreter.Interpreter, c *interpreterCase) error {
	if c.Operation == "AggregateStatus" {
		aggregated, err := in.AggregateStatus(c.object(), c.StatusItems)
		if err != nil {
			return err
		}
		return compareThirdParty(c.Output, map[string]any{"aggregatedStatus": aggregated.Object})
	}
	got, err := interpretCase(in, c)
	if err != nil {
		return err
	}
	return compareThirdParty(c.Output, got)
}

// compareThirdParty compares results whose quantities may be written in several
// ways, whose dependencies have no order, and in which nothing and an empty list
// or object are the same. A time that is excluded only has to be there.
func compareThirdParty(want, got map[string]any) error {
	if _, ok := want["components"]; ok {
		var w []workv1alpha2.Component
		if err := recode(want["components"], &w); err != nil {
			return err
		}
		g, _ := got["components"].([]workv1alpha2.Component)
		if len(w)+len(g) > 0 && !equality.Semantic.DeepEqual(w, g) {
			return errors.New(cmp.Diff(w, g))
		}
		return nil
	}
	if _, ok := want["requires"]; !ok {
		if r, _ := got["requires"].(*workv1alpha2.ReplicaRequirements); r == nil {
			delete(got, "requires")
		}
	}
	var w, g any
	if err := recode(want, &w); err != nil {
		return err
	}
	if err := recode(got, &g); err != nil {
		return err
	}
	w, g = withoutEmpty(w), withoutEmpty(excluding(w, g))
	if diff := cmp.Diff(w, g); diff != "" {
		return fmt.Errorf("-want +got %s", diff)
	}
	return nil
}

func recode(from, into any) error {
	data, err := json.Marshal(from)
	if err != nil {
		return err
	}
	return json.Unmarshal(data, into)
}

// excluding marks in got the fields that want excludes.
func excluding(want, got any) any {
	switch w := want.(type) {
	case string:
		if w == "{{EXCLUDE}}" && got != nil {
			return w
		}
	case map[string]any:
		if g, ok := got.(map[string]any); ok {
			for key := range g {
				g[key] = excluding(w[key], g[key])
			}
		}
	case []any:
		if g, ok := got.([]any); ok && len(g) == len(w) {
			for i := range g {
				g[i] = excluding(w[i], g[i])
			}
		}
	}
	return got
}

// withoutEmpty drops nulls and empty objects and lists, and sorts lists of
// dependencies.
func withoutEmpty(v any) any {
	switch x := v.(type) {
	case map[string]any:
		for key, value := range x {
			if value = withoutEmpty(value); empty(value) {
				delete(x, key)
			} else {
				x[key] = value
			}
		}
		if list, ok := x["dependencies"].([]any); ok {
			slices.SortFunc(list, func(a, b any) int { return strings.Compare(fmt.Sprint(a), fmt.Sprint(b)) })
		}
	case []any:
		for i := range x {
			x[i] = withoutEmpty(x[i])
		}
	}
	return v
}

func empty(v any) bool {
	if v == nil {
		return true
	}
	r := reflect.ValueOf(v)
	return (r.Kind() == reflect.Map || r.Kind() == reflect.Slice) && r.Len() == 0
}

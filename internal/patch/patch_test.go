package patch

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

func configMap(data map[string]string, finalizers ...string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "c", Finalizers: finalizers}, Data: data}
}

func TestDiff_HasOnlyTheFieldsThatDiffer(t *testing.T) {
	before := configMap(map[string]string{"a": "1", "b": "2"})
	change, differs, err := Diff(before, configMap(map[string]string{"a": "1", "c": "3"}))
	if err != nil || !differs {
		t.Fatalf("got %v, %v", differs, err)
	}
	data, err := change.Data(before)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := string(data), `{"data":{"b":null,"c":"3"}}`; got != want || change.Type() != types.MergePatchType {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestDiff_EqualObjectsNeedNoPatch(t *testing.T) {
	if _, differs, err := Diff(configMap(map[string]string{"a": "1"}), configMap(map[string]string{"a": "1"})); err != nil || differs {
		t.Errorf("got %v, %v", differs, err)
	}
}

func TestDiffLocked_RequiresTheResourceVersion(t *testing.T) {
	before, after := configMap(nil, "x/a"), configMap(nil, "x/a", "x/b")
	before.ResourceVersion, after.ResourceVersion = "3", "3"
	change, differs, err := DiffLocked(before, after)
	if err != nil || !differs {
		t.Fatalf("got %v, %v", differs, err)
	}
	data, err := change.Data(before)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := string(data), `{"metadata":{"finalizers":["x/a","x/b"],"resourceVersion":"3"}}`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if _, differs, err := DiffLocked(before, before.DeepCopy()); err != nil || differs {
		t.Errorf("equal objects: %v, %v", differs, err)
	}
}

func TestMetadata(t *testing.T) {
	for want, tc := range map[string]struct{ uid, version string }{
		`{"metadata":{"labels":{"a":null}}}`:                                 {},
		`{"metadata":{"labels":{"a":null},"uid":"u"}}`:                       {uid: "u"},
		`{"metadata":{"labels":{"a":null},"resourceVersion":"3","uid":"u"}}`: {uid: "u", version: "3"},
	} {
		got, err := Metadata(map[string]any{"labels": map[string]*string{"a": nil}}, types.UID(tc.uid), tc.version)
		if err != nil || string(got) != want {
			t.Errorf("got %s, %v, want %s", got, err, want)
		}
	}
}

func TestRemoveFinalizer(t *testing.T) {
	change, held, err := RemoveFinalizer(configMap(nil, "x/a", "x/b"), "x/b")
	if err != nil || !held {
		t.Fatalf("got %v, %v", held, err)
	}
	data, err := change.Data(nil)
	if err != nil {
		t.Fatal(err)
	}
	want := `[{"op":"test","path":"/metadata/finalizers/1","value":"x/b"},{"op":"remove","path":"/metadata/finalizers/1"}]`
	if got := string(data); got != want {
		t.Errorf("got %s", got)
	}
	if _, held, err := RemoveFinalizer(configMap(nil, "x/a"), "x/b"); held || err != nil {
		t.Errorf("got %v, %v", held, err)
	}
}

package execution

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func TestSnapshot_Object(t *testing.T) {
	text := `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"a","namespace":"n","uid":"u","resourceVersion":"7","generation":3,
	  "annotations":{"work.karmada.io/namespace":"karmada-es-m1","work.karmada.io/name":"w"}},"spec":{"replicas":2},"status":{"replicas":2}}`
	obj := decode(t, text)
	obj.SetManagedFields(nil)
	h := NewHasher()
	got, err := h.Snapshot(obj)
	if err != nil {
		t.Fatal(err)
	}
	if got.Work.String() != "karmada-es-m1/w" || got.UID != "u" || got.Version != "7" || got.generation != 3 {
		t.Errorf("got %+v", got)
	}
	back, err := got.Object()
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(decode(t, text).Object, back.Object); diff != "" {
		t.Error(diff)
	}
	for _, tc := range []struct {
		name   string
		same   bool
		change func(*unstructured.Unstructured)
	}{
		{"a status", true, func(u *unstructured.Unstructured) { u.Object["status"] = map[string]any{"replicas": int64(1)} }},
		{"a version", true, func(u *unstructured.Unstructured) { u.SetResourceVersion("8"); u.SetGeneration(4) }},
		{"a spec", false, func(u *unstructured.Unstructured) { u.Object["spec"] = map[string]any{"replicas": int64(1)} }},
		{"a label", false, func(u *unstructured.Unstructured) { u.SetLabels(map[string]string{"a": "b"}) }},
		{"another object", false, func(u *unstructured.Unstructured) { u.SetUID("v") }},
	} {
		changed := decode(t, text)
		tc.change(changed)
		other, err := h.Snapshot(changed)
		if err != nil || (other.Hash == got.Hash) != tc.same {
			t.Errorf("%s: same content %v, want %v, %v", tc.name, other.Hash == got.Hash, tc.same, err)
		}
	}
}

func decode(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	obj := &unstructured.Unstructured{}
	if err := obj.UnmarshalJSON([]byte(text)); err != nil {
		t.Fatal(err)
	}
	return obj
}

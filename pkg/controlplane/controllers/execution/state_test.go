package execution

import (
	"encoding/json"
	"hash/maphash"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	workv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha1"
)

func TestDecide(t *testing.T) {
	now := time.Unix(1000, 0)
	applied := func(version string, hash uint64) object {
		return object{applied: true, uid: "u", version: version, hash: hash, appliedAt: now}
	}
	old := applied("5", 1)
	old.appliedAt = now.Add(-time.Minute)
	outdated := applied("5", 1)
	outdated.applied = false
	seen := func(uid types.UID, version string, hash uint64) *copied {
		return &copied{uid: uid, version: version, hash: hash}
	}
	for _, tc := range []struct {
		name           string
		object         object
		seen           *copied
		listed, before bool
		gone           types.UID
		want           need
	}{
		{"a new object is made, whatever is known of the member", object{}, nil, false, false, "", making},
		{"one that an earlier process may have made is waited for", object{}, nil, false, true, "", listing},
		{"and made when it is not there", object{}, nil, true, true, "", making},
		{"one that exists is read, not made again", object{exists: true}, nil, true, true, "", reading},
		{"one that is seen is compared", object{}, seen("u", "5", 1), false, true, "", comparing},
		{"one that was just applied is not there yet", applied("5", 1), nil, true, true, "", nothing},
		{"one that was applied before a new look at the member is left alone", old, nil, false, true, "", nothing},
		{"one that was applied long ago and is not there is read", old, nil, true, true, "", reading},
		{"one that was seen to go is made", applied("5", 1), nil, true, true, "u", making},
		{"one whose predecessor went is left alone", applied("5", 1), nil, true, true, "v", nothing},
		{"a look that is behind does not count", applied("5", 1), seen("u", "4", 2), true, true, "", nothing},
		{"the object as applied is left alone", applied("5", 1), seen("u", "5", 1), true, true, "", nothing},
		{"so is one with another status", applied("5", 1), seen("u", "9", 1), true, true, "", nothing},
		{"another content is compared", applied("5", 1), seen("u", "9", 2), true, true, "", comparing},
		{"another object is compared", applied("5", 1), seen("v", "9", 1), true, true, "", comparing},
		{"a change of the manifest is compared", outdated, seen("u", "6", 1), true, true, "", comparing},
		{"unless the look is behind", outdated, seen("u", "4", 1), true, true, "", reading},
		{"a change of the manifest of one that is not there yet reads it", outdated, nil, true, true, "", reading},
		{"or makes it when it was seen to go", outdated, nil, true, true, "u", making},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := &state{gone: map[types.UID]bool{tc.gone: tc.gone != ""}}
			if got := s.decide(&tc.object, tc.seen, tc.listed, tc.before, now); got != tc.want {
				t.Errorf("got %d, want %d", got, tc.want)
			}
		})
	}
}

func TestCopy_PutsTheObjectTogetherAgain(t *testing.T) {
	text := `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"a","namespace":"n","uid":"u","resourceVersion":"7","generation":3,
	  "annotations":{"work.karmada.io/namespace":"karmada-es-m1","work.karmada.io/name":"w"}},"spec":{"replicas":2},"status":{"replicas":2}}`
	obj := decode(t, text)
	obj.SetManagedFields(nil)
	c := &Controller{seed: maphash.MakeSeed()}
	got, err := c.copy(obj)
	if err != nil {
		t.Fatal(err)
	}
	if got.work.String() != "karmada-es-m1/w" || got.uid != "u" || got.version != "7" || got.generation != 3 {
		t.Errorf("got %+v", got)
	}
	back, err := got.object()
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
		other, err := c.copy(changed)
		if err != nil || (other.hash == got.hash) != tc.same {
			t.Errorf("%s: same content %v, want %v, %v", tc.name, other.hash == got.hash, tc.same, err)
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

func TestManifestStatuses(t *testing.T) {
	raw := func(text string) *runtime.RawExtension { return &runtime.RawExtension{Raw: []byte(text)} }
	id := func(ordinal int, name string) workv1alpha1.ResourceIdentifier {
		return workv1alpha1.ResourceIdentifier{Ordinal: ordinal, Version: "v1", Kind: "Pod", Name: name}
	}
	gvk := schema.GroupVersionKind{Version: "v1", Kind: "Pod"}
	kept := raw(`{"a":1,"b":2}`)
	before := []workv1alpha1.ManifestStatus{
		{Identifier: id(0, "same"), Status: kept, Health: "Healthy"},
		{Identifier: id(1, "unseen"), Status: raw(`{}`), Health: "Unhealthy"},
		{Identifier: id(2, "removed"), Status: raw(`{}`)},
	}
	got := manifestStatuses([]*object{
		{gvk: gvk, key: types.NamespacedName{Name: "unseen"}},
		{gvk: gvk, key: types.NamespacedName{Name: "same"}, seen: "5", status: raw(`{"b":2,"a":1}`), health: "Unhealthy"},
		{gvk: gvk, key: types.NamespacedName{Name: "new"}, seen: "6", health: "Healthy"},
		{gvk: gvk, key: types.NamespacedName{Name: "never seen"}},
	}, before)
	want := []workv1alpha1.ManifestStatus{
		{Identifier: id(0, "unseen"), Status: raw(`{}`), Health: "Unhealthy"},
		{Identifier: id(1, "same"), Status: kept, Health: "Unhealthy"},
		{Identifier: id(2, "new"), Health: "Healthy"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestIdentify(t *testing.T) {
	o, err := identify([]byte(`{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"namespace":"n","name":"a"}}`))
	if err != nil || o.gvk.String() != "apps/v1, Kind=Deployment" || o.key.String() != "n/a" {
		t.Errorf("got %+v, %v", o, err)
	}
	for _, bad := range []string{`{`, `{"apiVersion":"a/b/c"}`} {
		if _, err := identify([]byte(bad)); err == nil {
			t.Errorf("%s: no error", bad)
		}
	}
}

func TestMessage(t *testing.T) {
	res := &result{ok: 1, total: 2, err: json.Unmarshal([]byte("{"), &struct{}{})}
	if got, want := res.message(), "Failed to apply all manifests (1/2): unexpected end of JSON input"; got != want {
		t.Errorf("got %q", got)
	}
}

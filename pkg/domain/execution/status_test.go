package execution

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	workv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha1"
)

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
	got := manifestStatuses([]Object{
		{GVK: gvk, Key: types.NamespacedName{Name: "unseen"}},
		{GVK: gvk, Key: types.NamespacedName{Name: "same"}, Observed: Observed{version: "5", status: raw(`{"b":2,"a":1}`), health: "Unhealthy"}},
		{GVK: gvk, Key: types.NamespacedName{Name: "new"}, Observed: Observed{version: "6", health: "Healthy"}},
		{GVK: gvk, Key: types.NamespacedName{Name: "never seen"}},
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

// The API server drops null, such as the lastProbeTime of a pod's condition: what it
// stores is then never what was sent.
func TestSameRaw_NullIsNothing(t *testing.T) {
	raw := func(text string) *runtime.RawExtension { return &runtime.RawExtension{Raw: []byte(text)} }
	for _, tc := range []struct {
		a, b string
		want bool
	}{
		{`{"conditions":[{"type":"Ready","lastProbeTime":null}],"x":null}`, `{"conditions":[{"type":"Ready"}]}`, true},
		{`{"a":1}`, `{"a": 1}`, true},
		{`{"a":{"b":null}}`, `{"a":{}}`, true},
		{`{"a":[null]}`, `{"a":[]}`, false},
		{`{"a":1}`, `{"a":2}`, false},
	} {
		if got := sameRaw(raw(tc.a), raw(tc.b)); got != tc.want {
			t.Errorf("%s and %s: %t", tc.a, tc.b, got)
		}
	}
}

func TestResult_Message(t *testing.T) {
	res := &Result{Succeeded: 1, Total: 2, Err: json.Unmarshal([]byte("{"), &struct{}{})}
	if got, want := res.Message(), "Failed to apply all manifests (1/2): unexpected end of JSON input"; got != want {
		t.Errorf("got %q", got)
	}
}

func TestSetInterpreted_EscapesTextOfTheMember(t *testing.T) {
	status := &workv1alpha1.WorkStatus{}
	setInterpreted(status, []Object{{Observed: Observed{err: interpretError{reason: "Failed", message: "status is \x1b[2Jgone"}}}}, time.Unix(1, 0))
	c := meta.FindStatusCondition(status.Conditions, ConditionInterpreted)
	if want := `status is \x1b[2Jgone`; c == nil || c.Message != want {
		t.Errorf("got %+v, want the message %q", c, want)
	}
}

package patch

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
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
		got, err := Metadata(map[string]any{"labels": map[string]*string{"a": nil}}, types.UID(tc.uid), tc.version).Data(nil)
		if err != nil || string(got) != want {
			t.Errorf("got %s, %v, want %s", got, err, want)
		}
	}
}

func TestRemoveFinalizer(t *testing.T) {
	var sent []string
	var answer error
	c := interceptor.NewClient(fake.NewClientBuilder().Build(), interceptor.Funcs{
		Patch: func(_ context.Context, _ client.WithWatch, obj client.Object, change client.Patch, _ ...client.PatchOption) error {
			data, err := change.Data(obj)
			sent = append(sent, obj.GetName()+" "+string(data))
			return errors.Join(err, answer)
		},
	})
	held := configMap(nil, "x/a", "x/b")
	held.UID = "u"
	if err := RemoveFinalizer(t.Context(), c, configMap(nil, "x/a"), "x/b"); err != nil || sent != nil {
		t.Errorf("an object without the finalizer: %v, %v", err, sent)
	}
	invalid := apierrors.NewInvalid(schema.GroupKind{Kind: "ConfigMap"}, "c", nil)
	for name, tc := range map[string]struct {
		answer   error
		ok       bool
		conflict bool
	}{
		"removed":                     {ok: true},
		"deleted":                     {answer: apierrors.NewNotFound(schema.GroupResource{}, "c"), ok: true},
		"another object or version":   {answer: apierrors.NewGenericServerResponse(422, "", schema.GroupResource{}, "", "test failed", 0, false), conflict: true},
		"the object is refused":       {answer: invalid},
		"the request is not answered": {answer: errors.New("EOF")},
	} {
		sent, answer = nil, tc.answer
		err := RemoveFinalizer(t.Context(), c, held, "x/b")
		if (err == nil) != tc.ok || apierrors.IsConflict(err) != tc.conflict {
			t.Errorf("%s: got %v", name, err)
		}
		want := []string{`c [{"op":"test","path":"/metadata/uid","value":"u"},{"op":"test","path":"/metadata/finalizers/1","value":"x/b"},{"op":"remove","path":"/metadata/finalizers/1"}]`}
		if diff := cmp.Diff(want, sent); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

func TestWrite(t *testing.T) {
	for name, tc := range map[string]struct {
		after *corev1.ConfigMap
		want  string
	}{
		"no difference":                        {configMap(map[string]string{"a": "1"}, "x/a"), ""},
		"a difference":                         {configMap(map[string]string{"a": "2"}, "x/a"), `{"data":{"a":"2"}}`},
		"another finalizer needs this version": {configMap(map[string]string{"a": "1"}), `{"metadata":{"finalizers":null,"resourceVersion":"999"}}`},
	} {
		t.Run(name, func(t *testing.T) {
			var sent string
			before := configMap(map[string]string{"a": "1"}, "x/a")
			c := interceptor.NewClient(fake.NewClientBuilder().WithObjects(before).Build(), interceptor.Funcs{
				Patch: func(ctx context.Context, c client.WithWatch, obj client.Object, change client.Patch, opts ...client.PatchOption) error {
					data, err := change.Data(obj)
					sent = string(data)
					return errors.Join(err, c.Patch(ctx, obj, change, opts...))
				},
			})
			before.ResourceVersion, tc.after.ResourceVersion = "999", "999"
			stored, wrote, err := Write(t.Context(), c, before, tc.after)
			if err != nil || wrote != (tc.want != "") || sent != tc.want || stored.Data["a"] != tc.after.Data["a"] {
				t.Errorf("wrote %t, sent %s, stored %v, %v", wrote, sent, stored, err)
			}
		})
	}
}

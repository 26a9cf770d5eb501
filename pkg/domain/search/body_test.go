package search

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"sigs.k8s.io/yaml"

	"github.com/karmada-toolkit/karmada/internal/build"
	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
)

// both is the version of two clusters.
func both() string {
	return NewVersions(map[string]string{"m1": "11", "m2": "22", "empty": ""}).Encode()
}

func TestToMember_Text(t *testing.T) {
	const cached = clusterv1alpha1.CacheSourceAnnotation
	cases := []struct {
		name, contentType, body, want string
	}{
		{"an update", "application/json", `{"metadata":{"name":"p","resourceVersion":"` + both() + `","annotations":{"a":"<b>","` + cached + `":"m1"}},"spec":{"n":12345678901234567890}}`, `{"metadata":{"name":"p","resourceVersion":"11","annotations":{"a":"<b>"}},"spec":{"n":12345678901234567890}}`},
		{"only the annotation", "application/json; charset=utf-8", `{"metadata":{"annotations":{"` + cached + `":"m1"}}}`, `{"metadata":{}}`},
		{"no content type", "", `{"metadata":{"resourceVersion":"` + both() + `"}}`, `{"metadata":{"resourceVersion":"11"}}`},
		{"a merge patch", "application/merge-patch+json", `{"metadata":{"resourceVersion":"` + both() + `","annotations":{"` + cached + `":null,"b":null}}}`, `{"metadata":{"resourceVersion":"11","annotations":{"b":null}}}`},
		{"a strategic patch", "application/strategic-merge-patch+json", `{"metadata":{"resourceVersion":"` + both() + `"},"spec":{"$patch":"replace"}}`, `{"metadata":{"resourceVersion":"11"},"spec":{"$patch":"replace"}}`},
		{"a JSON patch", "application/json-patch+json", `[{"op":"test","path":"/metadata/resourceVersion","value":"` + both() + `"},{"op":"remove","path":"/metadata/annotations/resource.karmada.io~1cached-from-cluster"},{"op":"add","path":"/metadata/labels/a","value":"b"}]`, `[{"op":"test","path":"/metadata/resourceVersion","value":"11"},{"op":"add","path":"/metadata/labels/a","value":"b"}]`},
		{"a JSON patch of the metadata", "application/json-patch+json", `[{"op":"replace","path":"/metadata","value":{"resourceVersion":"` + both() + `"}},{"op":"replace","path":"","value":{"metadata":{"resourceVersion":"` + both() + `"}}},{"op":"add","path":"/metadata/annotations","value":{"` + cached + `":"m1"}}]`, `[{"op":"replace","path":"/metadata","value":{"resourceVersion":"11"}},{"op":"replace","path":"","value":{"metadata":{"resourceVersion":"11"}}},{"op":"add","path":"/metadata/annotations","value":{}}]`},
		{"an applied configuration", "application/apply-patch+yaml", "metadata:\n  resourceVersion: " + both() + "\n  name: p\n", `{"metadata":{"resourceVersion":"11","name":"p"}}`},
		{"YAML", "application/yaml", "metadata: {resourceVersion: " + both() + "}", `{"metadata":{"resourceVersion":"11"}}`},
		{"preconditions", "application/json", `{"kind":"DeleteOptions","preconditions":{"resourceVersion":"` + both() + `","uid":"u"}}`, `{"kind":"DeleteOptions","preconditions":{"resourceVersion":"11","uid":"u"}}`},
		{"an eviction", "application/json", `{"metadata":{"name":"p"},"deleteOptions":{"preconditions":{"resourceVersion":"` + both() + `"}}}`, `{"metadata":{"name":"p"},"deleteOptions":{"preconditions":{"resourceVersion":"11"}}}`},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			got, err := ToMember(FormatOf(tc.contentType), []byte(tc.body), "m1")
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tree(t, []byte(tc.want)), tree(t, got)); diff != "" {
				t.Error(diff)
			}
			_, err = ToMember(FormatOf(tc.contentType), []byte(tc.body), "m3")
			if unknown := (*UnknownVersionError)(nil); bytes.Contains([]byte(tc.body), []byte(both())) != errors.As(err, &unknown) {
				t.Errorf("a cluster without an entry: %v", err)
			}
		})
	}
}

func tree(t *testing.T, text []byte) (out any) {
	t.Helper()
	if err := yaml.Unmarshal(text, &out); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return out
}

func TestToMember_StaysAsItIs(t *testing.T) {
	for _, tc := range []struct{ contentType, body string }{
		{"application/json", `{"metadata": {"name": "p", "resourceVersion": "12"}}`},
		{"application/json", `{"metadata": {"resourceVersion": "0"}}`},
		{"application/json", `{"metadata": {"resourceVersion": 12, "annotations": 3}, "preconditions": []}`},
		{"application/json", `{"metadata": `},
		{"application/json", ``},
		{"application/json-patch+json", `{"metadata":{"resourceVersion":"` + both() + `"}}`},
		{"application/json-patch+json", `[1, {"op":"copy","from":"/a","path":"/b"}]`},
		{"application/yaml", "a: b # a comment"},
		{"application/cbor", "\xd9\xd9\xf7nonsense"},
		{"application/vnd.kubernetes.protobuf", "k8s\x00nonsense"},
		{"application/vnd.kubernetes.protobuf", "nonsense"},
		{"text/plain", both()},
		{";;", both()},
	} {
		if got, err := ToMember(FormatOf(tc.contentType), []byte(tc.body), "m1"); err != nil || string(got) != tc.body {
			t.Errorf("%s %q: %q %v", tc.contentType, tc.body, got, err)
		}
	}
}

func TestToMember_EmptyVersionIsUnknown(t *testing.T) {
	_, err := ToMember(FormatJSON, []byte(`{"metadata":{"resourceVersion":"`+both()+`"}}`), "empty")
	if unknown := (*UnknownVersionError)(nil); !errors.As(err, &unknown) {
		t.Errorf("an empty version overwrites: %v", err)
	}
}

// What multiplies when it is decoded is refused before: aliases, and bodies of the smallest values.
func TestToMember_Hostile(t *testing.T) {
	bomb := "a0: &a0 [x,x,x,x,x,x,x,x,x,x]\n"
	for i := range 9 {
		bomb += fmt.Sprintf("a%d: &a%d [%s]\n", i+1, i+1, strings.TrimSuffix(strings.Repeat(fmt.Sprintf("*a%d,", i), 10), ","))
	}
	alias := strings.Repeat("x", 100_000)
	build.Bounded(t, time.Minute, 256<<20, func() {
		for _, tc := range []struct{ contentType, body string }{
			{"application/apply-patch+yaml", bomb},
			{"application/yaml", "a: &a " + alias + "\nb: [" + strings.Repeat("*a,", 2000) + "]"},
			{"application/apply-patch+yaml", "{\"a\":[" + strings.Repeat("{},", 1<<20) + "{}]}"},
			{"application/apply-patch+yaml", "a: [" + strings.Repeat("{},", 1<<20) + "]"},
			{"application/json", "{\"a\":[" + strings.Repeat("{},", 1<<20) + "{}]}"},
			{"application/json", strings.Repeat("[", 1<<20)},
			{"application/json-patch+json", "[" + strings.Repeat("{},", 1<<20) + "{}]"},
		} {
			if _, err := ToMember(FormatOf(tc.contentType), []byte(tc.body), "m1"); err == nil {
				t.Errorf("%s %.40s: there is no error", tc.contentType, tc.body)
			}
			if got := FromMember(FormatOf(tc.contentType), []byte(tc.body), "m1"); string(got) != tc.body {
				t.Errorf("%s %.40s: an answer was translated", tc.contentType, tc.body)
			}
		}
	})
}

// codec encodes and decodes protobuf.
func codec(t testing.TB) *protobuf.Serializer {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, policyv1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	return protobuf.NewSerializer(scheme, scheme)
}

func encoded(t testing.TB, object runtime.Object) []byte {
	t.Helper()
	var out bytes.Buffer
	if err := codec(t).Encode(object, &out); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func TestTranslate_Protobuf(t *testing.T) {
	version := both()
	pod := func(version string, annotations map[string]string) *corev1.Pod {
		return &corev1.Pod{
			TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
			ObjectMeta: metav1.ObjectMeta{Name: "p", Namespace: "ns", ResourceVersion: version, Annotations: annotations, Labels: map[string]string{"a": "b"}},
			Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "i"}}},
		}
	}
	type precondition = metav1.Preconditions
	before, after := version, "11"
	options := func(version *string) metav1.DeleteOptions {
		return metav1.DeleteOptions{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "DeleteOptions"}, Preconditions: &precondition{ResourceVersion: version}}
	}
	eviction := func(version *string) *policyv1.Eviction {
		o := options(version)
		o.TypeMeta = metav1.TypeMeta{}
		return &policyv1.Eviction{TypeMeta: metav1.TypeMeta{APIVersion: "policy/v1", Kind: "Eviction"}, ObjectMeta: metav1.ObjectMeta{Name: "p"}, DeleteOptions: &o}
	}
	deleteBefore, deleteAfter := options(&before), options(&after)
	for _, tc := range []struct{ in, want runtime.Object }{
		{pod(version, map[string]string{"x": "y", clusterv1alpha1.CacheSourceAnnotation: "m1"}), pod("11", map[string]string{"x": "y"})},
		{&deleteBefore, &deleteAfter},
		{eviction(&before), eviction(&after)},
	} {
		body := encoded(t, tc.in)
		got, err := ToMember(FormatProtobuf, body, "m1")
		if err != nil {
			t.Fatal(err)
		}
		out, _, err := codec(t).Decode(got, nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(tc.want, out); diff != "" {
			t.Errorf("%T: %s", tc.in, diff)
		}
		if _, err := ToMember(FormatProtobuf, body, "m3"); err == nil {
			t.Errorf("%T: no error for a cluster without an entry", tc.in)
		}
	}
	answer := FromMember(FormatProtobuf, encoded(t, pod("11", nil)), "m1")
	out, _, err := codec(t).Decode(answer, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	want := pod(Versions{}.With("m1", "11").Encode(), map[string]string{clusterv1alpha1.CacheSourceAnnotation: "m1"})
	if diff := cmp.Diff(want, out); diff != "" {
		t.Error(diff)
	}
}

func TestFromMember(t *testing.T) {
	one := Versions{}.With("m1", "11").Encode()
	for in, want := range map[string]string{
		`{"metadata":{"name":"p","resourceVersion":"11"}}`: `{"metadata":{"name":"p","resourceVersion":"` + one + `","annotations":{"` + clusterv1alpha1.CacheSourceAnnotation + `":"m1"}}}`,
		`{"kind":"Status","metadata":{},"code":404}`:       `{"kind":"Status","metadata":{},"code":404}`,
		`{"kind":"Table","metadata":{"resourceVersion":"11"},"rows":[{"cells":["p"],"object":{"metadata":{"name":"p","resourceVersion":"11"}}},{"cells":[]}]}`: `{"kind":"Table","metadata":{"resourceVersion":"` + one +
			`"},"rows":[{"cells":["p"],"object":{"metadata":{"name":"p","resourceVersion":"` + one + `","annotations":{"` + clusterv1alpha1.CacheSourceAnnotation + `":"m1"}}}},{"cells":[]}]}`,
		`nonsense`: `nonsense`,
	} {
		got := FromMember(FormatJSON, []byte(in), "m1")
		if in == "nonsense" {
			if string(got) != want {
				t.Errorf("got %s", got)
			}
			continue
		}
		if diff := cmp.Diff(tree(t, []byte(want)), tree(t, got)); diff != "" {
			t.Error(diff)
		}
	}
}

// FuzzTranslate checks that no version of several clusters gets to a member, and that an answer that is written back is the
// member's.
func FuzzTranslate(f *testing.F) {
	f.Add([]byte(`{"metadata":{"name":"a","resourceVersion":"`+both()+`"}}`), int(FormatJSON))
	f.Add([]byte(`[{"op":"test","path":"/metadata/resourceVersion","value":"`+both()+`"}]`), int(FormatJSONPatch))
	f.Add([]byte("metadata:\n  resourceVersion: "+both()), int(FormatYAML))
	f.Add([]byte("\xa1\x68metadata\xa1\x6fresourceVersion\x6211"), int(FormatCBOR))
	f.Add(encoded(f, &corev1.Pod{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"}, ObjectMeta: metav1.ObjectMeta{ResourceVersion: both()}}), int(FormatProtobuf))
	f.Fuzz(func(t *testing.T, body []byte, format int) {
		of := Format(format)
		to, err := ToMember(of, body, "m1")
		if err == nil {
			if again, err := ToMember(of, to, "m1"); err != nil || !bytes.Equal(again, to) && !json.Valid(to) {
				t.Errorf("translated twice: %q, %q, %v", to, again, err)
			}
		}
		answer := FromMember(of, body, "m1")
		if _, err := ToMember(of, answer, "m1"); err != nil && of != FormatJSONPatch {
			if _, before := ToMember(of, body, "m1"); before == nil {
				t.Errorf("an answer cannot be written back: %q: %v", answer, err)
			}
		}
	})
}

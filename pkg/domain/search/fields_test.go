package search

import (
	"errors"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func TestFieldSelector(t *testing.T) {
	pod := `{"apiVersion":"v1","kind":"Pod","metadata":{"namespace":"a","name":"x"},"spec":{"nodeName":"n1"},"status":{"phase":"Running"}}`
	for _, tc := range []struct {
		kind             schema.GroupVersionKind
		object, selector string
		want             bool
	}{
		{coreKind("Pod"), pod, "spec.nodeName=n1,status.phase!=Pending", true},
		{coreKind("Pod"), pod, "spec.nodeName=n2", false},
		{coreKind("Pod"), pod, "spec.hostNetwork=false", true},
		{coreKind("Pod"), pod, "metadata.name=x,metadata.namespace=a", true},
		{coreKind("Pod"), pod, "metadata.name=y", false},
		{coreKind("Node"), `{"kind":"Node","spec":{"unschedulable":true}}`, "spec.unschedulable=true", true},
		{coreKind("Event"), `{"kind":"Event","source":{"component":"kubelet"},"reportingComponent":"r"}`, "source=kubelet", true},
		{coreKind("Event"), `{"kind":"Event","reportingComponent":"r"}`, "source=r", true},
		{coreKind("Namespace"), `{"kind":"Namespace","metadata":{"name":"a"}}`, "name=a", true},
		{batchJob, `{"kind":"Job","status":{"succeeded":3}}`, "status.successful=3", true},
		{batchJob, `{"kind":"Job"}`, "status.successful=0", true},
		{coreKind("ConfigMap"), `{"kind":"ConfigMap","metadata":{"name":"c"}}`, "metadata.name=c", true},
	} {
		f, err := CompileFields(tc.kind, fields.ParseSelectorOrDie(tc.selector))
		if err != nil {
			t.Fatal(err)
		}
		object := &unstructured.Unstructured{}
		if err := object.UnmarshalJSON([]byte(tc.object)); err != nil {
			t.Fatal(err)
		}
		if got := f.Matches(object); got != tc.want {
			t.Errorf("%s of %s: %t", tc.selector, tc.object, got)
		}
		if f.Identity() && f.MatchesIdentity(object.GetNamespace(), object.GetName()) != tc.want {
			t.Errorf("%s of %s by identity", tc.selector, tc.object)
		}
	}
	for _, bad := range []string{"spec.image=x", "status.phase=Running"} {
		_, err := CompileFields(coreKind("ConfigMap"), fields.ParseSelectorOrDie(bad))
		if unknown := (FieldError{}); !errors.As(err, &unknown) {
			t.Errorf("%s: %v", bad, err)
		}
	}
}

// A custom resource is selected by the fields that its definition names.
func TestCompileFields_Defined(t *testing.T) {
	kind := schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Widget"}
	object := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"color": "red"}}}
	for selector, want := range map[string]bool{"spec.color=red": true, "spec.color!=red": false, "spec.size=": true} {
		f, err := CompileFields(kind, fields.ParseSelectorOrDie(selector), "spec.color", "spec.size")
		if err != nil {
			t.Fatal(err)
		}
		if f.Identity() || f.Matches(object) != want {
			t.Errorf("%s: %t", selector, !want)
		}
	}
}

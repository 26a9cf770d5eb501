package search

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func TestIndex_TellsGroupsApart(t *testing.T) {
	for want, kind := range map[string]schema.GroupKind{
		"kubernetes-pod":                     {Kind: "Pod"},
		"kubernetes-deployment":              {Group: "apps", Kind: "Deployment"},
		"kubernetes-ingress":                 {Group: "networking.k8s.io", Kind: "Ingress"},
		"kubernetes-ingress.example.com":     {Group: "example.com", Kind: "Ingress"},
		"kubernetes-work.work.karmada.io":    {Group: "work.karmada.io", Kind: "Work"},
		"kubernetes-deployment.mock8s.io.eu": {Group: "mock8s.io.eu", Kind: "Deployment"},
	} {
		if got := Index(kind); got != want {
			t.Errorf("%v: %s, want %s", kind, got, want)
		}
	}
}

func TestDocument_HasSpecAndStatusAsTexts(t *testing.T) {
	u := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "Secret",
		"metadata": map[string]any{
			"name": "a", "namespace": "x", "resourceVersion": "7", "creationTimestamp": "2026-01-02T03:04:05Z",
			"labels": map[string]any{"app": "web"}, "annotations": map[string]any{"note": "n", corev1.LastAppliedConfigAnnotation: `{"data":{"key":"c2VjcmV0"}}`},
		},
		"spec": map[string]any{"replicas": int64(2)}, "data": map[string]any{"key": "c2VjcmV0"},
	}}
	data, err := Document(u, Origin{Cluster: "m1", ControlPlane: "id", Run: "r"})
	if err != nil {
		t.Fatal(err)
	}
	var got map[string]any
	if err := json.Unmarshal(data, &got); err != nil {
		t.Fatal(err)
	}
	want := map[string]any{
		"cluster": "m1", "controlPlane": "id", "run": "r", "apiVersion": "v1", "kind": "Secret", "spec": `{"replicas":2}`,
		"metadata": map[string]any{
			"name": "a", "namespace": "x", "resourceVersion": "7", "creationTimestamp": "2026-01-02T03:04:05Z",
			"labels": map[string]any{"app": "web"}, "annotations": map[string]any{"note": "n"},
		},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if strings.Contains(string(data), "c2VjcmV0") {
		t.Error("the content of a Secret is in the document")
	}
	if u.GetAnnotations()[corev1.LastAppliedConfigAnnotation] == "" {
		t.Error("the object was changed")
	}
}

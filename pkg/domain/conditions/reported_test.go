package conditions

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

func TestReport(t *testing.T) {
	failing := func(kind, status string) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "apps/v1", "kind": kind,
			"status": map[string]any{"conditions": []any{
				map[string]any{"type": "Available", "status": "False"},
				map[string]any{"type": "ReplicaFailure", "status": status, "reason": "FailedCreate", "message": "exceeded quota\x1b"},
			}},
		}}
	}
	const added = `"conditions":[{"type":"ReplicaFailure","status":"True","reason":"FailedCreate","message":"exceeded quota"}]`
	for _, tc := range []struct {
		name      string
		obj       *unstructured.Unstructured
		raw, want string
	}{
		{"a Deployment whose pods are refused", failing("Deployment", "True"), `{"replicas":2}`, "{" + added + `,"replicas":2}`},
		{"no status was collected", failing("Deployment", "True"), "", "{" + added + "}"},
		{"the condition is False", failing("Deployment", "False"), `{"replicas":2}`, `{"replicas":2}`},
		{"another kind", failing("StatefulSet", "True"), `{"replicas":2}`, `{"replicas":2}`},
		{"the interpreter collects conditions", failing("Deployment", "True"), `{"conditions":[]}`, `{"conditions":[]}`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var status *runtime.RawExtension
			if tc.raw != "" {
				status = &runtime.RawExtension{Raw: []byte(tc.raw)}
			}
			got, err := Report(tc.obj, status)
			if err != nil {
				t.Fatal(err)
			}
			if string(got.Raw) != tc.want {
				t.Errorf("got %s, want %s", got.Raw, tc.want)
			}
		})
	}
}

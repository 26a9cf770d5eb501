package promote

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic/fake"
	clienttesting "k8s.io/client-go/testing"
)

func object(fields map[string]any) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: fields}
}

func TestClean(t *testing.T) {
	const annotation = "work.karmada.io/conflict-resolution"
	for name, tt := range map[string]struct{ in, want map[string]any }{
		"what the member set is removed, and the object may be adopted": {
			map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "c", "uid": "u", "resourceVersion": "1"}, "status": map[string]any{"a": "b"}},
			map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "c", "annotations": map[string]any{annotation: "overwrite"}}},
		},
		"the user's conflict resolution stays": {
			map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"annotations": map[string]any{annotation: "abort"}}},
			map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"annotations": map[string]any{annotation: "abort"}}},
		},
		"a Job keeps its time to live": {
			map[string]any{"apiVersion": "batch/v1", "kind": "Job", "metadata": map[string]any{}, "spec": map[string]any{"ttlSecondsAfterFinished": int64(60)}},
			map[string]any{"apiVersion": "batch/v1", "kind": "Job", "metadata": map[string]any{"annotations": map[string]any{annotation: "overwrite"}}, "spec": map[string]any{"ttlSecondsAfterFinished": int64(60)}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			obj := object(tt.in)
			for range 2 { // the second time changes nothing
				if err := Clean(obj); err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(tt.want, obj.Object); diff != "" {
					t.Error(diff)
				}
			}
		})
	}
}

func TestRun_MissingObjectIsReported(t *testing.T) {
	kind := schema.GroupVersionKind{Group: "example.io", Version: "v1", Kind: "Widget"}
	known := meta.NewDefaultRESTMapper(nil)
	known.Add(kind, meta.RESTScopeNamespace)
	for name, tt := range map[string]struct {
		mapper meta.RESTMapper
		answer error
		want   string
	}{
		"a kind that the control plane does not serve": {meta.NewDefaultRESTMapper(nil), nil, "promote its CustomResourceDefinition first"},
		"a namespace that does not exist": {
			known, apierrors.NewNotFound(schema.GroupResource{Resource: "namespaces"}, "team"), `namespace "team" does not exist there; create it first`,
		},
		"any other refusal": {known, errors.New("no quota left"), `creating "example.io/v1, Resource=widgets"(team/w) in the control plane: no quota left`},
	} {
		t.Run(name, func(t *testing.T) {
			client := fake.NewSimpleDynamicClient(runtime.NewScheme())
			client.PrependReactor("create", "*", func(clienttesting.Action) (bool, runtime.Object, error) { return true, nil, tt.answer })
			obj := object(map[string]any{"metadata": map[string]any{"name": "w", "namespace": "team"}})
			obj.SetGroupVersionKind(kind)
			var out strings.Builder
			err := Run(t.Context(), Deps{ControlPlane: client, Member: client, Mapper: tt.mapper, Out: &out, Warn: t.Logf},
				Request{Cluster: "m1", Namespace: "team", CreatePolicy: true}, obj)
			if err == nil || !strings.Contains(err.Error(), tt.want) || out.Len() > 0 {
				t.Errorf("error %v, printed %q, want %q", err, out.String(), tt.want)
			}
		})
	}
}

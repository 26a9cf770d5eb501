package promote

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic/fake"
	clienttesting "k8s.io/client-go/testing"

	configv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/config/v1alpha1"
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

// TestRun_LyingMember promotes objects that are not those that were requested.
func TestRun_LyingMember(t *testing.T) {
	config := schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}
	known := meta.NewDefaultRESTMapper(nil)
	known.Add(config, meta.RESTScopeNamespace)
	role := object(map[string]any{"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding", "metadata": map[string]any{"name": "c", "labels": map[string]any{"a": "b"}}})
	own := func(namespace, name string) *unstructured.Unstructured {
		return object(map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{
			"namespace": namespace, "name": name, "labels": map[string]any{"a": "b"},
		}})
	}
	for name, tt := range map[string]struct {
		obj, dependency *unstructured.Unstructured
		list            bool
	}{
		"an object of another namespace":       {own("kube-system", "c"), nil, false},
		"an object without a name":             {own("team", ""), nil, false},
		"a dependency of another kind":         {nil, role, false},
		"a dependency of another name":         {nil, own("team", "other"), false},
		"a dependency of another namespace":    {nil, own("kube-system", "c"), false},
		"listed dependencies of another kind":  {nil, role, true},
		"listed dependencies of another place": {nil, own("kube-system", "c"), true},
	} {
		t.Run(name, func(t *testing.T) {
			client := fake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), map[schema.GroupVersionResource]string{
				{Version: "v1", Resource: "configmaps"}: "ConfigMapList",
			})
			client.PrependReactor("*", "*", func(a clienttesting.Action) (bool, runtime.Object, error) {
				switch a.GetVerb() {
				case "get":
					return true, tt.dependency, nil
				case "list":
					return true, &unstructured.UnstructuredList{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMapList"}, Items: []unstructured.Unstructured{*tt.dependency.DeepCopy()}}, nil
				}
				t.Errorf("%s %s", a.GetVerb(), a.GetResource())
				return true, nil, errors.New("not expected")
			})
			d := Deps{ControlPlane: client, Member: client, Mapper: known, Out: &strings.Builder{}, Warn: t.Logf}
			r := Request{Cluster: "m1", Namespace: "team", CreatePolicy: true}
			var err error
			if tt.obj != nil {
				err = Run(t.Context(), d, r, tt.obj)
			} else {
				reference := configv1alpha1.DependentObjectReference{APIVersion: "v1", Kind: "ConfigMap", Namespace: "team", Name: "c"}
				if tt.list {
					reference.Name, reference.LabelSelector = "", &metav1.LabelSelector{MatchLabels: map[string]string{"a": "b"}}
				}
				_, err = readDependency(t.Context(), d, r, reference)
			}
			if err == nil || !strings.Contains(err.Error(), "the member returned something else") {
				t.Errorf("got %v", err)
			}
		})
	}
}

package execution

import (
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	clienttesting "k8s.io/client-go/testing"
	clocktesting "k8s.io/utils/clock/testing"

	configv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/config/v1alpha1"
	workv1alpha2 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha2"
	"github.com/karmada-toolkit/karmada/pkg/domain/execution"
)

// TestWriter_Delete shows how many requests the deletion of an object takes: one, if it is as observed.
func TestWriter_Delete(t *testing.T) {
	object := func(work, version string) *unstructured.Unstructured {
		obj := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap"}}
		obj.SetNamespace("default")
		obj.SetName("a")
		obj.SetUID("u")
		obj.SetResourceVersion(version)
		obj.SetLabels(map[string]string{"karmada.io/managed": "true"})
		obj.SetAnnotations(map[string]string{workv1alpha2.WorkNamespaceAnnotation: "karmada-es-m1", workv1alpha2.WorkNameAnnotation: work})
		return obj
	}
	for name, tc := range map[string]struct {
		stored, observed *unstructured.Unstructured
		// released is stored after the first read: a user took the labels of the control plane away.
		released *unstructured.Unstructured
		want     []string
	}{
		"as observed":                         {stored: object("w", "1"), observed: object("w", "1"), want: []string{"delete"}},
		"not observed":                        {stored: object("w", "1"), want: []string{"get", "delete"}},
		"changed since":                       {stored: object("w", "2"), observed: object("w", "1"), want: []string{"delete", "get", "delete"}},
		"of another Work since":               {stored: object("other", "2"), observed: object("w", "1"), want: []string{"delete", "get"}},
		"observed as that of another Work":    {stored: object("other", "1"), observed: object("other", "1"), want: []string{"get"}},
		"observed before it was of this Work": {stored: object("w", "2"), observed: object("other", "1"), want: []string{"get", "delete"}},
		"gone since":                          {observed: object("w", "1"), want: []string{"delete"}},
		"released after it was read":          {stored: object("w", "1"), released: object("", "2"), want: []string{"get", "delete", "get"}},
	} {
		t.Run(name, func(t *testing.T) {
			resource := schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
			fake := dynamicfake.NewSimpleDynamicClient(runtime.NewScheme())
			fake.PrependReactor("*", "*", func(action clienttesting.Action) (bool, runtime.Object, error) {
				if tc.stored == nil {
					return true, nil, apierrors.NewNotFound(resource.GroupResource(), "a")
				}
				d, ok := action.(clienttesting.DeleteActionImpl)
				if ok && d.DeleteOptions.Preconditions.ResourceVersion != nil && *d.DeleteOptions.Preconditions.ResourceVersion != tc.stored.GetResourceVersion() {
					return true, nil, apierrors.NewConflict(resource.GroupResource(), "a", nil)
				}
				answer := tc.stored
				if action.GetVerb() == "get" && tc.released != nil {
					tc.stored = tc.released
				}
				return true, answer, nil
			})
			w := &writer{
				cluster: "m1", timeout: time.Minute, metrics: newWriteMetrics(prometheus.NewRegistry()), resource: fake.Resource(resource).Namespace("default"),
				work: types.NamespacedName{Namespace: "karmada-es-m1", Name: "w"}, key: types.NamespacedName{Namespace: "default", Name: "a"},
			}
			var observed *execution.Snapshot
			if tc.observed != nil {
				s, err := execution.NewHasher().Snapshot(tc.observed)
				if err != nil {
					t.Fatal(err)
				}
				observed = &s
			}
			if _, err := w.remove(t.Context(), observed); err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, action := range fake.Actions() {
				got = append(got, action.GetVerb())
			}
			if !slices.Equal(got, tc.want) {
				t.Errorf("requests: %v, want %v", got, tc.want)
			}
		})
	}
}

type noRules struct{ Retainer }

func (noRules) HookEnabled(schema.GroupVersionKind, configv1alpha1.InterpreterOperation) bool {
	return false
}

// TestWriter_KeepsFieldsOfTheMember changes manifests of a kind whose controller in the member writes ordinary fields of the object.
// Each step has another Writer, as after a restart.
func TestWriter_KeepsFieldsOfTheMember(t *testing.T) {
	const written = `{"operation": {"sync": "a"}, "status": {"health": "Healthy"}}`
	for name, tc := range map[string]struct {
		// before is the manifest that was applied, there the fields that the member writes then, and after the next manifest.
		before, there, after string
		withStatus           bool
		unowned              bool
		want                 string
	}{
		"fields of the member stay": {
			before: `{"spec": {"a": 1}}`, there: written, after: `{"spec": {"a": 2}}`,
			want: `{"spec": {"a": 2}, "operation": {"sync": "a"}, "status": {"health": "Healthy"}}`,
		},
		"a field that the manifest has no more is removed": {
			before: `{"spec": {"a": 1}, "operation": {"sync": "b"}}`, there: `{"status": {"health": "Healthy"}}`, after: `{"spec": {"a": 1}}`,
			want: `{"spec": {"a": 1}, "status": {"health": "Healthy"}}`,
		},
		"a field that the manifest has is reverted": {
			before: `{"operation": {"sync": "b"}}`, there: written, after: `{"operation": {"sync": "b"}}`,
			want: `{"operation": {"sync": "b"}, "status": {"health": "Healthy"}}`,
		},
		"the status of the manifest is not delivered": {
			before: `{"status": {"health": "Lost"}, "spec": {"a": 1}}`, there: written, after: `{"status": {"health": "Lost"}, "spec": {"a": 2}}`,
			want: `{"spec": {"a": 2}, "operation": {"sync": "a"}, "status": {"health": "Healthy"}}`,
		},
		"an object that is taken over": {
			there: written, after: `{"spec": {"a": 1}}`, unowned: true,
			want: `{"spec": {"a": 1}, "operation": {"sync": "a"}, "status": {"health": "Healthy"}}`,
		},
		"a kind with a status subresource": {
			before: `{"spec": {"a": 1}}`, there: `{"operation": {"sync": "a"}}`, after: `{"spec": {"a": 2}}`, withStatus: true, want: `{"spec": {"a": 2}}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			resource := schema.GroupVersionResource{Group: "argoproj.io", Version: "v1alpha1", Resource: "applications"}
			fake := dynamicfake.NewSimpleDynamicClient(runtime.NewScheme())
			client := fake.Resource(resource).Namespace("argocd")
			object := func(fields string) *unstructured.Unstructured {
				obj := &unstructured.Unstructured{Object: map[string]any{}}
				if err := utiljson.Unmarshal([]byte(fields), &obj.Object); err != nil {
					t.Fatal(err)
				}
				obj.SetAPIVersion("argoproj.io/v1alpha1")
				obj.SetKind("Application")
				obj.SetNamespace("argocd")
				obj.SetName("a")
				return obj
			}
			apply := func(fields string) {
				t.Helper()
				w := &writer{
					cluster: "m1", timeout: time.Minute, hasher: execution.NewHasher(), clock: clocktesting.NewFakePassiveClock(time.Unix(1, 0)),
					metrics: newWriteMetrics(prometheus.NewRegistry()), written: func(*unstructured.Unstructured) {},
					retainer: noRules{}, statusIsField: !tc.withStatus, resource: client, gvk: resource.GroupVersion().WithKind("Application"),
					work: types.NamespacedName{Namespace: "karmada-es-m1", Name: "w"}, key: types.NamespacedName{Namespace: "argocd", Name: "a"},
				}
				manifest := object(fields)
				manifest.SetAnnotations(map[string]string{workv1alpha2.ResourceConflictResolutionAnnotation: "overwrite"})
				raw, err := manifest.MarshalJSON()
				if err != nil {
					t.Fatal(err)
				}
				if _, err := w.apply(t.Context(), execution.Applied{}, raw, execution.ActionRead, nil); err != nil {
					t.Fatal(err)
				}
			}
			stored := func() *unstructured.Unstructured {
				t.Helper()
				obj, err := client.Get(t.Context(), "a", metav1.GetOptions{})
				if err != nil {
					t.Fatal(err)
				}
				return obj
			}
			if tc.unowned {
				if _, err := client.Create(t.Context(), object(tc.there), metav1.CreateOptions{}); err != nil {
					t.Fatal(err)
				}
			} else {
				apply(tc.before)
				if status := stored().Object["status"]; status != nil {
					t.Errorf("created with the status %v", status)
				}
				changed := stored()
				maps.Copy(changed.Object, object(tc.there).Object)
				changed.Object["metadata"] = stored().Object["metadata"]
				if _, err := client.Update(t.Context(), changed, metav1.UpdateOptions{}); err != nil {
					t.Fatal(err)
				}
			}
			apply(tc.after)
			want, got := object(tc.want).Object, stored().Object
			delete(want, "metadata")
			delete(got, "metadata")
			if diff := cmp.Diff(want, got); diff != "" {
				t.Error(diff)
			}
			fake.ClearActions()
			apply(tc.after)
			for _, action := range fake.Actions() {
				if action.GetVerb() != "get" {
					t.Errorf("the second pass makes the request %s", action.GetVerb())
				}
			}
		})
	}
}

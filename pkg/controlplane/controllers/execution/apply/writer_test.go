package apply

import (
	"slices"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	clienttesting "k8s.io/client-go/testing"

	workv1alpha2 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha2"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/controllers/execution/member"
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
			w := &Writer{
				Config: Config{Cluster: "m1", Timeout: time.Minute, Metrics: NewMetrics(prometheus.NewRegistry())}, Resource: fake.Resource(resource).Namespace("default"),
				Work: types.NamespacedName{Namespace: "karmada-es-m1", Name: "w"}, Key: types.NamespacedName{Namespace: "default", Name: "a"},
			}
			var observed *member.Snapshot
			if tc.observed != nil {
				s, err := member.NewHasher().Snapshot(tc.observed)
				if err != nil {
					t.Fatal(err)
				}
				observed = &s
			}
			if err := w.Delete(t.Context(), observed); err != nil {
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

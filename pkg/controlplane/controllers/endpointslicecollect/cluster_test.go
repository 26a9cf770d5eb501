package endpointslicecollect

import (
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
)

func TestProject(t *testing.T) {
	wanted := sets.New(types.NamespacedName{Namespace: "default", Name: "web"})
	for name, tc := range map[string]struct {
		namespace string
		labels    map[string]string
		kept      bool
	}{
		"the slice of a Service that is wanted": {"default", map[string]string{"kubernetes.io/service-name": "web"}, true},
		"another Service":                       {"default", map[string]string{"kubernetes.io/service-name": "db"}, false},
		"another namespace":                     {"kube-system", map[string]string{"kubernetes.io/service-name": "web"}, false},
		"a slice that was dispatched":           {"default", map[string]string{"kubernetes.io/service-name": "web", "endpointslice.kubernetes.io/managed-by": "endpointslice-dispatch-controller.karmada.io"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			obj := &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"managedFields": []any{}, "uid": "u"}}}
			obj.SetNamespace(tc.namespace)
			obj.SetLabels(tc.labels)
			got, err := project(obj, wanted)
			if err != nil || (got.raw != "") != tc.kept || strings.Contains(got.raw, "managedFields") {
				t.Errorf("stored %q, %v", got.raw, err)
			}
		})
	}
}

func TestSelectorOf(t *testing.T) {
	all := sets.New[types.NamespacedName]()
	for i := range maxSelected {
		all.Insert(types.NamespacedName{Namespace: "a", Name: fmt.Sprintf("s%d", i)})
	}
	if selector, namespace := selectorOf(all); namespace != "a" || !strings.Contains(selector, "kubernetes.io/service-name in (s0,") {
		t.Errorf("got %s in %q", selector, namespace)
	}
	all.Insert(types.NamespacedName{Namespace: "b", Name: "more"})
	if selector, namespace := selectorOf(all); namespace != "" || !strings.Contains(selector, "kubernetes.io/service-name") || strings.Contains(selector, "s0") || !strings.Contains(selector, "notin") {
		t.Errorf("got %s in %q", selector, namespace)
	}
}

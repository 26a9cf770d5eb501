package apply

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func TestNewPolicy(t *testing.T) {
	deployment := schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}
	role := schema.GroupVersionKind{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "ClusterRole"}
	for name, tt := range map[string]struct {
		gvk             schema.GroupVersionKind
		namespace, name string
		clusters        []string
		want            map[string]any
	}{
		"namespaced, to clusters in their order": {deployment, "default", "nginx", []string{"m2", "m1"}, map[string]any{
			"apiVersion": "policy.karmada.io/v1alpha1", "kind": "PropagationPolicy",
			"metadata": map[string]any{"name": "nginx-6d7f8d5f5b", "namespace": "default"},
			"spec": map[string]any{
				"resourceSelectors": []any{map[string]any{"apiVersion": "apps/v1", "kind": "Deployment", "name": "nginx", "namespace": "default"}},
				"placement":         map[string]any{"clusterAffinity": map[string]any{"clusterNames": []any{"m2", "m1"}}},
			},
		}},
		"cluster-scoped, to all": {role, "", "system:x", nil, map[string]any{
			"apiVersion": "policy.karmada.io/v1alpha1", "kind": "ClusterPropagationPolicy",
			"metadata": map[string]any{"name": newPolicy(role, "", "system:x", nil).GetName()},
			"spec": map[string]any{
				"resourceSelectors": []any{map[string]any{"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "name": "system:x"}},
				"placement":         map[string]any{"clusterAffinity": map[string]any{}},
			},
		}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, newPolicy(tt.gvk, tt.namespace, tt.name, tt.clusters).Object); diff != "" {
				t.Error(diff)
			}
		})
	}
}

package kubelite

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authentication/user"
)

func TestFieldsPlugin(t *testing.T) {
	for name, tt := range map[string]struct {
		user, group, subresource string
		kept                     bool
	}{
		"a controller's binding":                   {"system:karmada:controller-manager", "work.karmada.io", "", false},
		"that of a process with all roles":         {"system:karmada:all-in-one", "work.karmada.io", "", false},
		"a user's":                                 {"admin", "work.karmada.io", "", true},
		"a controller's object of another group":   {"system:karmada:all-in-one", "policy.karmada.io", "", true},
		"a controller's request for a subresource": {"system:karmada:all-in-one", "work.karmada.io", "scale", true},
	} {
		t.Run(name, func(t *testing.T) {
			u := &unstructured.Unstructured{Object: map[string]any{}}
			u.SetManagedFields([]metav1.ManagedFieldsEntry{{Manager: "karmada"}})
			a := admission.NewAttributesRecord(u, nil, schema.GroupVersionKind{}, "default", "b",
				schema.GroupVersionResource{Group: tt.group, Resource: "resourcebindings"}, tt.subresource, admission.Create, nil, false, &user.DefaultInfo{Name: tt.user})
			if err := (fieldsPlugin{}).Admit(t.Context(), a, nil); err != nil {
				t.Fatal(err)
			}
			if kept := len(u.GetManagedFields()) == 1; kept != tt.kept {
				t.Errorf("kept %t, want %t", kept, tt.kept)
			}
		})
	}
}

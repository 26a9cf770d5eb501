package override

import (
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// ErrForbidden is the cause of an Error for an overrider that changes the identity
// of an object.
var ErrForbidden = errors.New("not allowed in an override")

// shownValue is the length, in bytes, up to which values are part of messages.
const shownValue = 128

// Identity is what distinguishes an object from all others in a cluster.
type Identity struct {
	APIVersion, Kind, Namespace, Name string
}

// IdentityOf returns the identity of an object.
func IdentityOf(obj *unstructured.Unstructured) Identity {
	return Identity{APIVersion: obj.GetAPIVersion(), Kind: obj.GetKind(), Namespace: obj.GetNamespace(), Name: obj.GetName()}
}

// Check returns an error that wraps ErrForbidden when the object has another
// identity. Fields that are not strings count as changed.
func (i Identity) Check(obj map[string]any) error {
	metadata, ok := obj["metadata"].(map[string]any)
	if !ok {
		return fmt.Errorf("metadata would become %T: %w", obj["metadata"], ErrForbidden)
	}
	for _, f := range []struct {
		path, want string
		values     map[string]any
		key        string
	}{
		{"apiVersion", i.APIVersion, obj, "apiVersion"},
		{"kind", i.Kind, obj, "kind"},
		{"metadata.namespace", i.Namespace, metadata, "namespace"},
		{"metadata.name", i.Name, metadata, "name"},
	} {
		value, set := f.values[f.key]
		text, isString := value.(string)
		if set && !isString {
			return fmt.Errorf("%s would become %T: %w", f.path, value, ErrForbidden)
		}
		if text != f.want {
			return fmt.Errorf("%s %q would become %q: %w", f.path, f.want, shorten(text), ErrForbidden)
		}
	}
	return nil
}

func shorten(s string) string {
	if len(s) > shownValue {
		return s[:shownValue] + "..."
	}
	return s
}

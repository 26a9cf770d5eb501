package webhook

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"reflect"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/karmada-toolkit/karmada/internal/quantity"
)

// mutator changes objects of one kind. It patches the fields of its type and leaves
// other fields alone. controller-runtime's Defaulter cannot: it either removes
// fields that the type does not have, or keeps empty ones that the contract removes,
// and it rounds large integers in what it replaces.
type mutator[T any] struct {
	kind   schema.GroupVersionKind
	shape  *shape
	change func(req *admission.Request, obj *T)
}

func newMutator[T any](kind schema.GroupVersionKind, change func(*admission.Request, *T)) *mutator[T] {
	return &mutator[T]{kind: kind, shape: shapeOf(reflect.TypeFor[T](), map[reflect.Type]*shape{}), change: change}
}

// Handle implements admission.Handler.
func (m *mutator[T]) Handle(_ context.Context, req admission.Request) admission.Response {
	obj, err := decodeAs[T](req.Object.Raw, m.kind)
	if err != nil {
		return admission.Errored(http.StatusBadRequest, err)
	}
	m.change(&req, obj)
	steps, err := m.patch(req.Object.Raw, obj)
	if err != nil {
		return admission.Errored(http.StatusInternalServerError, err)
	}
	return patched(steps)
}

// patch returns the steps that turn the raw object into obj.
func (m *mutator[T]) patch(raw []byte, obj *T) ([]operation, error) {
	var before, after any
	if err := utiljson.Unmarshal(raw, &before); err != nil {
		return nil, fmt.Errorf("decoding %s: %w", m.kind.Kind, err)
	}
	encoded, err := json.Marshal(obj)
	if err != nil {
		return nil, fmt.Errorf("encoding %s: %w", m.kind.Kind, err)
	}
	if err := utiljson.Unmarshal(encoded, &after); err != nil {
		return nil, fmt.Errorf("decoding %s: %w", m.kind.Kind, err)
	}
	return diff("", before, m.shape.keepUnknown(before, after)), nil
}

// patched admits a request with a JSON patch.
func patched(steps []operation) admission.Response {
	resp := admission.Allowed("")
	if len(steps) == 0 {
		return resp
	}
	patch, err := json.Marshal(steps)
	if err != nil {
		return admission.Errored(http.StatusInternalServerError, fmt.Errorf("encoding the patch: %w", err))
	}
	resp.Patch, resp.PatchType = patch, new(admissionv1.PatchTypeJSONPatch)
	return resp
}

// decodeAs decodes an object that must be of the kind.
func decodeAs[T any](raw []byte, kind schema.GroupVersionKind) (*T, error) {
	if len(raw) == 0 {
		return nil, errors.New("there is no content to decode")
	}
	obj := new(T)
	var meta metav1.TypeMeta
	if err := json.Unmarshal(raw, &meta); err != nil {
		return nil, fmt.Errorf("decoding the object: %w", err)
	}
	if err := checkKind[T](meta, kind); err != nil {
		return nil, err
	}
	// Users choose quantities, and the typed decoder computes with them.
	if err := quantity.CheckJSON(raw, reflect.TypeFor[T]()); err != nil {
		return nil, fmt.Errorf("decoding %s: %w", kind.Kind, err)
	}
	if err := utiljson.Unmarshal(raw, obj); err != nil {
		return nil, fmt.Errorf("decoding %s: %w", kind.Kind, err)
	}
	return obj, nil
}

// checkKind refuses objects of another kind or version than the handler's.
func checkKind[T any](meta metav1.TypeMeta, kind schema.GroupVersionKind) error {
	if meta.APIVersion == kind.GroupVersion().String() && meta.Kind == kind.Kind {
		return nil
	}
	got := schema.FromAPIVersionAndKind(meta.APIVersion, meta.Kind)
	return fmt.Errorf("unable to decode %s into %T", got, new(T))
}

package webhook

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"reflect"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/karmada-toolkit/karmada/internal/quantity"
	"github.com/karmada-toolkit/karmada/pkg/apis/validation"
	workv1alpha2 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha2"
)

// labeler gives new bindings an id. Bindings as controllers write them are not
// decoded: only the fields that show that they need nothing else are.
type labeler[T any] struct {
	full  *mutator[T]
	kind  schema.GroupVersionKind
	label string
	newID func() string
}

func newLabeler[T any](kind schema.GroupVersionKind, label string, newID func() string, labelsOf func(*T) *metav1.ObjectMeta) *labeler[T] {
	full := newMutator(kind, func(_ *admission.Request, obj *T) { setID(labelsOf(obj), label, newID) })
	return &labeler[T]{full: full, kind: kind, label: label, newID: newID}
}

// setID labels an object that has no id.
func setID(meta *metav1.ObjectMeta, label string, newID func() string) {
	if meta.Labels[label] != "" {
		return
	}
	if meta.Labels == nil {
		meta.Labels = map[string]string{}
	}
	meta.Labels[label] = newID()
}

// glance is the part of an object that decides what a label needs.
type glance struct {
	metav1.TypeMeta `json:",inline"`
	Metadata        struct {
		Labels map[string]string `json:"labels"`
	} `json:"metadata"`
	Spec struct {
		Resource struct {
			APIVersion, Kind, Name string
		} `json:"resource"`
	} `json:"spec"`
}

// Handle implements admission.Handler.
func (l *labeler[T]) Handle(ctx context.Context, req admission.Request) admission.Response {
	if !plain(req.Object.Raw) {
		return l.full.Handle(ctx, req)
	}
	var seen glance
	if err := json.Unmarshal(req.Object.Raw, &seen); err != nil {
		return admission.Errored(http.StatusBadRequest, fmt.Errorf("decoding %s: %w", l.kind.Kind, err))
	}
	if err := checkKind[T](seen.TypeMeta, l.kind); err != nil {
		return admission.Errored(http.StatusBadRequest, err)
	}
	if r := seen.Spec.Resource; r.APIVersion == "" || r.Kind == "" || r.Name == "" {
		return l.full.Handle(ctx, req)
	}
	return patched(labelStep(seen.Metadata.Labels, l.label, l.newID))
}

// labelStep returns the step that labels an object which has no id.
func labelStep(labels map[string]string, label string, newID func() string) []operation {
	switch {
	case labels[label] != "":
		return nil
	case labels == nil:
		return []operation{{Op: "add", Path: "/metadata/labels", Value: map[string]string{label: newID()}}}
	}
	return []operation{{Op: "add", Path: "/metadata/labels/" + escape(label), Value: newID()}}
}

// plain reports whether a binding is surely written in the one form that its type
// has: no field given as empty, and none of the lists whose elements have fields
// that must be there.
func plain(raw []byte) bool {
	for _, needle := range []string{
		":0,", ":0}", `:""`, ":false", ":null", ":[]", `"gracefulEvictionTasks"`, `"requiredBy"`, `"components"`, `"failover"`, `"staticWeightList"`,
	} {
		if bytes.Contains(raw, []byte(needle)) {
			return false
		}
	}
	return true
}

// bindingGlance is the part of a binding that validation reads.
type bindingGlance struct {
	metav1.TypeMeta `json:",inline"`
	Metadata        struct {
		Annotations map[string]string `json:"annotations"`
		Labels      map[string]string `json:"labels"`
	} `json:"metadata"`
	Spec struct {
		Components []workv1alpha2.Component     `json:"components"`
		Resource   workv1alpha2.ObjectReference `json:"resource"`
	} `json:"spec"`
}

// bindingValidator validates bindings of the namespaced scope. It decodes only what
// it reads; quotas are counted by the enforcer, if there is one.
type bindingValidator struct {
	kind       schema.GroupVersionKind
	components bool
	quotas     *enforcer
}

func newBindingValidator(d Deps) *bindingValidator {
	v := &bindingValidator{kind: workv1alpha2.SchemeGroupVersion.WithKind("ResourceBinding"), components: d.Components}
	if d.Enforcement {
		v.quotas = newEnforcer(d)
	}
	return v
}

// Handle implements admission.Handler. Quotas come last: what they count should
// not be refused for another reason afterwards.
func (v *bindingValidator) Handle(ctx context.Context, req admission.Request) admission.Response {
	// Every role decodes what is stored, quantities included.
	if err := quantity.CheckJSON(req.Object.Raw, reflect.TypeFor[workv1alpha2.ResourceBinding]()); err != nil {
		return admission.Errored(http.StatusBadRequest, fmt.Errorf("decoding ResourceBinding: %w", err))
	}
	var seen bindingGlance
	if err := json.Unmarshal(req.Object.Raw, &seen); err != nil {
		return admission.Errored(http.StatusBadRequest, fmt.Errorf("decoding ResourceBinding: %w", err))
	}
	if err := checkKind[workv1alpha2.ResourceBinding](seen.TypeMeta, v.kind); err != nil {
		return admission.Errored(http.StatusBadRequest, err)
	}
	errs := validation.ValidateDependenciesAnnotation(seen.Metadata.Annotations)
	boundary, err := seen.boundary(&req)
	if err != nil {
		return admission.Errored(http.StatusBadRequest, err)
	}
	errs = append(errs, boundary...)
	if v.components {
		errs = append(errs, validation.ValidateComponents(seen.Spec.Components)...)
	}
	if len(errs) > 0 {
		return admission.Denied(errs.ToAggregate().Error())
	}
	if v.quotas != nil {
		return v.quotas.admit(ctx, &req, v.kind)
	}
	return admission.Allowed("")
}

// boundary checks what ties a binding to its namespace and its Works.
func (b *bindingGlance) boundary(req *admission.Request) (field.ErrorList, error) {
	if req.Operation != admissionv1.Update {
		return validation.ValidateBindingResource(req.Namespace, &b.Spec.Resource, nil), nil
	}
	var old bindingGlance
	if err := json.Unmarshal(req.OldObject.Raw, &old); err != nil {
		return nil, fmt.Errorf("decoding the stored ResourceBinding: %w", err)
	}
	const id = workv1alpha2.ResourceBindingPermanentIDLabel
	return append(validation.ValidateBindingResource(req.Namespace, &b.Spec.Resource, &old.Spec.Resource),
		validation.ValidateBindingID(b.Metadata.Labels[id], old.Metadata.Labels[id])...), nil
}

package webhook

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	configv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/config/v1alpha1"
	"github.com/karmada-toolkit/karmada/pkg/apis/validation"
	workv1alpha2 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha2"
	"github.com/karmada-toolkit/karmada/pkg/domain/interpreter/lua"
)

// failure is an error of the handler rather than of the object.
type failure struct{ error }

func (f failure) Unwrap() error { return f.error }

// validator validates objects of one kind. An error of the check denies the
// request, but a failure is reported as such.
type validator[T any] struct {
	kind  schema.GroupVersionKind
	check func(ctx context.Context, req *admission.Request, obj, old *T) error
	warn  func(ctx context.Context, obj *T) []string // may be nil
	// advise returns warnings that take reads: only for what is new or has another
	// spec. It may be nil.
	advise func(ctx context.Context, obj *T) []string
}

func newValidator[T any](kind schema.GroupVersionKind, check func(ctx context.Context, req *admission.Request, obj, old *T) error) *validator[T] {
	return &validator[T]{kind: kind, check: check}
}

// withWarnings returns the validator with warnings for what it admits.
func (v *validator[T]) withWarnings(warn func(ctx context.Context, obj *T) []string) *validator[T] {
	v.warn = warn
	return v
}

// withAdvice returns the validator with more warnings for objects whose spec is new.
func (v *validator[T]) withAdvice(advise func(ctx context.Context, obj *T) []string) *validator[T] {
	v.advise = advise
	return v
}

// specChanged reports whether a request is about a new object or one with another
// spec. API servers encode what did not change alike.
func specChanged(req *admission.Request) bool {
	var now, before struct{ Spec json.RawMessage }
	return req.Operation != admissionv1.Update || json.Unmarshal(req.Object.Raw, &now) != nil ||
		json.Unmarshal(req.OldObject.Raw, &before) != nil || !bytes.Equal(now.Spec, before.Spec)
}

// pure makes a check of a function that only reads the new object.
func pure[T any](check func(obj *T) error) func(context.Context, *admission.Request, *T, *T) error {
	return func(_ context.Context, _ *admission.Request, obj, _ *T) error { return check(obj) }
}

// Handle implements admission.Handler.
func (v *validator[T]) Handle(ctx context.Context, req admission.Request) admission.Response {
	obj, err := decodeAs[T](req.Object.Raw, v.kind)
	if err != nil {
		return admission.Errored(http.StatusBadRequest, err)
	}
	var old *T
	if req.Operation == admissionv1.Update {
		if old, err = decodeAs[T](req.OldObject.Raw, v.kind); err != nil {
			return admission.Errored(http.StatusBadRequest, err)
		}
	}
	resp := verdict(v.check(ctx, &req, obj, old))
	if resp.Allowed && v.warn != nil {
		resp.Warnings = v.warn(ctx, obj)
	}
	if resp.Allowed && v.advise != nil && specChanged(&req) {
		resp.Warnings = append(resp.Warnings, v.advise(ctx, obj)...)
	}
	return resp
}

// verdict answers with the result of a check.
func verdict(err error) admission.Response {
	var failed failure
	switch {
	case err == nil:
		return admission.Allowed("")
	case errors.As(err, &failed):
		return admission.Errored(http.StatusInternalServerError, failed.error)
	}
	return admission.Denied(err.Error())
}

// customizationCheck validates customizations together with those that exist. They
// are few and change seldom, so they are read from the API server, where none is
// missed.
type customizationCheck struct{ reader client.Reader }

func (c *customizationCheck) check(ctx context.Context, _ *admission.Request, obj, _ *configv1alpha1.ResourceInterpreterCustomization) error {
	var all configv1alpha1.ResourceInterpreterCustomizationList
	if err := c.reader.List(ctx, &all); err != nil {
		return failure{fmt.Errorf("listing the customizations: %w", err)}
	}
	return validation.ValidateCustomization(obj, all.Items, lua.Check)
}

// protect refuses to delete objects whose label forbids it.
func protect(_ context.Context, req admission.Request) admission.Response {
	if req.Operation != admissionv1.Delete {
		return admission.Allowed("")
	}
	raw := req.OldObject.Raw
	if len(raw) == 0 {
		return admission.Errored(http.StatusBadRequest, errors.New("there is no content to decode"))
	}
	var object struct {
		Metadata struct {
			Labels map[string]string `json:"labels"`
		} `json:"metadata"`
	}
	if err := json.Unmarshal(raw, &object); err != nil {
		return admission.Errored(http.StatusBadRequest, fmt.Errorf("decoding the object: %w", err))
	}
	if object.Metadata.Labels[workv1alpha2.DeletionProtectionLabel] == workv1alpha2.DeletionProtectionAlways {
		return admission.Denied("This resource is protected, please make sure to remove the label: " + workv1alpha2.DeletionProtectionLabel)
	}
	return admission.Allowed("")
}

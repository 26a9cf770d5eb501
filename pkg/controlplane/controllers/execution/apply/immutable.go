package apply

import (
	"errors"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ImmutableError is returned for an update that the member refuses because a field is immutable. No repetition helps.
type ImmutableError struct {
	// Field is the path of the field, as far as the member says.
	Field string
	// Object is the kind and the name of the object, and Cluster the name of the member.
	Object, Cluster string
	Err             error
}

// Error implements error.
func (e *ImmutableError) Error() string {
	return fmt.Sprintf("%s of %s cannot be changed in cluster %s. To have the object made anew, with what depends on it, delete it there; "+
		"else change the template back, or keep the member's value with a retention rule: %v", e.Field, e.Object, e.Cluster, e.Err)
}

// Unwrap returns the answer of the member.
func (e *ImmutableError) Unwrap() error { return e.Err }

// immutableField returns the field that an API server does not change, and false if an error says nothing about one. Kubernetes has
// no code for it: these are the words of its validation.
func immutableField(err error) (string, bool) {
	var status apierrors.APIStatus
	if !apierrors.IsInvalid(err) || !errors.As(err, &status) || status.Status().Details == nil {
		return "", false
	}
	for _, cause := range status.Status().Details.Causes {
		if cause.Type != metav1.CauseTypeFieldValueInvalid && cause.Type != metav1.CauseType("FieldValueForbidden") {
			continue
		}
		for _, words := range []string{"immutable", "may not change", "may not be changed", "cannot change", "cannot be changed", "updates to "} {
			if strings.Contains(cause.Message, words) {
				return cause.Field, true
			}
		}
	}
	return "", false
}

// OnlyImmutable reports whether an error consists of ImmutableErrors.
func OnlyImmutable(err error) bool {
	if err == nil {
		return false
	}
	if many, ok := err.(interface{ Unwrap() []error }); ok {
		for _, e := range many.Unwrap() {
			if !OnlyImmutable(e) {
				return false
			}
		}
		return len(many.Unwrap()) > 0
	}
	if many, ok := err.(interface{ Errors() []error }); ok {
		for _, e := range many.Errors() {
			if !OnlyImmutable(e) {
				return false
			}
		}
		return len(many.Errors()) > 0
	}
	var immutable *ImmutableError
	return errors.As(err, &immutable)
}

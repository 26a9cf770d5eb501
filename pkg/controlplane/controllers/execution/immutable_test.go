package execution

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

func TestImmutableField(t *testing.T) {
	path := field.NewPath("spec")
	for name, tc := range map[string]struct {
		err  *field.Error
		want string
	}{
		"a Job":           {field.Invalid(path.Child("template"), "", "field is immutable"), "spec.template"},
		"a claim":         {field.Forbidden(path, "spec is immutable after creation except resources.requests"), "spec"},
		"a StatefulSet":   {field.Forbidden(path, "updates to statefulset spec for fields other than 'replicas' are forbidden"), "spec"},
		"a Pod":           {field.Forbidden(path, "pod updates may not change fields other than `spec.containers[*].image`"), "spec"},
		"a binding":       {field.Invalid(field.NewPath("roleRef"), "", "cannot change roleRef"), "roleRef"},
		"a wrong value":   {field.Invalid(path.Child("replicas"), -1, "must be greater than or equal to 0"), ""},
		"a missing value": {field.Required(path.Child("selector"), "it is immutable"), ""},
	} {
		t.Run(name, func(t *testing.T) {
			err := apierrors.NewInvalid(schema.GroupKind{Kind: "X"}, "x", field.ErrorList{tc.err})
			if got, ok := immutableField(fmt.Errorf("updating: %w", err)); got != tc.want || ok != (tc.want != "") {
				t.Errorf("%q, %v", got, ok)
			}
		})
	}
	for _, err := range []error{nil, errors.New("field is immutable"), apierrors.NewConflict(schema.GroupResource{}, "x", errors.New("immutable"))} {
		if _, ok := immutableField(err); ok {
			t.Errorf("%v is about an immutable field", err)
		}
	}
}

func TestOnlyImmutable(t *testing.T) {
	immutable := &immutableError{Field: "spec", Object: "Job a/b", Cluster: "m1", Err: errors.New("refused")}
	if !strings.HasPrefix(immutable.Error(), "spec of Job a/b cannot be changed in cluster m1. ") || !strings.HasSuffix(immutable.Error(), ": refused") {
		t.Error(immutable.Error())
	}
	other := errors.New("other")
	for _, tc := range []struct {
		err  error
		want bool
	}{
		{nil, false}, {other, false}, {fmt.Errorf("x: %w", immutable), true}, {errors.Join(immutable, immutable), true}, {errors.Join(immutable, other), false},
		{utilerrors.NewAggregate([]error{immutable}), true}, {utilerrors.NewAggregate([]error{immutable, other}), false},
	} {
		if got := onlyImmutable(tc.err); got != tc.want {
			t.Errorf("%v: %v", tc.err, got)
		}
	}
}

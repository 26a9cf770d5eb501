package v1alpha1

import (
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Covers reports whether the rule has the kind.
func (r *Rule) Covers(kind schema.GroupVersionKind) bool {
	return oneOf(r.APIGroups, kind.Group) && oneOf(r.APIVersions, kind.Version) && oneOf(r.Kinds, kind.Kind)
}

// Performs reports whether the rule has the operation.
func (r *RuleWithOperations) Performs(operation InterpreterOperation) bool {
	return oneOf(r.Operations, operation)
}

func oneOf[T ~string](list []T, value T) bool {
	return slices.Contains(list, value) || slices.Contains(list, "*")
}

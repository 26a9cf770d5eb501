package webhook

import (
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"

	configv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/config/v1alpha1"
)

// coverage is the kinds and operations that a webhook has rules for.
type coverage []configv1alpha1.RuleWithOperations

// kind reports whether a rule covers the kind, for some operation.
func (c coverage) kind(gvk schema.GroupVersionKind) bool {
	return slices.ContainsFunc(c, func(r configv1alpha1.RuleWithOperations) bool { return covers(&r, gvk) })
}

// operation reports whether a rule covers the operation for the kind.
func (c coverage) operation(gvk schema.GroupVersionKind, op configv1alpha1.InterpreterOperation) bool {
	return slices.ContainsFunc(c, func(r configv1alpha1.RuleWithOperations) bool {
		return oneOf(r.Operations, op) && covers(&r, gvk)
	})
}

func covers(r *configv1alpha1.RuleWithOperations, gvk schema.GroupVersionKind) bool {
	return oneOf(r.APIGroups, gvk.Group) && oneOf(r.APIVersions, gvk.Version) && oneOf(r.Kinds, gvk.Kind)
}

func oneOf[T ~string](list []T, value T) bool {
	return slices.Contains(list, value) || slices.Contains(list, "*")
}

package validation

import (
	"fmt"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"

	configv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/config/v1alpha1"
	policyv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/policy/v1alpha1"
)

// keepsIdentity is the reason for refusing overriders of fields that distinguish
// an object from others.
const keepsIdentity = "an override must not change apiVersion, kind, namespace or name of an object"

// validateIdentity refuses overriders of the fields that distinguish an object
// from others, in either form of a policy.
func validateIdentity(spec *policyv1alpha1.OverrideSpec, path *field.Path) field.ErrorList {
	errs := validateOverridersIdentity(&spec.Overriders, path.Child("overriders"))
	for i := range spec.OverrideRules {
		errs = append(errs, validateOverridersIdentity(&spec.OverrideRules[i].Overriders, path.Child("overrideRules").Index(i).Child("overriders"))...)
	}
	return errs
}

func validateOverridersIdentity(o *policyv1alpha1.Overriders, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	check := func(pointer string, at *field.Path) {
		if pointsAtIdentity(pointer) {
			errs = append(errs, field.Forbidden(at, keepsIdentity))
		}
	}
	for i := range o.Plaintext {
		check(o.Plaintext[i].Path, path.Child("plaintext").Index(i).Child("path"))
	}
	for i := range o.ImageOverrider {
		// Images are strings: an empty path, or one to metadata, fails when applied.
		if predicate := o.ImageOverrider[i].Predicate; predicate != nil && predicate.Path != "" {
			check(predicate.Path, path.Child("imageOverrider").Index(i).Child("predicate", "path"))
		}
	}
	for i := range o.FieldOverrider {
		if o.FieldOverrider[i].FieldPath != "" {
			check(o.FieldOverrider[i].FieldPath, path.Child("fieldOverrider").Index(i).Child("fieldPath"))
		}
	}
	return errs
}

// pointsAtIdentity reports whether a JSON pointer is to a field that distinguishes
// an object from others, or to what such fields are in.
func pointsAtIdentity(pointer string) bool {
	decoded := strings.ReplaceAll(strings.ReplaceAll(pointer, "~1", "/"), "~0", "~")
	return slices.Contains([]string{"", "/apiVersion", "/kind", "/metadata", "/metadata/name", "/metadata/namespace"}, decoded)
}

// ValidateOverridePolicyUpdate checks an OverridePolicy or a
// ClusterOverridePolicy against the stored one that it replaces. A stored policy
// that overrides what it must not, or too much, may keep its spec: it is not applied, and other
// updates of it must stay possible.
func ValidateOverridePolicyUpdate(p, old policyv1alpha1.OverridePolicyObject) field.ErrorList {
	errs := validateOverrideSpec(p)
	if equality.Semantic.DeepEqual(p.OverrideSpec(), old.OverrideSpec()) {
		return errs
	}
	errs = append(errs, validateIdentity(p.OverrideSpec(), field.NewPath("spec"))...)
	return append(errs, validateOverrideLimits(p.OverrideSpec(), field.NewPath("spec"))...)
}

// SetsRights reports whether objects of a kind grant rights, set limits, direct traffic
// or extend the API server: those that the default role "edit" may not write in members,
// or that only controllers write.
func SetsRights(kind schema.GroupKind) bool {
	switch kind.Group {
	case rbacv1.GroupName, "admissionregistration.k8s.io", "apiregistration.k8s.io", "apiextensions.k8s.io", "certificates.k8s.io":
		return true
	case "":
		return kind.Kind == "ResourceQuota" || kind.Kind == "LimitRange" || kind.Kind == "Endpoints"
	case "discovery.k8s.io":
		return kind.Kind == "EndpointSlice"
	case "networking.k8s.io":
		return kind.Kind == "NetworkPolicy"
	}
	return false
}

// RetainsCertificates reports whether a customization may keep the certificates that members have in objects of a kind, and
// nothing else of them.
func RetainsCertificates(kind schema.GroupKind) bool {
	switch kind.Group {
	case "admissionregistration.k8s.io", "apiregistration.k8s.io", "apiextensions.k8s.io":
		return true
	}
	return false
}

// CheckCustomizable returns why no customization or webhook interprets objects of a kind for an operation, or nil. What
// sets rights is delivered as its template is, and nothing of a Secret gets into bindings, which more users may read.
func CheckCustomizable(kind schema.GroupKind, operation configv1alpha1.InterpreterOperation) error {
	if operation == configv1alpha1.InterpreterOperationReviseReplica && SetsRights(kind) ||
		operation == configv1alpha1.InterpreterOperationRetain && SetsRights(kind) && !RetainsCertificates(kind) {
		return fmt.Errorf("%s is not available for %s, which grants rights, sets limits or directs traffic in clusters: "+
			"leave the fields that differ out of the template, or write them with an OverridePolicy", operation, kind)
	}
	if kind == (schema.GroupKind{Kind: "Secret"}) && !slices.Contains([]configv1alpha1.InterpreterOperation{
		configv1alpha1.InterpreterOperationRetain, configv1alpha1.InterpreterOperationInterpretHealth,
	}, operation) {
		return fmt.Errorf("%s is not available for %s: its result is stored where more users may read it", operation, kind)
	}
	return nil
}

// OwnService reports whether a Service is the one that every cluster makes for its own API server. Nothing of it is
// propagated, exported or dispatched: it would lead the clients of one API server to another.
func OwnService(service types.NamespacedName) bool {
	return service == types.NamespacedName{Namespace: "default", Name: "kubernetes"}
}

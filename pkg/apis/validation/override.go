package validation

import (
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	policyv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/policy/v1alpha1"
)

// ValidateOverridePolicy checks the spec of an OverridePolicy or a
// ClusterOverridePolicy that is created.
func ValidateOverridePolicy(p policyv1alpha1.OverridePolicyObject) field.ErrorList {
	errs := append(validateOverrideSpec(p), validateIdentity(p.OverrideSpec(), field.NewPath("spec"))...)
	return append(errs, validateOverrideLimits(p.OverrideSpec(), field.NewPath("spec"))...)
}

// validateOverrideLimits checks numbers and lengths. What overriders make of an object has a budget when they are applied.
func validateOverrideLimits(spec *policyv1alpha1.OverrideSpec, path *field.Path) field.ErrorList {
	errs := validateResourceSelectorSizes(spec.ResourceSelectors, path.Child("resourceSelectors"))
	errs = append(errs, forbidden(path.Child("targetCluster"), CheckAffinity(spec.TargetCluster))...)
	errs = append(errs, validateOverriderLimits(&spec.Overriders, path.Child("overriders"))...)
	for i := range spec.OverrideRules {
		rule, at := &spec.OverrideRules[i], path.Child("overrideRules").Index(i)
		errs = append(errs, forbidden(at.Child("targetCluster"), CheckAffinity(rule.TargetCluster))...)
		errs = append(errs, validateOverriderLimits(&rule.Overriders, at.Child("overriders"))...)
	}
	return errs
}

func validateOverriderLimits(o *policyv1alpha1.Overriders, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for _, list := range []struct {
		name string
		n    int
	}{
		{"plaintext", len(o.Plaintext)}, {"imageOverrider", len(o.ImageOverrider)}, {"commandOverrider", len(o.CommandOverrider)},
		{"argsOverrider", len(o.ArgsOverrider)}, {"labelsOverrider", len(o.LabelsOverrider)},
		{"annotationsOverrider", len(o.AnnotationsOverrider)}, {"fieldOverrider", len(o.FieldOverrider)},
	} {
		if list.n > MaxOverriders {
			return field.ErrorList{field.TooMany(path.Child(list.name), list.n, MaxOverriders)}
		}
	}
	tooLong := func(text string, at *field.Path) {
		if len(text) > MaxOverrideBytes {
			errs = append(errs, field.TooLong(at, "", MaxOverrideBytes))
		}
	}
	for i := range o.Plaintext {
		tooLong(o.Plaintext[i].Path, path.Child("plaintext").Index(i).Child("path"))
	}
	for i := range o.ImageOverrider {
		at := path.Child("imageOverrider").Index(i)
		tooLong(o.ImageOverrider[i].Value, at.Child("value"))
		if predicate := o.ImageOverrider[i].Predicate; predicate != nil {
			tooLong(predicate.Path, at.Child("predicate", "path"))
		}
	}
	for i := range o.FieldOverrider {
		f, at := &o.FieldOverrider[i], path.Child("fieldOverrider").Index(i)
		tooLong(f.FieldPath, at.Child("fieldPath"))
		if n := len(f.JSON) + len(f.YAML); n > MaxOverriders {
			errs = append(errs, field.TooMany(at, n, MaxOverriders))
		}
	}
	return errs
}

func validateOverrideSpec(p policyv1alpha1.OverridePolicyObject) field.ErrorList {
	spec, path := p.OverrideSpec(), field.NewPath("spec")
	errs := validateClusterAffinity(spec.TargetCluster, path.Child("targetCluster"))
	if spec.OverrideRules != nil {
		if spec.TargetCluster != nil {
			errs = append(errs, field.Invalid(path.Child("targetCluster"), *spec.TargetCluster, "overrideRules and targetCluster can't co-exist"))
		}
		if hasOverriders(&spec.Overriders) {
			errs = append(errs, field.Invalid(path.Child("overriders"), spec.Overriders, "overrideRules and overriders can't co-exist"))
		}
	}
	for i := range spec.OverrideRules {
		rule, at := &spec.OverrideRules[i], path.Child("overrideRules").Index(i)
		errs = append(errs, validateOverriders(&rule.Overriders, at.Child("overriders"))...)
		errs = append(errs, validateClusterAffinity(rule.TargetCluster, at.Child("targetCluster"))...)
	}
	if namespaced, ok := p.(*policyv1alpha1.OverridePolicy); ok {
		errs = append(errs, validateSelectorNamespaces(spec.ResourceSelectors, namespaced.Namespace, path.Child("resourceSelectors"))...)
	}
	return errs
}

// hasOverriders reports whether any list that existed beside the deprecated field
// is set; field overriders never did.
func hasOverriders(o *policyv1alpha1.Overriders) bool {
	return len(o.Plaintext)+len(o.ImageOverrider)+len(o.CommandOverrider)+len(o.ArgsOverrider)+len(o.LabelsOverrider)+len(o.AnnotationsOverrider) > 0
}

func validateOverriders(o *policyv1alpha1.Overriders, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for j, a := range o.AnnotationsOverrider {
		errs = append(errs, apivalidation.ValidateAnnotations(a.Value, path.Child("annotationsOverrider").Index(j).Child("value"))...)
	}
	for j, l := range o.LabelsOverrider {
		errs = append(errs, metav1validation.ValidateLabels(l.Value, path.Child("labelsOverrider").Index(j).Child("value"))...)
	}
	for j, image := range o.ImageOverrider {
		if image.Predicate != nil {
			errs = append(errs, validatePointer(image.Predicate.Path, path.Child("imageOverrider").Index(j).Child("predicate", "path"))...)
		}
	}
	for j := range o.FieldOverrider {
		errs = append(errs, validateFieldOverrider(&o.FieldOverrider[j], path.Child("fieldOverrider").Index(j))...)
	}
	return errs
}

func validateFieldOverrider(f *policyv1alpha1.FieldOverrider, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	switch {
	case len(f.JSON) > 0 && len(f.YAML) > 0:
		errs = append(errs, field.Invalid(path, *f, "FieldOverrider has both YAML and JSON set. Only one is allowed"))
	case len(f.JSON) == 0 && len(f.YAML) == 0:
		errs = append(errs, field.Required(path, "FieldOverrider must have either JSON or YAML set"))
	}
	errs = append(errs, validatePointer(f.FieldPath, path.Child("fieldPath"))...)
	for k, op := range f.JSON {
		errs = append(errs, validateOperation(op.SubPath, op.Operator, op.Value, path.Child("json").Index(k))...)
	}
	for k, op := range f.YAML {
		errs = append(errs, validateOperation(op.SubPath, op.Operator, op.Value, path.Child("yaml").Index(k))...)
	}
	return errs
}

func validateOperation(subPath string, operator policyv1alpha1.OverriderOperator, value apiextensionsv1.JSON, path *field.Path) field.ErrorList {
	errs := validatePointer(subPath, path.Child("subPath"))
	switch operator {
	case policyv1alpha1.OverriderOpAdd, policyv1alpha1.OverriderOpReplace:
		if len(value.Raw) == 0 {
			errs = append(errs, field.Invalid(path.Child("value"), value, "value is required for add or replace operation"))
		}
	case policyv1alpha1.OverriderOpRemove:
		if len(value.Raw) > 0 {
			errs = append(errs, field.Invalid(path.Child("value"), value, "value is not allowed for remove operation"))
		}
	}
	return errs
}

func validatePointer(pointer string, path *field.Path) field.ErrorList {
	if pointer == "" || strings.HasPrefix(pointer, "/") {
		return nil
	}
	return field.ErrorList{field.Invalid(path, pointer, `JSON pointer must be empty or start with a "/"`)}
}

package validation

import (
	"encoding/json"

	"k8s.io/apimachinery/pkg/util/validation/field"

	configv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/config/v1alpha1"
	workv1alpha2 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha2"
)

// ValidateDependenciesAnnotation checks the annotation of a binding that lists
// what its template refers to.
func ValidateDependenciesAnnotation(annotations map[string]string) field.ErrorList {
	text, ok := annotations[workv1alpha2.BindingDependenciesAnnotation]
	if !ok {
		return nil
	}
	var references []configv1alpha1.DependentObjectReference
	if err := json.Unmarshal([]byte(text), &references); err != nil {
		return field.ErrorList{field.Invalid(field.NewPath("metadata", "annotations", workv1alpha2.BindingDependenciesAnnotation), text,
			"annotation value must be a valid JSON")}
	}
	return nil
}

// ValidateComponents checks the names of the components of a template. It
// matters with the feature gate MultiplePodTemplatesScheduling.
func ValidateComponents(components []workv1alpha2.Component) field.ErrorList {
	var errs field.ErrorList
	seen := map[string]bool{}
	for i := range components {
		name, at := components[i].Name, field.NewPath("spec", "components").Index(i).Child("name")
		switch {
		case name == "":
			errs = append(errs, field.Invalid(at, name, "component names must be non-empty"))
		case seen[name]:
			errs = append(errs, field.Invalid(at, name, "component names must be unique"))
		}
		seen[name] = true
	}
	return errs
}

// ValidateResourceBinding checks a ResourceBinding. Components is the feature
// gate MultiplePodTemplatesScheduling.
func ValidateResourceBinding(b *workv1alpha2.ResourceBinding, components bool) field.ErrorList {
	errs := ValidateDependenciesAnnotation(b.Annotations)
	if components {
		errs = append(errs, ValidateComponents(b.Spec.Components)...)
	}
	return errs
}

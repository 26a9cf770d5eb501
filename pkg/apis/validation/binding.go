package validation

import (
	"encoding/json"
	"fmt"

	"k8s.io/apimachinery/pkg/util/validation/field"

	configv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/config/v1alpha1"
	workv1alpha2 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha2"
)

// ValidateDependenciesAnnotation checks the annotation of a binding that lists
// the objects its template refers to.
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

// ValidateComponents checks the names of the components of a template. It applies
// with the feature gate MultiplePodTemplatesScheduling.
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

// ValidateBindingResource refuses a reference of a ResourceBinding to an object
// of another namespace. A nil old is a creation. A stored reference may stay:
// controllers do not propagate it, and other updates of its binding must stay
// possible.
func ValidateBindingResource(namespace string, ref, old *workv1alpha2.ObjectReference) field.ErrorList {
	if ref.Namespace == "" || ref.Namespace == namespace {
		return nil
	}
	if old != nil && old.Namespace == ref.Namespace && old.APIVersion == ref.APIVersion && old.Kind == ref.Kind && old.Name == ref.Name {
		return nil
	}
	return field.ErrorList{field.Forbidden(field.NewPath("spec", "resource", "namespace"), fmt.Sprintf(
		"%q is not the namespace of the binding, %q; a ResourceBinding delivers objects of its own namespace only", ref.Namespace, namespace))}
}

// ValidateBindingID refuses another permanent id than the stored one: the Works
// of a binding are found by it. An empty old id is a binding without.
func ValidateBindingID(id, old string) field.ErrorList {
	if old == "" || id == old {
		return nil
	}
	return field.ErrorList{field.Forbidden(field.NewPath("metadata", "labels").Key(workv1alpha2.ResourceBindingPermanentIDLabel),
		"the permanent id of a binding cannot be changed or removed")}
}

// ValidateResourceBinding checks a ResourceBinding that is created. Components is the feature
// gate MultiplePodTemplatesScheduling.
func ValidateResourceBinding(b *workv1alpha2.ResourceBinding, components bool) field.ErrorList {
	errs := ValidateDependenciesAnnotation(b.Annotations)
	errs = append(errs, ValidateBindingResource(b.Namespace, &b.Spec.Resource, nil)...)
	if components {
		errs = append(errs, ValidateComponents(b.Spec.Components)...)
	}
	return errs
}

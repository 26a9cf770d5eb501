package validation

import (
	"fmt"
	"net/url"

	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	searchv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/search/v1alpha1"
)

const (
	// maxBackendAddresses is the number of addresses of a backend store.
	maxBackendAddresses = 64
	addressForms        = "must be a valid http or https URL with non-empty scheme and host"
)

// ValidateResourceRegistry checks a ResourceRegistry.
func ValidateResourceRegistry(r *searchv1alpha1.ResourceRegistry) field.ErrorList {
	errs := apivalidation.ValidateObjectMeta(&r.ObjectMeta, false, apivalidation.NameIsDNSSubdomain, field.NewPath("metadata"))
	path := field.NewPath("spec")
	target := path.Child("targetCluster")
	errs = append(errs, validateClusterAffinity(&r.Spec.TargetCluster, target)...)
	errs = append(errs, forbidden(target, CheckAffinity(&r.Spec.TargetCluster))...)
	errs = append(errs, validateCachedKinds(r.Spec.ResourceSelectors, path.Child("resourceSelectors"))...)
	if store := r.Spec.BackendStore; store != nil && store.OpenSearch != nil {
		errs = append(errs, validateAddresses(store.OpenSearch.Addresses, path.Child("backendStore", "openSearch", "addresses"))...)
	}
	return errs
}

// ValidateResourceRegistryUpdate checks a ResourceRegistry against the stored one that it replaces.
func ValidateResourceRegistryUpdate(updated, old *searchv1alpha1.ResourceRegistry) field.ErrorList {
	errs := apivalidation.ValidateObjectMetaUpdate(&updated.ObjectMeta, &old.ObjectMeta, field.NewPath("metadata"))
	return append(errs, ValidateResourceRegistry(updated)...)
}

func validateCachedKinds(selectors []searchv1alpha1.ResourceSelector, path *field.Path) field.ErrorList {
	if n := len(selectors); n > MaxResourceSelectors {
		return field.ErrorList{field.TooMany(path, n, MaxResourceSelectors)}
	}
	var errs field.ErrorList
	for i, s := range selectors {
		at := path.Index(i)
		if _, err := schema.ParseGroupVersion(s.APIVersion); err != nil {
			errs = append(errs, field.Invalid(at.Child("apiVersion"), s.APIVersion, err.Error()))
		}
		if s.Namespace != "" {
			errs = append(errs, invalidEach(at.Child("namespace"), s.Namespace, apivalidation.ValidateNamespaceName(s.Namespace, false))...)
		}
	}
	return errs
}

func validateAddresses(addresses []string, path *field.Path) field.ErrorList {
	if n := len(addresses); n > maxBackendAddresses {
		return field.ErrorList{field.TooMany(path, n, maxBackendAddresses)}
	}
	var errs field.ErrorList
	for i, address := range addresses {
		at := path.Index(i)
		u, err := url.Parse(address)
		switch {
		case err != nil, u.Host == "", u.Scheme != "http" && u.Scheme != "https":
			errs = append(errs, field.Invalid(at, address, addressForms))
		case u.User != nil:
			errs = append(errs, field.Forbidden(at, fmt.Sprintf("the address of %s has a user name or password, which everybody who reads the registry would see: put them into the Secret of secretRef", u.Host)))
		}
	}
	return errs
}

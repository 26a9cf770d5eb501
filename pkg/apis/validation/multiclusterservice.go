package validation

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/types"
	utilvalidation "k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	netutils "k8s.io/utils/net"

	networkingv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/networking/v1alpha1"
)

// ValidateMultiClusterService checks a new MultiClusterService.
func ValidateMultiClusterService(s *networkingv1alpha1.MultiClusterService) field.ErrorList {
	errs := apivalidation.ValidateObjectMeta(&s.ObjectMeta, true, apivalidation.NameIsDNS1035Label, field.NewPath("metadata"))
	if OwnService(types.NamespacedName{Namespace: s.Namespace, Name: s.Name}) {
		errs = append(errs, field.Forbidden(field.NewPath("metadata", "name"), "the Service default/kubernetes leads to the API server of its own cluster and is not propagated"))
	}
	return append(errs, validateExposure(&s.Spec, field.NewPath("spec"))...)
}

// ValidateMultiClusterServiceUpdate checks a changed MultiClusterService.
func ValidateMultiClusterServiceUpdate(s, old *networkingv1alpha1.MultiClusterService) field.ErrorList {
	errs := apivalidation.ValidateObjectMetaUpdate(&s.ObjectMeta, &old.ObjectMeta, field.NewPath("metadata"))
	if !slices.Equal(s.Spec.Types, old.Spec.Types) {
		errs = append(errs, field.Invalid(field.NewPath("spec", "types"), s.Spec.Types, "MultiClusterService types are immutable"))
	}
	errs = append(errs, validateExposure(&s.Spec, field.NewPath("spec"))...)
	return append(errs, validateBalancer(s.Status.LoadBalancer.Ingress, func(i corev1.LoadBalancerIngress) (string, string) { return i.IP, i.Hostname })...)
}

func validateExposure(spec *networkingv1alpha1.MultiClusterServiceSpec, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	names := map[string]bool{}
	for i, port := range spec.Ports {
		at := path.Child("ports").Index(i)
		if port.Name != "" {
			errs = append(errs, invalidEach(at.Child("name"), port.Name, utilvalidation.IsDNS1123Label(port.Name))...)
			if names[port.Name] {
				errs = append(errs, field.Duplicate(at.Child("name"), port.Name))
			}
			names[port.Name] = true
		}
		errs = append(errs, invalidEach(at.Child("port"), port.Port, utilvalidation.IsValidPortNum(int(port.Port)))...)
	}
	var types []networkingv1alpha1.ExposureType
	for i, t := range spec.Types {
		if t != networkingv1alpha1.ExposureTypeCrossCluster && t != networkingv1alpha1.ExposureTypeLoadBalancer {
			errs = append(errs, field.Invalid(path.Child("types").Index(i), t, "ExposureType Error"))
		}
		if !slices.Contains(types, t) {
			types = append(types, t)
		}
	}
	if len(types) > 1 {
		errs = append(errs, field.Invalid(path.Child("types"), spec.Types, "MultiClusterService types should not contain more than one type"))
	}
	// The contract defines the paths of the clusters.
	errs = append(errs, validateClusterSelectors(spec.ProviderClusters, path.Child("range", "providerClusters"))...)
	return append(errs, validateClusterSelectors(spec.ConsumerClusters, path.Child("range", "consumerClusters"))...)
}

func validateClusterSelectors(clusters []networkingv1alpha1.ClusterSelector, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i, c := range clusters {
		errs = append(errs, invalidClusterName(c.Name, path.Index(i))...)
	}
	return errs
}

// validateBalancer checks the addresses that a load balancer got.
func validateBalancer[T any](ingress []T, address func(T) (ip, hostname string)) field.ErrorList {
	var errs field.ErrorList
	for i := range ingress {
		at := field.NewPath("status", "loadBalancer", "ingress").Index(i)
		ip, hostname := address(ingress[i])
		if ip != "" && !isIP(ip) {
			errs = append(errs, field.Invalid(at.Child("ip"), ip, "must be a valid IP address"))
		}
		if hostname != "" {
			errs = append(errs, invalidEach(at.Child("hostname"), hostname, utilvalidation.IsDNS1123Subdomain(hostname))...)
			if isIP(hostname) {
				errs = append(errs, field.Invalid(at.Child("hostname"), hostname, "must be a DNS name, not an IP address"))
			}
		}
	}
	return errs
}

// isIP accepts leading zeros, as Kubernetes does in these fields.
func isIP(text string) bool { return netutils.ParseIPSloppy(text) != nil }

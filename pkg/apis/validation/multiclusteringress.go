package validation

import (
	"fmt"
	"strings"

	networkingv1 "k8s.io/api/networking/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	utilvalidation "k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	networkingv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/networking/v1alpha1"
)

// ValidateMultiClusterIngress checks a new MultiClusterIngress.
func ValidateMultiClusterIngress(i *networkingv1alpha1.MultiClusterIngress) field.ErrorList {
	errs := apivalidation.ValidateObjectMeta(&i.ObjectMeta, true, apivalidation.NameIsDNSSubdomain, field.NewPath("metadata"))
	return append(errs, validateIngressSpec(&i.Spec, field.NewPath("spec"))...)
}

// ValidateMultiClusterIngressUpdate checks a changed MultiClusterIngress.
func ValidateMultiClusterIngressUpdate(i, old *networkingv1alpha1.MultiClusterIngress) field.ErrorList {
	errs := apivalidation.ValidateObjectMetaUpdate(&i.ObjectMeta, &old.ObjectMeta, field.NewPath("metadata"))
	errs = append(errs, ValidateMultiClusterIngress(i)...)
	return append(errs, validateBalancer(i.Status.LoadBalancer.Ingress,
		func(i networkingv1.IngressLoadBalancerIngress) (string, string) { return i.IP, i.Hostname })...)
}

func validateIngressSpec(spec *networkingv1.IngressSpec, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if len(spec.Rules) == 0 && spec.DefaultBackend == nil {
		errs = append(errs, field.Invalid(path, spec.Rules, "either `defaultBackend` or `rules` must be specified"))
	}
	if spec.DefaultBackend != nil {
		errs = append(errs, validateBackend(spec.DefaultBackend, path.Child("defaultBackend"))...)
	}
	for i := range spec.Rules {
		errs = append(errs, validateIngressRule(&spec.Rules[i], path.Child("rules").Index(i))...)
	}
	for i, tls := range spec.TLS {
		at := path.Child("tls").Index(i)
		for j, host := range tls.Hosts {
			errs = append(errs, validateHost(host, at.Child("hosts").Index(j))...)
		}
		if tls.SecretName != "" {
			errs = append(errs, invalidEach(at.Child("secretName"), tls.SecretName, apivalidation.NameIsDNSSubdomain(tls.SecretName, false))...)
		}
	}
	if class := spec.IngressClassName; class != nil {
		errs = append(errs, invalidEach(path.Child("ingressClassName"), *class, apivalidation.NameIsDNSSubdomain(*class, false))...)
	}
	return errs
}

func validateHost(host string, path *field.Path) field.ErrorList {
	if strings.Contains(host, "*") {
		return invalidEach(path, host, utilvalidation.IsWildcardDNS1123Subdomain(host))
	}
	return invalidEach(path, host, utilvalidation.IsDNS1123Subdomain(host))
}

func validateIngressRule(rule *networkingv1.IngressRule, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if rule.Host != "" {
		if isIP(rule.Host) {
			errs = append(errs, field.Invalid(path.Child("host"), rule.Host, "must be a DNS name, not an IP address"))
		}
		errs = append(errs, validateHost(rule.Host, path.Child("host"))...)
	}
	if rule.HTTP == nil {
		return errs
	}
	paths := path.Child("http", "paths")
	if len(rule.HTTP.Paths) == 0 {
		errs = append(errs, field.Required(paths, ""))
	}
	for i := range rule.HTTP.Paths {
		errs = append(errs, validateIngressPath(&rule.HTTP.Paths[i], paths.Index(i))...)
	}
	return errs
}

func validateIngressPath(p *networkingv1.HTTPIngressPath, path *field.Path) field.ErrorList {
	if p.PathType == nil {
		return field.ErrorList{field.Required(path.Child("pathType"), "pathType must be specified")}
	}
	var errs field.ErrorList
	invalid := func(detail string) { errs = append(errs, field.Invalid(path.Child("path"), p.Path, detail)) }
	switch *p.PathType {
	case networkingv1.PathTypeExact, networkingv1.PathTypePrefix:
		if !strings.HasPrefix(p.Path, "/") {
			invalid("must be an absolute path")
		}
		for _, sequence := range []string{"//", "/./", "/../", "%2f", "%2F"} {
			if strings.Contains(p.Path, sequence) {
				invalid(fmt.Sprintf("must not contain '%s'", sequence))
			}
		}
		for _, suffix := range []string{"/..", "/."} {
			if strings.HasSuffix(p.Path, suffix) {
				invalid(fmt.Sprintf("cannot end with '%s'", suffix))
			}
		}
	case networkingv1.PathTypeImplementationSpecific:
		if p.Path != "" && !strings.HasPrefix(p.Path, "/") {
			invalid("must be an absolute path")
		}
	default:
		errs = append(errs, field.NotSupported(path.Child("pathType"), *p.PathType, []networkingv1.PathType{
			networkingv1.PathTypeExact, networkingv1.PathTypeImplementationSpecific, networkingv1.PathTypePrefix,
		}))
	}
	return append(errs, validateBackend(&p.Backend, path.Child("backend"))...)
}

func validateBackend(b *networkingv1.IngressBackend, path *field.Path) field.ErrorList {
	switch {
	case b.Resource != nil && b.Service != nil:
		return field.ErrorList{field.Invalid(path, "", "cannot set both resource and service backends")}
	case b.Resource != nil:
		var errs field.ErrorList
		at := path.Child("resource")
		if group := b.Resource.APIGroup; group != nil {
			errs = append(errs, invalidEach(at.Child("apiGroup"), *group, utilvalidation.IsDNS1123Subdomain(*group))...)
		}
		errs = append(errs, validateSegment(b.Resource.Kind, "", at.Child("kind"))...)
		return append(errs, validateSegment(b.Resource.Name, "", at.Child("name"))...)
	case b.Service != nil:
		return validateServiceBackend(b.Service, path)
	}
	return field.ErrorList{field.Invalid(path, "", "resource or service backend is required")}
}

func validateServiceBackend(s *networkingv1.IngressServiceBackend, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if s.Name == "" {
		errs = append(errs, field.Required(path.Child("service", "name"), ""))
	} else {
		errs = append(errs, invalidEach(path.Child("service", "name"), s.Name, apivalidation.NameIsDNS1035Label(s.Name, false))...)
	}
	port := path.Child("service", "port")
	switch {
	case s.Port.Name != "" && s.Port.Number != 0:
		errs = append(errs, field.Invalid(path, "", "cannot set both port name & port number"))
	case s.Port.Name != "":
		errs = append(errs, invalidEach(port.Child("name"), s.Port.Name, utilvalidation.IsValidPortName(s.Port.Name))...)
	case s.Port.Number != 0:
		errs = append(errs, invalidEach(port.Child("number"), s.Port.Number, utilvalidation.IsValidPortNum(int(s.Port.Number)))...)
	default:
		errs = append(errs, field.Required(path, "port name or number is required"))
	}
	return errs
}

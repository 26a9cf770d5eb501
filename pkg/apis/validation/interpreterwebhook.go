package validation

import (
	"fmt"
	"net/url"
	"slices"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	utilvalidation "k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	configv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/config/v1alpha1"
)

// contextVersion is the one version of the requests to webhooks.
const contextVersion = "v1alpha1"

// ValidateInterpreterWebhookConfiguration checks a
// ResourceInterpreterWebhookConfiguration.
func ValidateInterpreterWebhookConfiguration(c *configv1alpha1.ResourceInterpreterWebhookConfiguration) field.ErrorList {
	var errs field.ErrorList
	names := map[string]bool{}
	for i := range c.Webhooks {
		w, path := &c.Webhooks[i], field.NewPath("webhooks").Index(i)
		errs = append(errs, utilvalidation.IsFullyQualifiedDomainName(path.Child("name"), w.Name)...)
		if w.Name != "" && names[w.Name] {
			errs = append(errs, field.Duplicate(path.Child("name"), w.Name))
		}
		names[w.Name] = true
		for j := range w.Rules {
			errs = append(errs, validateInterpreterRule(&w.Rules[j], path.Child("rules").Index(j))...)
		}
		if s := w.TimeoutSeconds; s != nil && (*s < 1 || *s > 30) {
			errs = append(errs, field.Invalid(path.Child("timeoutSeconds"), *s, "the timeout value must be between 1 and 30 seconds"))
		}
		errs = append(errs, validateClientConfig(&w.ClientConfig, path.Child("clientConfig"))...)
		errs = append(errs, validateContextVersions(w.InterpreterContextVersions, path.Child("interpreterContextVersions"))...)
	}
	return errs
}

func interpreterOperations() []configv1alpha1.InterpreterOperation {
	return []configv1alpha1.InterpreterOperation{
		configv1alpha1.InterpreterOperationAll, configv1alpha1.InterpreterOperationAggregateStatus,
		configv1alpha1.InterpreterOperationInterpretComponent, configv1alpha1.InterpreterOperationInterpretDependency,
		configv1alpha1.InterpreterOperationInterpretHealth, configv1alpha1.InterpreterOperationInterpretReplica,
		configv1alpha1.InterpreterOperationInterpretStatus, configv1alpha1.InterpreterOperationRetain,
		configv1alpha1.InterpreterOperationReviseReplica,
	}
}

func validateInterpreterRule(rule *configv1alpha1.RuleWithOperations, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	operations := path.Child("operations")
	if len(rule.Operations) == 0 {
		errs = append(errs, field.Required(operations, ""))
	}
	if len(rule.Operations) > 1 && slices.Contains(rule.Operations, configv1alpha1.InterpreterOperationAll) {
		errs = append(errs, field.Invalid(operations, rule.Operations, "if '*' is present, must not specify other operations"))
	}
	for k, operation := range rule.Operations {
		if known := interpreterOperations(); !slices.Contains(known, operation) {
			errs = append(errs, field.NotSupported(operations.Index(k), operation, known))
		}
	}
	errs = append(errs, validateAlternatives(rule.APIGroups, "API groups", true, path.Child("apiGroups"))...)
	errs = append(errs, validateAlternatives(rule.APIVersions, "API versions", false, path.Child("apiVersions"))...)
	return append(errs, validateAlternatives(rule.Kinds, "kinds", false, path.Child("kinds"))...)
}

// validateAlternatives checks a list of names, or "*" alone.
func validateAlternatives(values []string, what string, emptyAllowed bool, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if len(values) == 0 {
		errs = append(errs, field.Required(path, ""))
	}
	if len(values) > 1 && slices.Contains(values, "*") {
		errs = append(errs, field.Invalid(path, values, "if '*' is present, must not specify other "+what))
	}
	for i, value := range values {
		if value == "" && !emptyAllowed {
			errs = append(errs, field.Required(path.Index(i), ""))
		}
	}
	return errs
}

func validateContextVersions(versions []string, path *field.Path) field.ErrorList {
	if len(versions) == 0 {
		return field.ErrorList{field.Required(path, "must specify one of "+contextVersion)}
	}
	var errs field.ErrorList
	seen := map[string]bool{}
	for k, version := range versions {
		if seen[version] {
			errs = append(errs, field.Invalid(path.Index(k), version, "duplicate version"))
			continue
		}
		seen[version] = true
		errs = append(errs, invalidEach(path.Index(k), version, utilvalidation.IsDNS1035Label(version))...)
	}
	if !seen[contextVersion] {
		errs = append(errs, field.Invalid(path, versions, "must include at least one of "+contextVersion))
	}
	return errs
}

func validateClientConfig(c *admissionregistrationv1.WebhookClientConfig, path *field.Path) field.ErrorList {
	switch {
	case (c.URL == nil) == (c.Service == nil):
		return field.ErrorList{field.Required(path, "exactly one of url or service is required")}
	case c.URL != nil:
		return validateWebhookURL(*c.URL, path.Child("url"))
	}
	return validateWebhookService(c.Service, path.Child("service"))
}

func validateWebhookURL(text string, path *field.Path) field.ErrorList {
	const form = "; desired format: https://host[/path]"
	u, err := url.Parse(text)
	if err != nil {
		return field.ErrorList{field.Required(path, "url must be a valid URL: "+err.Error()+form)}
	}
	var errs field.ErrorList
	if u.Scheme != "https" {
		errs = append(errs, field.Invalid(path, u.Scheme, "'https' is the only allowed URL scheme"+form))
	}
	if u.Host == "" {
		errs = append(errs, field.Invalid(path, u.Host, "host must be specified"+form))
	}
	if u.User != nil {
		errs = append(errs, field.Invalid(path, u.User.Username(), "user information is not permitted in the URL"))
	}
	if u.Fragment != "" {
		errs = append(errs, field.Invalid(path, u.Fragment, "fragments are not permitted in the URL"))
	}
	if u.RawQuery != "" {
		errs = append(errs, field.Invalid(path, u.RawQuery, "query parameters are not permitted in the URL"))
	}
	return errs
}

// validateWebhookService checks a service; no port means 443.
func validateWebhookService(s *admissionregistrationv1.ServiceReference, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if s.Name == "" {
		errs = append(errs, field.Required(path.Child("name"), ""))
	}
	if s.Namespace == "" {
		errs = append(errs, field.Required(path.Child("namespace"), ""))
	}
	if s.Port != nil {
		if problems := utilvalidation.IsValidPortNum(int(*s.Port)); len(problems) > 0 {
			errs = append(errs, field.Invalid(path.Child("port"), *s.Port, "port is not valid: "+strings.Join(problems, ", ")))
		}
	}
	if s.Path == nil || *s.Path == "" || *s.Path == "/" {
		return errs
	}
	return append(errs, validateServicePath(*s.Path, path.Child("path"))...)
}

func validateServicePath(text string, path *field.Path) field.ErrorList {
	if text == "//" {
		return field.ErrorList{field.Invalid(path, text, "segment[0] may not be empty")}
	}
	var errs field.ErrorList
	if !strings.HasPrefix(text, "/") {
		errs = append(errs, field.Invalid(path, text, "must start with a '/'"))
	}
	for i, segment := range strings.Split(strings.TrimSuffix(text[1:], "/"), "/") {
		if segment == "" {
			errs = append(errs, field.Invalid(path, text, fmt.Sprintf("segment[%d] may not be empty", i)))
			continue
		}
		for _, problem := range utilvalidation.IsDNS1123Subdomain(segment) {
			errs = append(errs, field.Invalid(path, text, fmt.Sprintf("segment[%d]: %s", i, problem)))
		}
	}
	return errs
}

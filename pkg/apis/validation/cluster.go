package validation

import (
	"fmt"
	"math"
	"net/url"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	utilvalidation "k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
	"github.com/karmada-toolkit/karmada/pkg/apis/names"
	policyv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/policy/v1alpha1"
)

// ClusterNameMaxLength is the longest name of a cluster: names are parts of
// labels and namespaces.
const ClusterNameMaxLength = 48

const urlForms = "desired format: hostname, hostname:port, IP or IP:port"

// ValidateClusterName returns the errors of the name of a cluster; none for a
// valid name.
func ValidateClusterName(name string) []string {
	if name == "" {
		return []string{"must be not empty"}
	}
	if len(name) > ClusterNameMaxLength {
		return []string{fmt.Sprintf("must be no more than %d characters", ClusterNameMaxLength)}
	}
	return utilvalidation.IsDNS1123Label(name)
}

// ValidateNewCluster checks a Cluster that is created, defaults applied. Stored
// ones may keep a name that is refused now.
func ValidateNewCluster(c *clusterv1alpha1.Cluster) field.ErrorList {
	errs := ValidateCluster(c)
	if why := names.SharesSecret(c.Name); why != "" {
		errs = append(errs, field.Invalid(field.NewPath("metadata", "name"), c.Name, why))
	}
	return errs
}

// ValidateCluster checks what holds for every Cluster, defaults applied.
func ValidateCluster(c *clusterv1alpha1.Cluster) field.ErrorList {
	errs := apivalidation.ValidateObjectMeta(&c.ObjectMeta, false,
		func(name string, _ bool) []string { return ValidateClusterName(name) }, field.NewPath("metadata"))
	return append(errs, ValidateClusterSpec(&c.Spec, field.NewPath("spec"))...)
}

// ValidateClusterUpdate checks a Cluster against the stored one that it
// replaces.
func ValidateClusterUpdate(updated, old *clusterv1alpha1.Cluster) field.ErrorList {
	errs := apivalidation.ValidateObjectMetaUpdate(&updated.ObjectMeta, &old.ObjectMeta, field.NewPath("metadata"))
	return append(errs, ValidateCluster(updated)...)
}

// ValidateClusterSpec checks the spec of a Cluster.
func ValidateClusterSpec(spec *clusterv1alpha1.ClusterSpec, path *field.Path) field.ErrorList {
	errs := validateSyncMode(spec.SyncMode, path.Child("syncMode"))
	if spec.APIEndpoint != "" {
		errs = append(errs, validateEndpoint(spec.APIEndpoint, path.Child("apiEndpoint"))...)
	}
	errs = append(errs, validateSecretRef(spec.SecretRef, path.Child("secretRef"))...)
	errs = append(errs, validateSecretRef(spec.ImpersonatorSecretRef, path.Child("impersonatorSecretRef"))...)
	if spec.ProxyURL != "" {
		errs = append(errs, validateProxyURL(spec.ProxyURL, path.Child("proxyURL"))...)
	}
	errs = append(errs, validateClusterLocation(spec, path)...)
	errs = append(errs, validateClusterTaints(spec.Taints, path.Child("taints"))...)
	return append(errs, validateResourceModels(spec.ResourceModels, path.Child("resourceModels"))...)
}

func validateSyncMode(mode clusterv1alpha1.ClusterSyncMode, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if mode == "" {
		errs = append(errs, field.Required(path, ""))
	}
	if mode != clusterv1alpha1.Push && mode != clusterv1alpha1.Pull {
		errs = append(errs, field.NotSupported(path, mode,
			[]clusterv1alpha1.ClusterSyncMode{clusterv1alpha1.Pull, clusterv1alpha1.Push}))
	}
	return errs
}

func validateEndpoint(endpoint string, path *field.Path) field.ErrorList {
	u, err := url.Parse(endpoint)
	if err != nil {
		return field.ErrorList{field.Invalid(path, endpoint, fmt.Sprintf("apiEndpoint must be a valid URL: %v; %s", err, urlForms))}
	}
	var errs field.ErrorList
	if u.Host == "" {
		errs = append(errs, field.Invalid(path, endpoint, "host must be provided; "+urlForms))
	}
	if u.User != nil {
		errs = append(errs, field.Invalid(path, u.Redacted(), "user information is not permitted in the URL"))
	}
	if u.Fragment != "" {
		errs = append(errs, field.Invalid(path, u.Fragment, "fragments are not permitted in the URL"))
	}
	if u.RawQuery != "" {
		errs = append(errs, field.Invalid(path, u.RawQuery, "query parameters are not permitted in the URL"))
	}
	return errs
}

func validateProxyURL(proxy string, path *field.Path) field.ErrorList {
	u, err := url.Parse(proxy)
	if err != nil {
		return field.ErrorList{field.Invalid(path, proxy, fmt.Sprintf("apiEndpoint must be a valid URL: %v; %s", err, urlForms))}
	}
	switch u.Scheme {
	case "http", "https", "socks5":
		return nil
	}
	return field.ErrorList{field.Invalid(path, u.Redacted(), fmt.Sprintf("unsupported scheme %q, must be http, https, or socks5", u.Scheme))}
}

func validateSecretRef(ref *clusterv1alpha1.LocalSecretReference, path *field.Path) field.ErrorList {
	if ref == nil {
		return nil
	}
	var errs field.ErrorList
	if ref.Namespace == "" {
		errs = append(errs, field.Required(path.Child("namespace"), ""))
	}
	if ref.Name == "" {
		errs = append(errs, field.Required(path.Child("name"), ""))
	}
	return errs
}

// validateClusterLocation checks provider, region and zones. The contract defines
// the paths of the zones.
func validateClusterLocation(spec *clusterv1alpha1.ClusterSpec, path *field.Path) field.ErrorList {
	errs := validateLabelValue(spec.Provider, path.Child("provider"))
	errs = append(errs, validateLabelValue(spec.Region, path.Child("region"))...)
	if spec.Zone != "" && len(spec.Zones) > 0 {
		errs = append(errs, field.TypeInvalid(path.Child("spec"), *spec, "Zone and Zones cannot co-exist"))
	}
	errs = append(errs, validateLabelValue(spec.Zone, path.Child("Zone"))...)
	for _, zone := range spec.Zones {
		errs = append(errs, validateLabelValue(zone, path.Child("Zones"))...)
	}
	return errs
}

func validateClusterTaints(taints []corev1.Taint, path *field.Path) field.ErrorList {
	type identity struct {
		key    string
		effect corev1.TaintEffect
	}
	var errs field.ErrorList
	seen := map[identity]bool{}
	for i, taint := range taints {
		at := path.Index(i)
		errs = append(errs, validateTaint(taint.Key, taint.Value, taint.Effect, at)...)
		id := identity{taint.Key, taint.Effect}
		if seen[id] {
			duplicate := field.Duplicate(at, taint)
			duplicate.Detail = "taints must be unique by key and effect pair"
			errs = append(errs, duplicate)
		}
		seen[id] = true
	}
	return errs
}

func validateTaint(key, value string, effect corev1.TaintEffect, path *field.Path) field.ErrorList {
	errs := metav1validation.ValidateLabelName(key, path.Child("key"))
	errs = append(errs, validateLabelValue(value, path.Child("value"))...)
	return append(errs, validateTaintEffect(effect, path.Child("effect"))...)
}

func validateTaintEffect(effect corev1.TaintEffect, path *field.Path) field.ErrorList {
	switch effect {
	case corev1.TaintEffectNoSchedule, corev1.TaintEffectNoExecute:
		return nil
	case "":
		return field.ErrorList{field.Required(path, "")}
	}
	return field.ErrorList{field.NotSupported(path, effect,
		[]corev1.TaintEffect{corev1.TaintEffectNoSchedule, corev1.TaintEffectNoExecute})}
}

// validateResourceModels reports the first problem only: later ones follow from
// it.
func validateResourceModels(models []clusterv1alpha1.ResourceModel, path *field.Path) field.ErrorList {
	for i := range models {
		var previous *clusterv1alpha1.ResourceModel
		if i > 0 {
			previous = &models[i-1]
		}
		if problem := resourceModelProblem(&models[i], previous, i == len(models)-1); problem != "" {
			return field.ErrorList{field.Invalid(path, models, problem)}
		}
	}
	return nil
}

func resourceModelProblem(model, previous *clusterv1alpha1.ResourceModel, last bool) string {
	if previous != nil {
		if model.Grade == previous.Grade {
			return "The grade of each models should not be the same"
		}
		if len(model.Ranges) != len(previous.Ranges) {
			return "The number of resource types should be the same"
		}
	}
	for i, r := range model.Ranges {
		switch {
		case r.Max.Cmp(r.Min) <= 0:
			return "The max value of each resource must be greater than the min value"
		case previous == nil && !r.Min.IsZero():
			return "The min value of each resource in the first model should be 0"
		case previous != nil && r.Name != previous.Ranges[i].Name:
			return "The resource types of each models should be the same"
		case previous != nil && r.Min.Cmp(previous.Ranges[i].Max) != 0:
			return "Model intervals for resources must be contiguous and non-overlapping"
		case last && r.Max.CmpInt64(math.MaxInt64) != 0:
			return "The max value of each resource in the last model should be MaxInt64"
		}
	}
	return ""
}

func validateLabelValue(value string, path *field.Path) field.ErrorList {
	if problems := utilvalidation.IsValidLabelValue(value); len(problems) > 0 {
		return field.ErrorList{field.Invalid(path, value, strings.Join(problems, ";"))}
	}
	return nil
}

// ValidateClusterTaintPolicy checks a ClusterTaintPolicy. AllowNoExecute admits
// taints that evict.
func ValidateClusterTaintPolicy(p *policyv1alpha1.ClusterTaintPolicy, allowNoExecute bool) field.ErrorList {
	type identity struct {
		key    string
		effect corev1.TaintEffect
	}
	var errs field.ErrorList
	seen := map[identity]bool{}
	for i, taint := range p.Spec.Taints {
		at, id := field.NewPath("spec", "taints").Index(i), identity{taint.Key, taint.Effect}
		if taint.Effect == corev1.TaintEffectNoExecute && !allowNoExecute {
			errs = append(errs, field.Forbidden(at, "Configuring taint with NoExecute effect is not allowed, "+
				"this capability must be explicitly enabled by administrators through command-line flags"))
		}
		if seen[id] {
			errs = append(errs, field.Duplicate(at, fmt.Sprintf("Duplicate taint with the same key(%s) and effect(%s) is not allowed", taint.Key, taint.Effect)))
		}
		seen[id] = true
	}
	return errs
}

// Applicable returns the taints of a ClusterTaintPolicy that a cluster can have, and warnings about the others.
func Applicable(taints []policyv1alpha1.Taint) (valid []policyv1alpha1.Taint, warnings []string) {
	for i, taint := range taints {
		errs := validateTaint(taint.Key, taint.Value, taint.Effect, field.NewPath("spec", "taints").Index(i))
		if len(errs) == 0 {
			valid = append(valid, taint)
			continue
		}
		warnings = append(warnings, fmt.Sprintf("%v; no cluster gets this taint", errs.ToAggregate()))
	}
	return valid, warnings
}

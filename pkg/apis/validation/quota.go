package validation

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	utilvalidation "k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	policyv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/policy/v1alpha1"
)

// ValidateFederatedResourceQuota checks a FederatedResourceQuota.
func ValidateFederatedResourceQuota(q *policyv1alpha1.FederatedResourceQuota) field.ErrorList {
	var errs field.ErrorList
	if len(q.Name) > utilvalidation.LabelValueMaxLength {
		errs = append(errs, field.Invalid(field.NewPath("metadata", "name"), q.Name,
			fmt.Sprintf("must be no more than %d characters", utilvalidation.LabelValueMaxLength)))
	}
	spec := field.NewPath("spec")
	errs = append(errs, ValidateQuotaList(q.Spec.Overall, spec.Child("overall"))...)
	errs = append(errs, validateAssignments(&q.Spec, spec)...)
	status := field.NewPath("status")
	errs = append(errs, ValidateQuotaList(q.Status.Overall, status.Child("overall"))...)
	errs = append(errs, ValidateQuotaList(q.Status.OverallUsed, status.Child("overallUsed"))...)
	for i := range q.Status.AggregatedStatus {
		item, at := &q.Status.AggregatedStatus[i], status.Child("aggregatedStatus").Index(i)
		errs = append(errs, invalidClusterName(item.ClusterName, at.Child("clusterName"))...)
		errs = append(errs, ValidateQuotaList(item.Hard, at.Child("hard"))...)
		errs = append(errs, ValidateQuotaList(item.Used, at.Child("used"))...)
	}
	return errs
}

func validateAssignments(spec *policyv1alpha1.FederatedResourceQuotaSpec, path *field.Path) field.ErrorList {
	var errs, unknown field.ErrorList
	sums := corev1.ResourceList{}
	for i := range spec.StaticAssignments {
		assignment, at := &spec.StaticAssignments[i], path.Child("staticAssignments").Index(i)
		errs = append(errs, invalidClusterName(assignment.ClusterName, at.Child("clusterName"))...)
		errs = append(errs, ValidateQuotaList(assignment.Hard, at.Child("hard"))...)
		for _, name := range sortedNames(assignment.Hard) {
			if _, ok := spec.Overall[name]; !ok {
				unknown = append(unknown, field.Invalid(at.Child("hard").Key(string(name)), string(name), "assignment resourceName is not exist in overall"))
				continue
			}
			sum := sums[name]
			sum.Add(assignment.Hard[name])
			sums[name] = sum
		}
	}
	for _, name := range sortedNames(sums) {
		overall, sum := spec.Overall[name], sums[name]
		if sum.Cmp(overall) > 0 {
			errs = append(errs, field.Invalid(path.Child("overall").Key(string(name)), overall.String(), "overall is less than assignments"))
		}
	}
	return append(errs, unknown...)
}

func invalidClusterName(name string, path *field.Path) field.ErrorList {
	if problems := ValidateClusterName(name); len(problems) > 0 {
		return field.ErrorList{field.Invalid(path, name, strings.Join(problems, ","))}
	}
	return nil
}

func sortedNames(list corev1.ResourceList) []corev1.ResourceName {
	return slices.Sorted(maps.Keys(list))
}

// ValidateQuotaList checks the names and quantities of a limit or usage.
func ValidateQuotaList(list corev1.ResourceList, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for _, name := range sortedNames(list) {
		at := path.Key(string(name))
		errs = append(errs, validateQuotaName(string(name), at)...)
		errs = append(errs, validateQuotaQuantity(string(name), list[name], at)...)
	}
	return errs
}

func validateQuotaName(name string, path *field.Path) field.ErrorList {
	errs := invalidEach(path, name, utilvalidation.IsQualifiedName(name))
	if strings.Contains(name, "/") {
		return errs
	}
	if len(errs) == 0 && !standardQuotaName(name) && name != string(corev1.ResourceStorage) {
		errs = append(errs, field.Invalid(path, name, "must be a standard resource type or fully qualified"))
	}
	if !standardQuotaName(name) {
		errs = append(errs, field.Invalid(path, name, "must be a standard resource for quota"))
	}
	return errs
}

func validateQuotaQuantity(name string, value resource.Quantity, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if value.Sign() < 0 {
		errs = append(errs, field.Invalid(path, value.String(), "must be greater than or equal to 0"))
	}
	if wholeNumber(name) && value.MilliValue()%1000 != 0 {
		errs = append(errs, field.Invalid(path, value.String(), "must be an integer"))
	}
	return errs
}

// standardQuotaName reports whether an unprefixed name is one that Kubernetes
// quotas support.
func standardQuotaName(name string) bool {
	switch corev1.ResourceName(name) {
	case corev1.ResourceCPU, corev1.ResourceMemory, corev1.ResourceEphemeralStorage,
		corev1.ResourceRequestsCPU, corev1.ResourceRequestsMemory, corev1.ResourceRequestsStorage, corev1.ResourceRequestsEphemeralStorage,
		corev1.ResourceLimitsCPU, corev1.ResourceLimitsMemory, corev1.ResourceLimitsEphemeralStorage:
		return true
	}
	return counted(name) || strings.HasPrefix(name, corev1.ResourceHugePagesPrefix) || strings.HasPrefix(name, corev1.ResourceRequestsHugePagesPrefix)
}

// counted reports whether a quota of the name counts objects.
func counted(name string) bool {
	switch corev1.ResourceName(name) {
	case corev1.ResourcePods, corev1.ResourceQuotas, corev1.ResourceServices, corev1.ResourceReplicationControllers, corev1.ResourceSecrets,
		corev1.ResourceConfigMaps, corev1.ResourcePersistentVolumeClaims, corev1.ResourceServicesNodePorts, corev1.ResourceServicesLoadBalancers:
		return true
	}
	return false
}

// wholeNumber reports whether amounts of the resource are whole: counts of objects,
// and extended resources such as vendor.example/gpu.
func wholeNumber(name string) bool {
	if counted(name) {
		return true
	}
	if !strings.Contains(name, "/") || strings.Contains(name, corev1.ResourceDefaultNamespacePrefix) ||
		strings.HasPrefix(name, corev1.DefaultResourceRequestsPrefix) {
		return false
	}
	return len(utilvalidation.IsQualifiedName(corev1.DefaultResourceRequestsPrefix+name)) == 0
}

// RequestedByContainers reports whether containers can request a resource, so that the usage of a workload can have it.
func RequestedByContainers(name corev1.ResourceName) bool {
	return len(validateContainerResourceName(string(name), nil)) == 0 && !strings.HasPrefix(string(name), corev1.DefaultResourceRequestsPrefix)
}

// validateContainerResourceName checks the name of a resource that containers
// use.
func validateContainerResourceName(name string, path *field.Path) field.ErrorList {
	errs := invalidEach(path, name, utilvalidation.IsQualifiedName(name))
	if !strings.Contains(name, "/") {
		if len(errs) == 0 && !standardQuotaName(name) && name != string(corev1.ResourceStorage) {
			errs = append(errs, field.Invalid(path, name, "must be a standard resource type or fully qualified"))
		}
		switch corev1.ResourceName(name) {
		case corev1.ResourceCPU, corev1.ResourceMemory, corev1.ResourceEphemeralStorage:
			return errs
		}
		if !strings.HasPrefix(name, corev1.ResourceHugePagesPrefix) {
			errs = append(errs, field.Invalid(path, name, "must be a standard resource for containers"))
		}
		return errs
	}
	if !strings.Contains(name, corev1.ResourceDefaultNamespacePrefix) && !wholeNumber(name) {
		errs = append(errs, field.Invalid(path, name, "doesn't follow extended resource name standard"))
	}
	return errs
}

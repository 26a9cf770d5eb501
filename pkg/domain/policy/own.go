package policy

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/karmada-toolkit/karmada/pkg/apis/names"
	"github.com/karmada-toolkit/karmada/pkg/apis/validation"
	workv1alpha2 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha2"
)

// Own reports whether an object makes the API server of the control plane what it is: Kubernetes, or an installation of the
// control plane, put it there. No policy propagates it, whatever it selects: in a member, the webhooks of the control plane
// would refuse what the member is asked for, and its roles would replace those of the member.
func Own(obj *unstructured.Unstructured) bool {
	gvk, name, labels := obj.GroupVersionKind(), obj.GetName(), obj.GetLabels()
	if labels[workv1alpha2.SystemLabel] == workv1alpha2.SystemLabelValue {
		return true
	}
	switch gvk.Group {
	case "":
		return ownCore(obj)
	case "discovery.k8s.io":
		return validation.OwnService(types.NamespacedName{Namespace: obj.GetNamespace(), Name: name})
	case "admissionregistration.k8s.io":
		return name == names.MutatingWebhooks || name == names.ValidatingWebhooks ||
			strings.HasPrefix(gvk.Kind, "ValidatingAdmissionPolicy") && strings.HasSuffix(name, ".karmada.io")
	case "apiregistration.k8s.io":
		return ownAPIService(obj)
	case "apiextensions.k8s.io":
		_, group, _ := strings.Cut(name, ".")
		return ownGroup(group)
	case "rbac.authorization.k8s.io":
		return ownRole(gvk.Kind, name, labels)
	case "flowcontrol.apiserver.k8s.io":
		return obj.GetAnnotations()["apf.kubernetes.io/autoupdate-spec"] != ""
	case "scheduling.k8s.io":
		return strings.HasPrefix(name, "system-")
	case "networking.k8s.io":
		return gvk.Kind == "IPAddress" || gvk.Kind == "ServiceCIDR"
	}
	return false
}

// ownGroup reports whether an API group is one of the control plane.
func ownGroup(group string) bool {
	first, found := strings.CutSuffix(group, ".karmada.io")
	return found && slices.Contains([]string{
		"apps", "autoscaling", "cluster", "config", "networking", "operator", "policy", "remedy", "search", "work",
	}, first)
}

// ownRole reports whether an object is a role, or the binding of one, that Kubernetes or the control plane makes for all
// namespaces.
func ownRole(kind, name string, labels map[string]string) bool {
	if kind == "Role" || kind == "RoleBinding" {
		return false
	}
	return labels["kubernetes.io/bootstrapping"] != "" || strings.HasPrefix(name, "system:") ||
		slices.Contains([]string{"karmada-edit", "karmada-view", names.InsightRole, "cluster-proxy-admin"}, name)
}

func ownCore(obj *unstructured.Unstructured) bool {
	switch name := obj.GetName(); obj.GetKind() {
	case "Namespace":
		return names.ReservedNamespace(name) || strings.HasPrefix(name, "kube-")
	case "ConfigMap":
		return name == "kube-root-ca.crt"
	case "Service", "Endpoints":
		return validation.OwnService(types.NamespacedName{Namespace: obj.GetNamespace(), Name: name})
	}
	return false
}

// ownAPIService reports whether an APIService is of the API server itself, of a CustomResourceDefinition, or of a part of the
// control plane. A template whose Service was taken out, so that it does not act, is none of them.
func ownAPIService(obj *unstructured.Unstructured) bool {
	spec, _ := obj.Object["spec"].(map[string]any)
	service, _ := spec["service"].(map[string]any)
	if service == nil {
		_, inert := obj.GetAnnotations()[workv1alpha2.InertAnnotation]
		return !inert
	}
	namespace, _ := service["namespace"].(string)
	_, group, _ := strings.Cut(obj.GetName(), ".")
	return names.ReservedNamespace(namespace) || ownGroup(group)
}

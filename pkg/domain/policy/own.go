package policy

import (
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/karmada-toolkit/karmada/pkg/apis/names"
	"github.com/karmada-toolkit/karmada/pkg/apis/validation"
	workv1alpha2 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha2"
)

// Own returns the rule by which an object makes the API server of the control plane what it is, "" if none holds: Kubernetes, or an
// installation of the control plane, put it there. No policy propagates it, whatever it selects: in a member, the webhooks of the
// control plane would refuse what the member is asked for, and its roles would replace those of the member. Users may give their
// objects any other name, also one with a prefix such as "system:".
func Own(obj *unstructured.Unstructured) (rule string) {
	labels := obj.GetLabels()
	switch group := obj.GroupVersionKind().Group; {
	case labels[workv1alpha2.SystemLabel] == workv1alpha2.SystemLabelValue:
		return "it has the label " + workv1alpha2.SystemLabel
	case group == "rbac.authorization.k8s.io" && obj.GetNamespace() == "" && labels[bootstrapping] != "":
		return "it has the label " + bootstrapping
	case group == "flowcontrol.apiserver.k8s.io" && obj.GetAnnotations()[autoupdate] != "":
		return "it has the annotation " + autoupdate
	case ownName(obj):
		return "Kubernetes or the control plane creates an object of this kind and name"
	}
	return ""
}

// What an API server sets on the roles and on the flow schemas that it creates when it starts.
const (
	bootstrapping = "kubernetes.io/bootstrapping"
	autoupdate    = "apf.kubernetes.io/autoupdate-spec"
)

// ownName reports whether an object has the name of one that Kubernetes or an installation creates, or is of a kind that only
// they create. A test compares the names with an empty API server and with the objects of an installation.
func ownName(obj *unstructured.Unstructured) bool {
	gvk, name := obj.GroupVersionKind(), obj.GetName()
	switch gvk.Group {
	case "":
		return ownCore(obj)
	case "discovery.k8s.io":
		return validation.OwnService(types.NamespacedName{Namespace: obj.GetNamespace(), Name: name})
	case "admissionregistration.k8s.io":
		return name == names.MutatingWebhooks || name == names.ValidatingWebhooks
	case "apiregistration.k8s.io":
		return ownAPIService(obj)
	case "apiextensions.k8s.io":
		_, group, _ := strings.Cut(name, ".")
		return ownGroup(group)
	case "rbac.authorization.k8s.io":
		return obj.GetNamespace() == "" && slices.Contains([]string{"karmada-edit", "karmada-view", names.InsightRole, "cluster-proxy-admin"}, name)
	case "scheduling.k8s.io":
		return gvk.Kind == "PriorityClass" && (name == "system-cluster-critical" || name == "system-node-critical")
	case "networking.k8s.io":
		return gvk.Kind == "IPAddress" || gvk.Kind == "ServiceCIDR" && name == "kubernetes"
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

func ownCore(obj *unstructured.Unstructured) bool {
	switch name := obj.GetName(); obj.GetKind() {
	case "Namespace":
		return names.ReservedNamespace(name) || slices.Contains([]string{metav1.NamespaceSystem, metav1.NamespacePublic, "kube-node-lease"}, name)
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

package validation

import (
	"fmt"
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	configv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/config/v1alpha1"
)

// SetsRights reports whether objects of a kind grant rights, set limits, direct traffic
// or extend the API server: those that the default role "edit" may not write in members,
// or that only controllers write.
func SetsRights(kind schema.GroupKind) bool {
	switch kind.Group {
	case rbacv1.GroupName, "admissionregistration.k8s.io", "apiregistration.k8s.io", "apiextensions.k8s.io", "certificates.k8s.io":
		return true
	case "":
		return kind.Kind == "ResourceQuota" || kind.Kind == "LimitRange" || kind.Kind == "Endpoints"
	case "discovery.k8s.io":
		return kind.Kind == "EndpointSlice"
	case "networking.k8s.io":
		return kind.Kind == "NetworkPolicy"
	}
	return false
}

// CheckCustomizable returns why no customization or webhook interprets objects of a kind for an operation, or nil. What
// sets rights is delivered as its template is, and nothing of a Secret gets into bindings, which more users may read.
func CheckCustomizable(kind schema.GroupKind, operation configv1alpha1.InterpreterOperation) error {
	if SetsRights(kind) && slices.Contains([]configv1alpha1.InterpreterOperation{
		configv1alpha1.InterpreterOperationReviseReplica, configv1alpha1.InterpreterOperationRetain,
	}, operation) {
		return fmt.Errorf("%s is not available for %s, which grants rights, sets limits or directs traffic in clusters", operation, kind)
	}
	if kind == (schema.GroupKind{Kind: "Secret"}) && !slices.Contains([]configv1alpha1.InterpreterOperation{
		configv1alpha1.InterpreterOperationRetain, configv1alpha1.InterpreterOperationInterpretHealth,
	}, operation) {
		return fmt.Errorf("%s is not available for %s: its result is stored where more users may read it", operation, kind)
	}
	return nil
}

// OwnService reports whether a Service is the one that every cluster makes for its own API server. Nothing of it is
// propagated, exported or dispatched: it would lead the clients of one API server to another.
func OwnService(service types.NamespacedName) bool {
	return service == types.NamespacedName{Namespace: "default", Name: "kubernetes"}
}

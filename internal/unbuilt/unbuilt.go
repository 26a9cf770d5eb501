// Package unbuilt lists what this version accepts and does not act on yet: kinds
// whose controllers do not exist, names of controllers, feature gates. What is built
// is removed here, and with it every warning about it.
package unbuilt

import (
	"fmt"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Kind is a kind that is stored and has no effect, or none by default.
type Kind struct {
	schema.GroupResource
	// Kind is its name for users.
	Kind string
	// Webhook reports whether the webhook server checks the kind and warns. Others are
	// warned of by an admission policy.
	Webhook bool
}

// The kinds that are stored and have no effect, by the name for users.
const (
	MultiClusterService = "MultiClusterService"
	ClusterTaintPolicy  = "ClusterTaintPolicy"
)

// Kinds returns the kinds that are stored and have no effect.
func Kinds() []Kind {
	return []Kind{
		{schema.GroupResource{Group: "networking.karmada.io", Resource: "multiclusterservices"}, MultiClusterService, true},
		{schema.GroupResource{Group: "policy.karmada.io", Resource: "clustertaintpolicies"}, ClusterTaintPolicy, false},
	}
}

// Warnings returns the warning about objects of a kind, if the kind has no effect.
func Warnings(kind string) []string {
	switch kind {
	case ClusterTaintPolicy:
		return []string{kind + " has no effect unless karmada-controller-manager runs with --feature-gates=Failover=true"}
	case MultiClusterService:
		return []string{kind + " has no effect unless karmada-controller-manager, and the agents of clusters in Pull mode, run with --feature-gates=MultiClusterService=true"}
	}
	for _, k := range Kinds() {
		if k.Kind == kind {
			return []string{fmt.Sprintf("%s has no effect: this version has no controller for it yet", kind)}
		}
	}
	return nil
}

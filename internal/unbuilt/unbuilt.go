// Package unbuilt lists the kinds that this version stores and does not act on by
// default, with the warnings about them.
package unbuilt

import "k8s.io/apimachinery/pkg/runtime/schema"

// Kind is a kind that is stored and has no effect by default.
type Kind struct {
	schema.GroupResource
	// Kind is its name for users.
	Kind string
	// Webhook reports whether the webhook server checks the kind and warns. Others are
	// warned of by an admission policy.
	Webhook bool
}

// The kinds that are stored and have no effect by default, by the name for users.
const (
	MultiClusterService = "MultiClusterService"
	ClusterTaintPolicy  = "ClusterTaintPolicy"
)

// Kinds returns the kinds that are stored and have no effect by default.
func Kinds() []Kind {
	return []Kind{
		{schema.GroupResource{Group: "networking.karmada.io", Resource: "multiclusterservices"}, MultiClusterService, true},
		{schema.GroupResource{Group: "policy.karmada.io", Resource: "clustertaintpolicies"}, ClusterTaintPolicy, false},
	}
}

// Warnings returns the warning about objects of a kind, none for other kinds.
func Warnings(kind string) []string {
	switch kind {
	case ClusterTaintPolicy:
		return []string{kind + " has no effect unless karmada-controller-manager runs with --feature-gates=Failover=true"}
	case MultiClusterService:
		return []string{kind + " has no effect unless karmada-controller-manager, and the agents of clusters in Pull mode, run with --feature-gates=MultiClusterService=true"}
	}
	return nil
}

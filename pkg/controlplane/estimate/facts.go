package estimate

import (
	"context"
	"fmt"

	workv1alpha2 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha2"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/replicas"
)

// Facts are what estimates about one cluster are made from.
type Facts struct {
	Nodes *Snapshot
	// Quotas returns the quotas of a namespace, or those of all namespaces for an empty name. Nil means that quotas do
	// not count.
	Quotas func(namespace string) []Quota
}

// Replicas returns how many replicas fit, at most Unlimited; below 0 means that a quota is exceeded. nil requirements
// need a pod and nothing else. It returns an error only when ctx ends.
func (f *Facts) Replicas(ctx context.Context, r *workv1alpha2.ReplicaRequirements, assumed []replicas.Workload) (int32, error) {
	n, err := f.Nodes.Replicas(ctx, r, assumed)
	if err != nil || f.Nodes.Nodes() == 0 || r == nil || f.Quotas == nil {
		return n, err
	}
	return min(n, QuotaReplicas(f.Quotas(r.Namespace), r, assumed)), nil
}

// Sets returns how many sets of the components of a workload fit, at most Unlimited; below 0 means that a quota is
// exceeded. It returns an error only when ctx ends.
func (f *Facts) Sets(ctx context.Context, namespace string, components []workv1alpha2.Component, assumed []replicas.Workload) (int32, error) {
	n, err := f.Nodes.Sets(ctx, components, assumed)
	if err != nil || f.Nodes.Nodes() == 0 || namespace == "" || f.Quotas == nil {
		return n, err
	}
	return min(n, QuotaSets(f.Quotas(namespace), namespace, components, assumed)), nil
}

// SupportsUnschedulable returns an error if the pods of a workload that no node accepts cannot be counted.
func SupportsUnschedulable(kind, namespace, name string) error {
	if kind != "Deployment" {
		return fmt.Errorf("kind(%s) of workload(%s/%s) is not supported", kind, namespace, name)
	}
	return nil
}

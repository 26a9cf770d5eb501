// Package estimate computes how many replicas of a workload, or sets of its components, fit on the nodes of one
// cluster and into its resource quotas, and how many replicas no node accepts.
//
// A Model keeps the free resources of every node and is updated by the changes of nodes and pods. A Snapshot of it
// is immutable; every estimate is a function of a Snapshot, of quotas and of requirements.
package estimate

import (
	"context"
	"fmt"

	workv1alpha2 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha2"
	"github.com/karmada-toolkit/karmada/pkg/domain/replicas"
)

// Facts are what estimates about one cluster are made from.
type Facts struct {
	Nodes *Snapshot
	// Quotas returns the quotas of a namespace, or those of all namespaces for an empty name. Nil means that quotas do
	// not count.
	Quotas func(namespace string) []Quota
	// Around is called for each plugin with the function that runs it. Optional.
	Around func(plugin string, run func())
}

// The plugins, by the names of the contract.
const (
	PluginNodes  = "NodeResourceEstimator"
	PluginQuotas = "ResourceQuotaEstimator"
)

func (f *Facts) run(plugin string, run func()) {
	if f.Around == nil {
		run()
		return
	}
	f.Around(plugin, run)
}

// both returns the smaller of what the nodes and the quotas leave room for. A cluster without nodes has room for
// nothing.
func (f *Facts) both(nodes func() (int32, error), quotas func() int32) (n int32, err error) {
	f.run(PluginNodes, func() { n, err = nodes() })
	if err == nil && f.Quotas != nil && f.Nodes.Nodes() > 0 {
		f.run(PluginQuotas, func() { n = min(n, quotas()) })
	}
	return n, err
}

// Replicas returns how many replicas fit, at most Unlimited; below 0 means that a quota is exceeded. nil requirements
// need a pod and nothing else. It returns an error only when ctx ends.
func (f *Facts) Replicas(ctx context.Context, r *workv1alpha2.ReplicaRequirements, assumed []replicas.Workload) (int32, error) {
	return f.both(func() (int32, error) { return f.Nodes.Replicas(ctx, r, assumed) }, func() int32 {
		if r == nil {
			return Unlimited
		}
		return QuotaReplicas(f.Quotas(r.Namespace), r, assumed)
	})
}

// Sets returns how many sets of the components of a workload fit, at most Unlimited; below 0 means that a quota is
// exceeded, and is not returned if the nodes have no room. It returns an error only when ctx ends.
func (f *Facts) Sets(ctx context.Context, namespace string, components []workv1alpha2.Component, assumed []replicas.Workload) (int32, error) {
	full := false
	n, err := f.both(func() (int32, error) {
		n, err := f.Nodes.Sets(ctx, components, assumed)
		full = n == 0
		return n, err
	}, func() int32 {
		if namespace == "" {
			return Unlimited
		}
		return QuotaSets(f.Quotas(namespace), namespace, components, assumed)
	})
	if full && err == nil {
		return 0, nil
	}
	return n, err
}

// SupportsUnschedulable returns an error if the pods of a workload that no node accepts cannot be counted.
func SupportsUnschedulable(kind, namespace, name string) error {
	if kind != "Deployment" {
		return fmt.Errorf("kind(%s) of workload(%s/%s) is not supported", kind, namespace, name)
	}
	return nil
}

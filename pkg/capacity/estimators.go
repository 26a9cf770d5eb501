package capacity

import (
	"context"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"

	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
	policyv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/policy/v1alpha1"
	workv1alpha2 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha2"
	estimator "github.com/karmada-toolkit/karmada/pkg/controlplane/estimator/client"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/scheduler/core"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/scheduler/framework"
)

// EstimatorOptions configure the connections to estimators.
type EstimatorOptions = estimator.Options

// NewEstimatorOptions returns the defaults.
func NewEstimatorOptions() EstimatorOptions { return estimator.NewOptions() }

// Estimates are the answers of estimators by cluster.
type Estimates map[string]core.Estimate

// Failures returns a line for each estimator that did not answer, sorted.
func (e Estimates) Failures() []string {
	var out []string
	for _, cluster := range slices.Sorted(maps.Keys(e)) {
		if err := e[cluster].Err; err != "" {
			out = append(out, fmt.Sprintf("the estimator of cluster %q does not answer, its status counts: %s", cluster, err))
		}
	}
	return out
}

// CallEstimators calls the estimators of clusters, which the Services of the control plane name, and returns their answers.
func CallEstimators(ctx context.Context, o EstimatorOptions, w *Workload, clusters []clusterv1alpha1.Cluster, services func(ctx context.Context, namespace, name string) (*corev1.Service, error)) (Estimates, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	o.Services = services
	pool, err := estimator.NewPool(o)
	if err != nil {
		return nil, err
	}
	defer pool.Close()
	// Sets are counted for workloads that are to be in one cluster.
	one := policyv1alpha1.SpreadConstraint{SpreadByField: policyv1alpha1.SpreadByFieldCluster, MinGroups: 1, MaxGroups: 1}
	request := &core.Request{MultiplePodTemplates: len(w.Components) > 0, Binding: framework.Binding{
		Namespace: w.Namespace, Name: w.Name, Spec: &workv1alpha2.ResourceBindingSpec{
			Resource: workv1alpha2.ObjectReference{Kind: w.Kind, Namespace: w.Namespace, Name: w.Name},
			Replicas: max(w.Replicas, 1), ReplicaRequirements: w.Requirements, Components: w.Components,
			Placement: &policyv1alpha1.Placement{SpreadConstraints: []policyv1alpha1.SpreadConstraint{one}},
		},
	}}
	targets := make([]*framework.Cluster, len(clusters))
	for i := range clusters {
		targets[i] = &framework.Cluster{Object: &clusters[i]}
	}
	return pool.Estimates(ctx, request, targets, false), nil
}

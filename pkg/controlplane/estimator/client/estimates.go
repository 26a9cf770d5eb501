package client

import (
	"context"
	"fmt"
	"sync"

	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/estimator/pb"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/replicas"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/scheduler/core"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/scheduler/framework"
)

// Estimates returns the estimates of clusters: how many replicas of a binding, or
// sets of its components, fit. An estimator that fails, or does not answer in
// time, is in the answer with its error. skipPull leaves clusters in Pull mode
// out, whose estimators may not be reachable.
func (p *Pool) Estimates(ctx context.Context, request *core.Request, clusters []*framework.Cluster, skipPull bool) map[string]core.Estimate {
	exists := make(map[string]bool, len(clusters))
	for _, c := range clusters {
		exists[c.Object.Name] = true
	}
	p.retain(exists)

	ref := &request.Spec.Resource
	ctx, cancel := context.WithTimeout(about(ctx, ref.Kind, ref.Namespace, ref.Name), p.options.Timeout)
	defer cancel()
	answers := make([]core.Estimate, len(clusters))
	called := make([]bool, len(clusters))
	var all sync.WaitGroup
	for i, c := range clusters {
		if skipPull && c.Object.Spec.SyncMode == clusterv1alpha1.Pull {
			continue
		}
		called[i] = true
		all.Go(func() { answers[i] = p.estimate(ctx, request, c.Object.Name) })
	}
	all.Wait()
	out := make(map[string]core.Estimate, len(clusters))
	for i, c := range clusters {
		if called[i] {
			out[c.Object.Name] = answers[i]
		}
	}
	return out
}

func (p *Pool) estimate(ctx context.Context, request *core.Request, cluster string) core.Estimate {
	n, err := p.maxReplicas(ctx, request, cluster)
	if err != nil {
		return core.Estimate{Replicas: core.Unauthentic, Err: err.Error()}
	}
	return core.Estimate{Replicas: n}
}

func (p *Pool) maxReplicas(ctx context.Context, request *core.Request, cluster string) (int32, error) {
	estimator, err := p.estimator(cluster)
	if err != nil {
		return 0, err
	}
	assumed, err := workloads(request.Assumed[cluster])
	if err != nil {
		return 0, err
	}
	if request.MultiplePodTemplates && core.CountsSets(request.Spec) {
		components, err := pb.FromComponents(request.Spec.Components)
		if err != nil {
			return 0, err
		}
		answer, err := estimator.MaxAvailableComponentSets(ctx, &pb.MaxAvailableComponentSetsRequest{
			Cluster: cluster, Components: components, Namespace: request.Namespace, AssumedWorkloads: assumed,
		})
		return answer.GetMaxSets(), err
	}
	requirements, err := pb.FromReplicaRequirements(request.Spec.ReplicaRequirements)
	if err != nil {
		return 0, err
	}
	answer, err := estimator.MaxAvailableReplicas(ctx, &pb.MaxAvailableReplicasRequest{
		Cluster: cluster, ReplicaRequirements: requirements, AssumedWorkloads: assumed,
	})
	return answer.GetMaxReplicas(), err
}

func workloads(assumed []replicas.Workload) ([]*pb.AssumedWorkload, error) {
	out := make([]*pb.AssumedWorkload, len(assumed))
	for i := range assumed {
		components, err := pb.FromComponents(assumed[i].Components)
		if err != nil {
			return nil, fmt.Errorf("assumed workload in namespace %q: %w", assumed[i].Namespace, err)
		}
		out[i] = &pb.AssumedWorkload{Namespace: assumed[i].Namespace, Components: components}
	}
	return out, nil
}

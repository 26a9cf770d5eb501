package client

import (
	"context"
	"fmt"
	"sync"
	"time"

	workv1alpha2 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha2"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/estimator/pb"
)

// Unschedulable is the answer of one estimator.
type Unschedulable struct {
	Cluster string
	// Replicas is negative if the estimator does not know.
	Replicas int32
	Err      error
}

// Unschedulable returns how many replicas of a workload are unschedulable in each cluster for longer than a threshold,
// in the order of the clusters.
func (p *Pool) Unschedulable(ctx context.Context, ref *workv1alpha2.ObjectReference, clusters []string, threshold time.Duration) []Unschedulable {
	ctx, cancel := context.WithTimeout(about(ctx, ref.Kind, ref.Namespace, ref.Name), p.options.Timeout)
	defer cancel()
	out := make([]Unschedulable, len(clusters))
	var all sync.WaitGroup
	for i, cluster := range clusters {
		all.Go(func() {
			out[i].Cluster = cluster
			out[i].Replicas, out[i].Err = p.unschedulable(ctx, ref, cluster, threshold)
		})
	}
	all.Wait()
	return out
}

func (p *Pool) unschedulable(ctx context.Context, ref *workv1alpha2.ObjectReference, cluster string, threshold time.Duration) (int32, error) {
	l, err := p.link(cluster)
	if err != nil {
		return 0, err
	}
	n, err := l.call(ctx, func(ctx context.Context, e pb.EstimatorClient) (int32, error) {
		answer, err := e.GetUnschedulableReplicas(ctx, &pb.UnschedulableReplicasRequest{
			Cluster: cluster, UnschedulableThreshold: int64(threshold),
			Resource: &pb.ObjectReference{ApiVersion: ref.APIVersion, Kind: ref.Kind, Namespace: ref.Namespace, Name: ref.Name},
		})
		return answer.GetUnschedulableReplicas(), err
	})
	if err != nil {
		return 0, fmt.Errorf("calling the estimator: %w", err)
	}
	return n, nil
}

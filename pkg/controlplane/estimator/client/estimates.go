package client

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
	workv1alpha2 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha2"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/estimator/pb"
	"github.com/karmada-toolkit/karmada/pkg/domain/replicas"
	"github.com/karmada-toolkit/karmada/pkg/domain/schedule/core"
	"github.com/karmada-toolkit/karmada/pkg/domain/schedule/framework"
)

// Estimates returns the estimates of clusters: how many replicas of a binding, or
// sets of its components, fit. An estimator that fails, or does not answer in
// time, is in the answer with its error; a cluster without estimator is not. skipPull leaves clusters in Pull mode
// out, whose estimators may not be reachable.
func (p *Pool) Estimates(ctx context.Context, request *core.Request, clusters []*framework.Cluster, skipPull bool) map[string]core.Estimate {
	ref := &request.Spec.Resource
	ctx, cancel := context.WithTimeout(about(ctx, ref.Kind, ref.Namespace, ref.Name), p.options.Timeout)
	defer cancel()
	answers := make([]core.Estimate, len(clusters))
	known := make([]bool, len(clusters))
	var all sync.WaitGroup
	for i, c := range clusters {
		if skipPull && c.Object.Spec.SyncMode == clusterv1alpha1.Pull {
			continue
		}
		all.Go(func() { answers[i], known[i] = p.estimate(ctx, request, c.Object.Name) })
	}
	all.Wait()
	out := make(map[string]core.Estimate, len(clusters))
	for i, c := range clusters {
		if known[i] {
			out[c.Object.Name] = answers[i]
		}
	}
	return out
}

// estimate returns the answer of the estimator of a cluster. It reports false if the cluster has none.
func (p *Pool) estimate(ctx context.Context, request *core.Request, cluster string) (core.Estimate, bool) {
	l, err := p.link(cluster)
	if err != nil {
		return core.Estimate{Replicas: core.Unauthentic, Err: problem(err)}, true
	}
	n, err := maxReplicas(ctx, l, request, cluster)
	switch {
	case err != nil:
		return core.Estimate{Replicas: core.Unauthentic, Err: problem(err)}, !l.absent.Load()
	case n < 0:
		return core.Estimate{Replicas: core.Unauthentic, Err: fmt.Sprintf("it answered %d", n)}, true
	}
	return core.Estimate{Replicas: n}, true
}

// problem returns the text of an error without the words of gRPC.
func problem(err error) string {
	s, ok := status.FromError(err)
	switch {
	case !ok:
		return err.Error()
	case s.Code() == codes.Unknown:
		return s.Message()
	}
	message := s.Message()
	if dial, ok := strings.CutPrefix(message, dialPrefix); ok {
		message = strings.TrimSuffix(dial, `"`)
	}
	return s.Code().String() + ": " + message
}

// dialPrefix begins the message of gRPC about a connection that cannot be made.
const dialPrefix = `connection error: desc = "transport: Error while dialing: `

func maxReplicas(ctx context.Context, l *link, request *core.Request, cluster string) (int32, error) {
	assumed, err := workloads(request.Assumed[cluster])
	if err != nil {
		return 0, err
	}
	if request.MultiplePodTemplates && core.CountsSets(request.Spec) {
		components, err := pb.FromComponents(request.Spec.Components)
		if err != nil {
			return 0, err
		}
		return l.call(ctx, func(ctx context.Context, e pb.EstimatorClient) (int32, error) {
			answer, err := e.MaxAvailableComponentSets(ctx, &pb.MaxAvailableComponentSetsRequest{
				Cluster: cluster, Components: components, Namespace: request.Namespace, AssumedWorkloads: assumed,
			})
			return answer.GetMaxSets(), err
		})
	}
	requirements, err := pb.FromReplicaRequirements(request.Spec.ReplicaRequirements)
	if err != nil {
		return 0, err
	}
	return l.call(ctx, func(ctx context.Context, e pb.EstimatorClient) (int32, error) {
		answer, err := e.MaxAvailableReplicas(ctx, &pb.MaxAvailableReplicasRequest{
			Cluster: cluster, ReplicaRequirements: requirements, AssumedWorkloads: assumed,
		})
		return answer.GetMaxReplicas(), err
	})
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

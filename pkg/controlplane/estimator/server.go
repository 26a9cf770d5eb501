package estimator

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/go-logr/logr"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"github.com/karmada-toolkit/karmada/pkg/controlplane/estimator/pb"
	"github.com/karmada-toolkit/karmada/pkg/domain/estimate"
	"github.com/karmada-toolkit/karmada/pkg/domain/replicas"
)

// The methods, as metrics name them.
const (
	methodReplicas      = "MaxAvailableReplicas"
	methodSets          = "MaxAvailableComponentSets"
	methodUnschedulable = "GetUnschedulableReplicas"
)

// server answers requests about one cluster.
type server struct {
	pb.UnimplementedEstimatorServer
	clusterName string
	cluster     *cluster
	// overcommit is set if assumed workloads count.
	overcommit bool
	// slots limits the estimates that are computed at the same time.
	slots   chan struct{}
	clock   clock.PassiveClock
	metrics *metrics
	log     logr.Logger
}

// MaxAvailableReplicas implements pb.EstimatorServer.
func (s *server) MaxAvailableReplicas(ctx context.Context, in *pb.MaxAvailableReplicasRequest) (*pb.MaxAvailableReplicasResponse, error) {
	n, err := s.answer(ctx, methodReplicas, in.GetCluster(), func(ctx context.Context) (int32, error) {
		n, err := s.replicas(ctx, in)
		return n, wrap("failed to estimate replicas", err)
	})
	return &pb.MaxAvailableReplicasResponse{MaxReplicas: n}, err
}

func (s *server) replicas(ctx context.Context, in *pb.MaxAvailableReplicasRequest) (int32, error) {
	if err := checkRequest(nil, in.GetAssumedWorkloads(), in.GetReplicaRequirements().GetNodeClaim()); err != nil {
		return 0, err
	}
	requirements, err := pb.ToReplicaRequirements(in.GetReplicaRequirements())
	if err != nil {
		return 0, invalid(err)
	}
	assumed, err := s.assumed(in.GetAssumedWorkloads())
	if err != nil {
		return 0, err
	}
	return s.estimate(methodReplicas, func(f *estimate.Facts) (int32, error) { return f.Replicas(ctx, requirements, assumed) })
}

// MaxAvailableComponentSets implements pb.EstimatorServer.
func (s *server) MaxAvailableComponentSets(ctx context.Context, in *pb.MaxAvailableComponentSetsRequest) (*pb.MaxAvailableComponentSetsResponse, error) {
	n, err := s.answer(ctx, methodSets, in.GetCluster(), func(ctx context.Context) (int32, error) {
		n, err := s.sets(ctx, in)
		return n, wrap("failed to estimate component sets", err)
	})
	return &pb.MaxAvailableComponentSetsResponse{MaxSets: n}, err
}

func (s *server) sets(ctx context.Context, in *pb.MaxAvailableComponentSetsRequest) (int32, error) {
	if err := checkRequest(in.GetComponents(), in.GetAssumedWorkloads()); err != nil {
		return 0, err
	}
	components, err := pb.ToComponents(in.GetComponents())
	if err != nil {
		return 0, invalid(err)
	}
	assumed, err := s.assumed(in.GetAssumedWorkloads())
	if err != nil {
		return 0, err
	}
	return s.estimate(methodSets, func(f *estimate.Facts) (int32, error) { return f.Sets(ctx, in.GetNamespace(), components, assumed) })
}

// GetUnschedulableReplicas implements pb.EstimatorServer.
func (s *server) GetUnschedulableReplicas(ctx context.Context, in *pb.UnschedulableReplicasRequest) (*pb.UnschedulableReplicasResponse, error) {
	n, err := s.answer(ctx, methodUnschedulable, in.GetCluster(), func(context.Context) (int32, error) {
		ref := in.GetResource()
		if ref == nil {
			return 0, invalid(errors.New("resource is nil"))
		}
		if err := estimate.SupportsUnschedulable(ref.Kind, ref.Namespace, ref.Name); err != nil {
			return 0, invalid(err)
		}
		if err := s.cluster.workloadsReady(); err != nil {
			return 0, status.Error(codes.Unavailable, err.Error())
		}
		counted := s.metrics.observe(s.clock, methodUnschedulable, stepPods)
		key := types.NamespacedName{Namespace: ref.Namespace, Name: ref.Name}
		n, err := s.cluster.unschedulable(key, time.Duration(in.UnschedulableThreshold), s.clock.Now())
		counted(err)
		if err != nil {
			return 0, status.Error(codes.NotFound, err.Error())
		}
		return n, nil
	})
	return &pb.UnschedulableReplicasResponse{UnschedulableReplicas: n}, err
}

// requestTimeout bounds a request whose client sets no earlier deadline.
const requestTimeout = 10 * time.Second

// answer checks the cluster of a request, waits for a slot and computes the answer.
func (s *server) answer(ctx context.Context, method, clusterName string, compute func(context.Context) (int32, error)) (n int32, err error) {
	done := s.metrics.observe(s.clock, method, stepTotal)
	defer func() {
		s.metrics.requested(method, err)
		done(err)
		s.log.V(4).Info("Answered a request", "method", method, "object", objectOf(ctx), "answer", n, "err", fmt.Sprint(err))
	}()
	if clusterName != s.clusterName {
		return 0, status.Errorf(codes.InvalidArgument, "cluster name does not match, got: %s, desire: %s", bounded(clusterName), s.clusterName)
	}
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	select {
	case s.slots <- struct{}{}:
		defer func() { <-s.slots }()
	case <-ctx.Done():
		return 0, status.FromContextError(ctx.Err()).Err()
	}
	n, err = compute(ctx)
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
		err = status.FromContextError(ctx.Err()).Err()
	}
	// A quota that is exceeded leaves room for nothing. Numbers below 0 have another meaning for schedulers.
	return max(n, 0), err
}

// estimate computes an estimate, or returns an error while the cluster is not known.
func (s *server) estimate(method string, compute func(*estimate.Facts) (int32, error)) (int32, error) {
	read := s.metrics.observe(s.clock, method, stepCache)
	err := s.cluster.ready()
	read(err)
	if err != nil {
		return 0, status.Error(codes.Unavailable, err.Error())
	}
	facts := s.cluster.facts()
	around, done := s.metrics.around(s.clock, method)
	defer done()
	facts.Around = around
	return compute(&facts)
}

// assumed returns the assumed workloads that count.
func (s *server) assumed(messages []*pb.AssumedWorkload) ([]replicas.Workload, error) {
	if !s.overcommit || len(messages) == 0 {
		return nil, nil
	}
	out := make([]replicas.Workload, len(messages))
	for i, m := range messages {
		components, err := pb.ToComponents(m.GetComponents())
		if err != nil {
			return nil, invalid(fmt.Errorf("assumed workload %d: %w", i, err))
		}
		out[i] = replicas.Workload{Namespace: m.GetNamespace(), Components: components}
	}
	return out, nil
}

func invalid(err error) error { return status.Error(codes.InvalidArgument, err.Error()) }

// wrap adds what failed to the message of an error and keeps its code.
func wrap(what string, err error) error {
	if s, ok := status.FromError(err); ok && err != nil {
		return status.Error(s.Code(), what+": "+s.Message())
	}
	return err
}

// The limits of one request, together with that of the size of its message.
const (
	maxComponents = 10_000
	maxConditions = 10_000
	maxLogged     = 256
)

// checkRequest returns an error if a request has more components, or more conditions on nodes, than any that a
// scheduler sends.
func checkRequest(components []*pb.Component, assumed []*pb.AssumedWorkload, claims ...*pb.NodeClaim) error {
	count := len(components)
	for _, w := range assumed {
		count += len(w.GetComponents()) + 1
	}
	if count > maxComponents {
		return status.Errorf(codes.InvalidArgument, "%d components and assumed workloads, at most %d are estimated at once", count, maxComponents)
	}
	for _, c := range components {
		claims = append(claims, c.GetReplicaRequirements().GetNodeClaim())
	}
	for _, w := range assumed {
		for _, c := range w.GetComponents() {
			claims = append(claims, c.GetReplicaRequirements().GetNodeClaim())
		}
	}
	conditions := 0
	for _, c := range claims {
		// A condition of a node affinity takes at least 4 bytes.
		conditions += len(c.GetNodeSelector()) + len(c.GetNodeAffinityBytes())/4 + len(c.GetTolerationsBytes())
	}
	if conditions > maxConditions {
		return status.Errorf(codes.InvalidArgument, "more than %d selectors, affinities and tolerations", maxConditions)
	}
	return nil
}

// objectOf returns the object that a client names, for the log.
func objectOf(ctx context.Context) string {
	md, _ := metadata.FromIncomingContext(ctx)
	if v := md.Get(pb.MetadataObject); len(v) > 0 {
		return bounded(v[0])
	}
	return ""
}

func bounded(s string) string {
	if len(s) > maxLogged {
		return s[:maxLogged] + "…"
	}
	return s
}

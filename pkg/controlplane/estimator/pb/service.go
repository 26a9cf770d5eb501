package pb

import (
	"context"
	"fmt"

	"google.golang.org/grpc"
)

// Service is the name of the service, and the others are those of its methods.
const (
	Service                         = "github.com.karmada_io.karmada.pkg.estimator.service.Estimator"
	MethodMaxAvailableReplicas      = "MaxAvailableReplicas"
	MethodMaxAvailableComponentSets = "MaxAvailableComponentSets"
	MethodGetUnschedulableReplicas  = "GetUnschedulableReplicas"
)

// MetadataObject is the key of the metadata that name the object asked about.
const MetadataObject = "object"

// Codec encodes the messages of the service. Servers are made with
// grpc.ForceServerCodec, so that it is not registered for others.
type Codec struct{}

// Name is that of Protocol Buffers, which it is.
func (Codec) Name() string { return "proto" }

// Marshal encodes a Message.
func (Codec) Marshal(v any) ([]byte, error) {
	m, ok := v.(Message)
	if !ok {
		return nil, fmt.Errorf("encoding %T: %w", v, errMessage)
	}
	return m.Append(nil)
}

// Unmarshal decodes a Message.
func (Codec) Unmarshal(data []byte, v any) error {
	m, ok := v.(Message)
	if !ok {
		return fmt.Errorf("decoding %T: %w", v, errMessage)
	}
	return m.Parse(data)
}

// Client asks an estimator.
type Client struct{ Conn grpc.ClientConnInterface }

func (c Client) invoke(ctx context.Context, method string, in, out Message) error {
	return c.Conn.Invoke(ctx, "/"+Service+"/"+method, in, out, grpc.ForceCodec(Codec{}))
}

// MaxAvailableReplicas asks how many replicas fit.
func (c Client) MaxAvailableReplicas(ctx context.Context, in *MaxAvailableReplicasRequest) (int32, error) {
	out := &MaxAvailableReplicasResponse{}
	err := c.invoke(ctx, MethodMaxAvailableReplicas, in, out)
	return out.MaxReplicas, err
}

// MaxAvailableComponentSets asks how many sets of components fit.
func (c Client) MaxAvailableComponentSets(ctx context.Context, in *MaxAvailableComponentSetsRequest) (int32, error) {
	out := &MaxAvailableComponentSetsResponse{}
	err := c.invoke(ctx, MethodMaxAvailableComponentSets, in, out)
	return out.MaxSets, err
}

// GetUnschedulableReplicas asks how many replicas have found no node.
func (c Client) GetUnschedulableReplicas(ctx context.Context, in *UnschedulableReplicasRequest) (int32, error) {
	out := &UnschedulableReplicasResponse{}
	err := c.invoke(ctx, MethodGetUnschedulableReplicas, in, out)
	return out.UnschedulableReplicas, err
}

// Server answers.
type Server interface {
	MaxAvailableReplicas(context.Context, *MaxAvailableReplicasRequest) (*MaxAvailableReplicasResponse, error)
	MaxAvailableComponentSets(context.Context, *MaxAvailableComponentSetsRequest) (*MaxAvailableComponentSetsResponse, error)
	GetUnschedulableReplicas(context.Context, *UnschedulableReplicasRequest) (*UnschedulableReplicasResponse, error)
}

// Register adds a Server to a gRPC server, which has to be made with
// grpc.ForceServerCodec(Codec{}).
func Register(to grpc.ServiceRegistrar, s Server) {
	to.RegisterService(&grpc.ServiceDesc{
		ServiceName: Service, HandlerType: (*Server)(nil),
		Methods: []grpc.MethodDesc{
			{MethodName: MethodMaxAvailableReplicas, Handler: handler(Server.MaxAvailableReplicas)},
			{MethodName: MethodMaxAvailableComponentSets, Handler: handler(Server.MaxAvailableComponentSets)},
			{MethodName: MethodGetUnschedulableReplicas, Handler: handler(Server.GetUnschedulableReplicas)},
		},
	}, s)
}

func handler[In, Out any](method func(Server, context.Context, *In) (*Out, error)) grpc.MethodHandler {
	return func(srv any, ctx context.Context, decode func(any) error, intercept grpc.UnaryServerInterceptor) (any, error) {
		in := new(In)
		if err := decode(in); err != nil {
			return nil, err
		}
		s, ok := srv.(Server)
		if !ok {
			return nil, fmt.Errorf("serving %T: %w", srv, errMessage)
		}
		if intercept == nil {
			return method(s, ctx, in)
		}
		return intercept(ctx, in, &grpc.UnaryServerInfo{Server: srv}, func(ctx context.Context, req any) (any, error) {
			typed, ok := req.(*In)
			if !ok {
				return nil, fmt.Errorf("handling %T: %w", req, errMessage)
			}
			return method(s, ctx, typed)
		})
	}
}

package estimator

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"io"
	"math"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/karmada-toolkit/karmada/internal/pki"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/estimator/pb"
)

func quantityBytes(text string) []byte {
	return append([]byte{0x0a}, protowire.AppendBytes(nil, []byte(text))...)
}

func many[T any](n int, v T) []T {
	out := make([]T, n)
	for i := range out {
		out[i] = v
	}
	return out
}

// Each of these requests ends at once, and the server answers others afterwards.
func TestServer_HostileRequests(t *testing.T) {
	a := newAPI(t, map[string][]any{"nodes": {node("n1", "4", "9223372036854775807"), node("n2", "4", "9223372036854775807")}})
	s, address := start(t, a, NewOptions())
	c := dial(t, address)
	eventually(t, "the cluster is read", func() bool { return s.cluster.ready() == nil })
	one := &pb.Component{Name: "c", Replicas: 1}
	for name, tc := range map[string]struct {
		sets *pb.MaxAvailableComponentSetsRequest
		code codes.Code
		want int32
	}{
		"sets of nothing":         {&pb.MaxAvailableComponentSetsRequest{Components: []*pb.Component{{Name: "c"}}}, codes.OK, math.MaxInt32},
		"as many as can be":       {&pb.MaxAvailableComponentSetsRequest{Components: []*pb.Component{one, one}}, codes.OK, math.MaxInt32},
		"most replicas":           {&pb.MaxAvailableComponentSetsRequest{Components: []*pb.Component{{Replicas: math.MaxInt32}, {Replicas: math.MaxInt32}}}, codes.OK, math.MaxInt32},
		"negative replicas":       {&pb.MaxAvailableComponentSetsRequest{Components: []*pb.Component{{Replicas: math.MinInt32}}}, codes.OK, math.MaxInt32},
		"too many components":     {&pb.MaxAvailableComponentSetsRequest{Components: many(20_000, one)}, codes.InvalidArgument, 0},
		"too many assumed":        {&pb.MaxAvailableComponentSetsRequest{AssumedWorkloads: many(20_000, &pb.AssumedWorkload{})}, codes.InvalidArgument, 0},
		"no component, no object": {&pb.MaxAvailableComponentSetsRequest{Components: []*pb.Component{nil}}, codes.OK, math.MaxInt32},
		"too large":               {&pb.MaxAvailableComponentSetsRequest{Namespace: strings.Repeat("x", maxMessage)}, codes.ResourceExhausted, 0},
		"a quantity that takes minutes": {&pb.MaxAvailableComponentSetsRequest{Components: []*pb.Component{{Replicas: 1, ReplicaRequirements: &pb.ComponentReplicaRequirements{
			ResourceRequestBytes: map[string][]byte{"cpu": quantityBytes("1e-300000000")},
		}}}}, codes.InvalidArgument, 0},
		"the largest quantity": {&pb.MaxAvailableComponentSetsRequest{Components: []*pb.Component{{Replicas: 1, ReplicaRequirements: &pb.ComponentReplicaRequirements{
			ResourceRequestBytes: map[string][]byte{"cpu": quantityBytes("9223372036854775807")},
		}}}}, codes.OK, 0},
		"an affinity that is none": {&pb.MaxAvailableComponentSetsRequest{Components: []*pb.Component{{Replicas: 1, ReplicaRequirements: &pb.ComponentReplicaRequirements{
			NodeClaim: &pb.NodeClaim{NodeAffinityBytes: []byte{0xff, 0xff}},
		}}}}, codes.InvalidArgument, 0},
		"too many conditions": {&pb.MaxAvailableComponentSetsRequest{Components: []*pb.Component{{Replicas: 1, ReplicaRequirements: &pb.ComponentReplicaRequirements{
			NodeClaim: &pb.NodeClaim{TolerationsBytes: many(20_000, []byte{})},
		}}}}, codes.InvalidArgument, 0},
	} {
		t.Run(name, func(t *testing.T) {
			tc.sets.Cluster = "m1"
			answer, err := c.MaxAvailableComponentSets(t.Context(), tc.sets)
			if status.Code(err) != tc.code || tc.code == codes.OK && answer.MaxSets != tc.want {
				t.Errorf("%v %v, want %s %d", answer, err, tc.code, tc.want)
			}
			if got := replicasOf(t, c); got != 8 {
				t.Errorf("afterwards %d replicas fit", got)
			}
		})
	}
}

// raw sends bytes as the message of a request.
type raw struct{ encoding.CodecV2 }

func (raw) Name() string                  { return "proto" }
func (raw) Marshal(v any) ([]byte, error) { return v.([]byte), nil }
func (raw) Unmarshal([]byte, any) error   { return nil }

func TestServer_RefusesWhatIsNoMessage(t *testing.T) {
	s, address := start(t, newAPI(t, map[string][]any{"nodes": {node("n1", "4", "110")}}), NewOptions())
	conn, err := grpc.NewClient(address, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close() //nolint:errcheck // a test
	for _, message := range [][]byte{bytes.Repeat([]byte{0xff}, 1000), bytes.Repeat([]byte{0x12}, 100_000), {0x0a, 0x7f}} {
		err := conn.Invoke(t.Context(), pb.Estimator_MaxAvailableReplicas_FullMethodName, message, nil, grpc.ForceCodec(raw{}))
		if err == nil {
			t.Errorf("%x… is answered", message[:2])
		}
	}
	eventually(t, "the cluster is read", func() bool { return s.cluster.ready() == nil })
	if got := replicasOf(t, dial(t, address)); got != 4 {
		t.Errorf("afterwards %d replicas fit", got)
	}
}

// Clients that hold all slots, and those that hold connections without using them, do not keep others waiting beyond
// their deadline, and are refused beyond the limits.
func TestServer_OccupiedSlots(t *testing.T) {
	o := NewOptions()
	o.Parallelism = 1
	s, address := start(t, newAPI(t, map[string][]any{"nodes": {node("n1", "4", "110")}}), o)
	c := dial(t, address)
	eventually(t, "the cluster is read", func() bool { return s.cluster.ready() == nil })
	s.slots <- struct{}{}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	_, err := c.MaxAvailableReplicas(ctx, &pb.MaxAvailableReplicasRequest{Cluster: "m1"})
	if status.Code(err) != codes.DeadlineExceeded {
		t.Errorf("got %v", err)
	}
	<-s.slots
	if got := replicasOf(t, c); got != 4 {
		t.Errorf("afterwards %d replicas fit", got)
	}
}

func TestRequests_AreLimitedBeforeTheirMessagesAreRead(t *testing.T) {
	r := &requests{}
	ctx, cancel := context.WithCancel(t.Context())
	for range maxRequests {
		if _, err := r.admit(ctx, nil); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := r.admit(t.Context(), nil); status.Code(err) != codes.ResourceExhausted {
		t.Errorf("got %v", err)
	}
	cancel()
	eventually(t, "the requests end", func() bool { return r.count.Load() == 0 })
}

func TestRecovered_AnswersAPanic(t *testing.T) {
	_, err := recovered(t.Context(), nil, nil, func(context.Context, any) (any, error) { panic("x") })
	if status.Code(err) != codes.Internal {
		t.Errorf("got %v", err)
	}
}

// A client that does not speak HTTP/2 is disconnected.
func TestServer_OtherProtocolsAreDisconnected(t *testing.T) {
	_, address := start(t, newAPI(t, nil), NewOptions())
	for _, text := range []string{"GET / HTTP/1.1\r\nHost: x\r\n\r\n", strings.Repeat("x", 100)} {
		conn, err := net.Dial("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := conn.Write([]byte(text)); err != nil {
			t.Fatal(err)
		}
		_ = conn.SetReadDeadline(time.Now().Add(2 * handshakeTimeout))
		if _, err := io.Copy(io.Discard, conn); os.IsTimeout(err) {
			t.Errorf("%.10q: still connected", text)
		}
		_ = conn.Close()
	}
}

// authority writes the certificates of an authority and returns its directory.
func authority(t *testing.T, names ...string) string {
	t.Helper()
	dir := t.TempDir()
	store := pki.Store{Storage: pki.Dir(dir), Now: time.Now}
	ca, err := store.CA("ca", pki.CAConfig{CommonName: "test"})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		if _, err := store.Leaf(name, pki.LeafConfig{CommonName: name, Hosts: []string{"127.0.0.1"}}, ca); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func presenting(t *testing.T, dir, name string, from string) grpc.DialOption {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, "ca.crt"))
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(text)
	c := &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS13}
	if name != "" {
		pair, err := tls.LoadX509KeyPair(filepath.Join(from, name+".crt"), filepath.Join(from, name+".key"))
		if err != nil {
			t.Fatal(err)
		}
		c.Certificates = []tls.Certificate{pair}
	}
	return grpc.WithTransportCredentials(credentials.NewTLS(c))
}

func TestServer_MutualTLS(t *testing.T) {
	dir, foreign := authority(t, "server", "scheduler", "agent"), authority(t, "scheduler")
	o := NewOptions()
	o.CertFile, o.KeyFile, o.ClientCAFile = filepath.Join(dir, "server.crt"), filepath.Join(dir, "server.key"), filepath.Join(dir, "ca.crt")
	o.ClientAllowedNames = []string{"scheduler"}
	s, address := start(t, newAPI(t, map[string][]any{"nodes": {node("n1", "4", "110")}}), o)
	eventually(t, "the cluster is read", func() bool { return s.cluster.ready() == nil })
	for name, tc := range map[string]struct {
		option grpc.DialOption
		want   int32
	}{
		"the scheduler":           {presenting(t, dir, "scheduler", dir), 4},
		"no certificate":          {presenting(t, dir, "", dir), -1},
		"another authority":       {presenting(t, dir, "scheduler", foreign), -1},
		"another name":            {presenting(t, dir, "agent", dir), -1},
		"not encrypted":           {grpc.WithTransportCredentials(insecure.NewCredentials()), -1},
		"the scheduler once more": {presenting(t, dir, "scheduler", dir), 4},
	} {
		if got := replicasOf(t, dial(t, address, tc.option)); got != tc.want {
			t.Errorf("%s: %d, want %d", name, got, tc.want)
		}
	}
	// Renewed files count for the next connection.
	for _, file := range []string{"ca.crt", "scheduler.crt", "scheduler.key"} {
		data, err := os.ReadFile(filepath.Join(foreign, file))
		if err == nil && file == "ca.crt" {
			err = os.WriteFile(o.ClientCAFile, data, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	renewed := authority(t, "server")
	for _, file := range []string{"server.crt", "server.key"} {
		data, err := os.ReadFile(filepath.Join(renewed, file))
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, file), data, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if got := replicasOf(t, dial(t, address, presenting(t, renewed, "scheduler", foreign))); got != 4 {
		t.Errorf("with renewed certificates: %d", got)
	}
	// While a file is being written, the last one counts.
	if err := os.WriteFile(o.ClientCAFile, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if got := replicasOf(t, dial(t, address, presenting(t, renewed, "scheduler", foreign))); got != 4 {
		t.Errorf("with a damaged file: %d", got)
	}
}

func TestOptions_Validate(t *testing.T) {
	for want, change := range map[string]func(*Options){
		"":                            func(*Options) {},
		"--cluster-name is missing":   func(o *Options) { o.ClusterName = "" },
		"--cluster-name: ":            func(o *Options) { o.ClusterName = "A_b" },
		"--server-port is 70000":      func(o *Options) { o.Port = 70000 },
		"--parallelism is -1":         func(o *Options) { o.Parallelism = -1 },
		"belong together":             func(o *Options) { o.CertFile = "x" },
		"--grpc-client-ca-file needs": func(o *Options) { o.ClientCAFile = "x" },
		"--bind-address":              func(o *Options) { o.BindAddress = "x" },
		"--grpc-client-allowed-names": func(o *Options) { o.ClientAllowedNames = []string{"x"} },
	} {
		o := NewOptions()
		o.ClusterName = "m1"
		change(o)
		if err := o.Validate(); (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("want %q, got %v", want, err)
		}
	}
}

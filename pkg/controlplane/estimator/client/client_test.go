package client

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/sets"

	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
	policyv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/policy/v1alpha1"
	workv1alpha2 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha2"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/estimator/pb"
	"github.com/karmada-toolkit/karmada/pkg/domain/replicas"
	"github.com/karmada-toolkit/karmada/pkg/domain/schedule/core"
	"github.com/karmada-toolkit/karmada/pkg/domain/schedule/framework"
)

// estimator answers for the clusters of a test.
type estimator struct {
	pb.UnimplementedEstimatorServer
	mu      sync.Mutex
	asked   []proto.Message
	object  string
	release chan struct{}
}

func (e *estimator) note(ctx context.Context, m proto.Message) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.asked = append(e.asked, m)
	if md, ok := metadata.FromIncomingContext(ctx); ok {
		e.object = strings.Join(md.Get(pb.MetadataObject), "|")
	}
}

func (e *estimator) noted() (object string, asked []proto.Message) {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.object, e.asked
}

func (e *estimator) MaxAvailableReplicas(ctx context.Context, in *pb.MaxAvailableReplicasRequest) (*pb.MaxAvailableReplicasResponse, error) {
	e.note(ctx, in)
	switch in.Cluster {
	case "nonsense":
		return &pb.MaxAvailableReplicasResponse{MaxReplicas: -5}, nil
	case "escape":
		return nil, errors.New("x\x1b[31m\n" + strings.Repeat("y", 10_000))
	case "older":
		return nil, status.Error(codes.Unimplemented, "unknown method")
	case "failing":
		return nil, errors.New("failed to estimate replicas: no nodes")
	case "slow":
		select {
		case <-e.release:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	return &pb.MaxAvailableReplicasResponse{MaxReplicas: 5}, nil
}

func (e *estimator) MaxAvailableComponentSets(ctx context.Context, in *pb.MaxAvailableComponentSetsRequest) (*pb.MaxAvailableComponentSetsResponse, error) {
	e.note(ctx, in)
	return &pb.MaxAvailableComponentSetsResponse{MaxSets: 2}, nil
}

func (e *estimator) GetUnschedulableReplicas(context.Context, *pb.UnschedulableReplicasRequest) (*pb.UnschedulableReplicasResponse, error) {
	return &pb.UnschedulableReplicasResponse{}, nil
}

// serve starts an estimator and returns the Services that lead to it; the cluster
// "gone" has one without a server, "odd" one of another type.
func serve(t *testing.T, opts ...grpc.ServerOption) (*estimator, Options) {
	t.Helper()
	e := &estimator{release: make(chan struct{})}
	server := grpc.NewServer(opts...)
	pb.RegisterEstimatorServer(server, e)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(server.Stop)
	dead, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_ = dead.Close()
	return e, Options{
		Namespace: "karmada-system", Prefix: "estimator", Port: 10352, Timeout: time.Minute,
		Services: func(_ context.Context, namespace, name string) (*corev1.Service, error) {
			cluster, _ := strings.CutPrefix(name, "estimator-")
			s := &corev1.Service{Spec: corev1.ServiceSpec{Type: corev1.ServiceTypeExternalName, ExternalName: "127.0.0.1"}}
			port := listener.Addr().(*net.TCPAddr).Port
			switch cluster {
			case "gone":
				port = dead.Addr().(*net.TCPAddr).Port
			case "odd":
				s.Spec.Type = corev1.ServiceTypeNodePort
			}
			s.Spec.Ports = []corev1.ServicePort{{Port: 10352, TargetPort: intstr.FromInt32(int32(port))}}
			if namespace != "karmada-system" {
				return nil, apierrors.NewNotFound(corev1.Resource("services"), name)
			}
			return s, nil
		},
	}
}

func pool(t *testing.T, o Options) *Pool {
	t.Helper()
	p, err := NewPool(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	return p
}

func clusters(names ...string) []*framework.Cluster {
	var out []*framework.Cluster
	for _, name := range names {
		c := &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: name}}
		c.Spec.SyncMode = clusterv1alpha1.Push
		if strings.HasPrefix(name, "pull") {
			c.Spec.SyncMode = clusterv1alpha1.Pull
		}
		out = append(out, &framework.Cluster{Object: c})
	}
	return out
}

func request() *core.Request {
	return &core.Request{Binding: framework.Binding{Namespace: "ns", Name: "web-deployment", Spec: &workv1alpha2.ResourceBindingSpec{
		Resource:            workv1alpha2.ObjectReference{Kind: "Deployment", Namespace: "ns", Name: "web"},
		Replicas:            9,
		ReplicaRequirements: &workv1alpha2.ReplicaRequirements{ResourceRequest: corev1.ResourceList{"cpu": resource.MustParse("1")}},
		Placement:           &policyv1alpha1.Placement{},
	}}}
}

func TestEstimates_OneBadEstimatorDoesNotAffectOthers(t *testing.T) {
	e, o := serve(t)
	o.Timeout = 5 * time.Second
	p := pool(t, o)
	defer close(e.release)
	got := p.Estimates(t.Context(), request(), clusters("m1", "nonsense", "escape", "older", "failing", "gone", "odd", "slow", "pulled", "m2"), true)
	want := map[string]string{
		"m1": "", "m2": "", "failing": "failed to estimate replicas: no nodes", "gone": "Unavailable: dial tcp 127.0.0.1:",
		"odd": "unsupported service type", "slow": "DeadlineExceeded", "nonsense": "it answered -5", "escape": "x[31m y",
		"older": "Unimplemented: unknown method",
	}
	if len(got) != len(want) {
		t.Errorf("%d answers: %v", len(got), got)
	}
	for cluster, reason := range want {
		estimate := got[cluster]
		if len(estimate.Err) > 2*maxProblem || strings.ContainsAny(estimate.Err, "\x1b\n") {
			t.Errorf("%s: the text is not cleaned: %q", cluster, estimate.Err)
		}
		switch {
		case reason == "" && estimate != core.Estimate{Replicas: 5}:
			t.Errorf("%s: %+v", cluster, estimate)
		case reason != "" && (estimate.Replicas != core.Unauthentic || !strings.Contains(estimate.Err, reason)):
			t.Errorf("%s: %+v, want %q", cluster, estimate, reason)
		}
	}
	if object, _ := e.noted(); object != "kind=Deployment, name=ns/web" {
		t.Errorf("the object is %q", object)
	}
	before := len(p.links)
	p.Forget("m1")
	if len(p.links) != before-1 {
		t.Errorf("%d connections of %d are left without one cluster", len(p.links), before)
	}
	p.Keep(sets.New("m2", "m9"))
	if _, ok := p.links["m2"]; !ok || len(p.links) != 1 {
		t.Errorf("%d connections are left, of m2: %t", len(p.links), ok)
	}
}

func TestEstimates_CountsSetsOfComponents(t *testing.T) {
	e, o := serve(t)
	r := request()
	r.MultiplePodTemplates = true
	r.Spec.Components = []workv1alpha2.Component{{Name: "a", Replicas: 1}, {Name: "b", Replicas: 2}}
	r.Spec.Placement.SpreadConstraints = []policyv1alpha1.SpreadConstraint{{SpreadByField: policyv1alpha1.SpreadByFieldCluster, MinGroups: 1, MaxGroups: 1}}
	r.Assumed = map[string][]replicas.Workload{"m1": {{Namespace: "other", Components: r.Spec.Components[:1]}}}
	got := pool(t, o).Estimates(t.Context(), r, clusters("m1"), false)
	if got["m1"].Replicas != 2 {
		t.Errorf("%+v", got)
	}
	want := []proto.Message{&pb.MaxAvailableComponentSetsRequest{
		Cluster: "m1", Namespace: "ns", Components: []*pb.Component{{Name: "a", Replicas: 1}, {Name: "b", Replicas: 2}},
		AssumedWorkloads: []*pb.AssumedWorkload{{Namespace: "other", Components: []*pb.Component{{Name: "a", Replicas: 1}}}},
	}}
	_, asked := e.noted()
	if diff := cmp.Diff(want, asked, protocmp.Transform()); diff != "" {
		t.Error(diff)
	}
}

// Where estimators are enabled and a cluster has none, as after an installation, nothing has failed.
func TestEstimates_WithoutEstimator(t *testing.T) {
	_, o := serve(t)
	o.Namespace, o.Prefix = "none.invalid", "estimator.invalid"
	p := pool(t, o)
	for range 2 {
		if got := p.Estimates(t.Context(), request(), clusters("m1"), false); len(got) != 0 {
			t.Errorf("got %v", got)
		}
	}
}

// A Service has two names, and one reason why it does not answer.
func TestDial_NamesEachCauseOnce(t *testing.T) {
	_, o := serve(t)
	o.Namespace = "elsewhere"
	for want, fail := range map[string]func(address string) error{
		"no pod is ready": func(string) error { return errors.New("no pod is ready") },
		"[estimator-m1.elsewhere.svc.cluster.local:10352 is closed, estimator-m1.elsewhere.svc:10352 is closed]": func(address string) error { return errors.New(address + " is closed") },
	} {
		o.Dial = func(_ context.Context, address string) (net.Conn, error) { return nil, fail(address) }
		if _, err := pool(t, o).dial(t.Context(), "m1"); err == nil || err.Error() != want {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}

func TestAddresses(t *testing.T) {
	_, o := serve(t)
	p := pool(t, o)
	p.options.Namespace = "elsewhere"
	got, err := p.addresses(t.Context(), "m1")
	want := []string{"estimator-m1.elsewhere.svc.cluster.local:10352", "estimator-m1.elsewhere.svc:10352"}
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("%v %s", err, diff)
	}
	p.options.Namespace, p.options.Port = "karmada-system", 1
	if _, err := p.addresses(t.Context(), "m1"); err == nil || !strings.Contains(err.Error(), "has no port 1") {
		t.Errorf("a port that is not there: %v", err)
	}
}

func TestNewPool_SaysWhichFileIsMissing(t *testing.T) {
	missing := filepath.Join(t.TempDir(), "none.crt")
	for _, o := range []Options{{CAFile: missing}, {InsecureSkipVerify: true, CertFile: missing, KeyFile: missing}} {
		if _, err := NewPool(o); err == nil || !strings.Contains(err.Error(), missing) {
			t.Errorf("got %v", err)
		}
	}
}

// files writes a certificate for 127.0.0.1, which is its own authority.
func files(t *testing.T) (cert, key string) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), IPAddresses: []net.IP{net.ParseIP("127.0.0.1")}, NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, private.Public(), private)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	cert, key = filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key")
	for path, block := range map[string]*pem.Block{cert: {Type: "CERTIFICATE", Bytes: der}, key: {Type: "PRIVATE KEY", Bytes: secret}} {
		if err := os.WriteFile(path, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return cert, key
}

func TestEstimates_MutualTLS(t *testing.T) {
	cert, key := files(t)
	pair, err := tls.LoadX509KeyPair(cert, key)
	if err != nil {
		t.Fatal(err)
	}
	authority := x509.NewCertPool()
	text, err := os.ReadFile(cert)
	if err != nil {
		t.Fatal(err)
	}
	authority.AppendCertsFromPEM(text)
	_, o := serve(t, grpc.Creds(credentials.NewTLS(&tls.Config{
		Certificates: []tls.Certificate{pair}, ClientCAs: authority, ClientAuth: tls.RequireAndVerifyClientCert, MinVersion: tls.VersionTLS13,
	})))
	foreign, _ := files(t)
	for name, tc := range map[string]struct {
		change func(*Options)
		want   string
	}{
		"both know each other":      {func(o *Options) { o.CAFile, o.CertFile, o.KeyFile = cert, cert, key }, ""},
		"the server is not checked": {func(o *Options) { o.InsecureSkipVerify, o.CertFile, o.KeyFile = true, cert, key }, ""},
		"another authority":         {func(o *Options) { o.CAFile, o.CertFile, o.KeyFile = foreign, cert, key }, "certificate"},
		"no client certificate":     {func(o *Options) { o.CAFile = cert }, "Unavailable"},
		"no TLS":                    {func(*Options) {}, "Unavailable"},
	} {
		t.Run(name, func(t *testing.T) {
			with := o
			tc.change(&with)
			got := pool(t, with).Estimates(t.Context(), request(), clusters("m1"), false)["m1"]
			if tc.want == "" && got != (core.Estimate{Replicas: 5}) || tc.want != "" && !strings.Contains(got.Err, tc.want) {
				t.Errorf("got %+v, want %q", got, tc.want)
			}
		})
	}
}

func TestEstimates_OtherAuthorities(t *testing.T) {
	cert, key := files(t)
	var pair atomic.Pointer[tls.Certificate]
	use := func(cert, key string) {
		t.Helper()
		loaded, err := tls.LoadX509KeyPair(cert, key)
		if err != nil {
			t.Fatal(err)
		}
		pair.Store(&loaded)
	}
	use(cert, key)
	_, o := serve(t, grpc.Creds(credentials.NewTLS(&tls.Config{
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return pair.Load(), nil }, MinVersion: tls.VersionTLS13,
	})))
	o.CAFile = filepath.Join(t.TempDir(), "ca.crt")
	writeCA := func(file string) {
		t.Helper()
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(o.CAFile, content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	writeCA(cert)
	p := pool(t, o)
	answer := func() string {
		p.Forget("m1") // the next request connects again
		return p.Estimates(t.Context(), request(), clusters("m1"), false)["m1"].Err
	}
	if got := answer(); got != "" {
		t.Fatal(got)
	}
	next, nextKey := files(t)
	use(next, nextKey)
	if got := answer(); !strings.Contains(got, "certificate") {
		t.Errorf("a server of an unknown authority: %q", got)
	}
	for _, file := range []string{next, os.DevNull} { // replaced, damaged
		writeCA(file)
		if got := answer(); got != "" {
			t.Errorf("with %s: %s", file, got)
		}
	}
}

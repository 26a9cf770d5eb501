package aggregated

import (
	"context"
	"encoding/json"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"go.etcd.io/etcd/server/v3/embed"
	"go.etcd.io/etcd/server/v3/etcdserver/api/v3rpc"
	"go.uber.org/zap"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/karmada-toolkit/karmada/pkg/generated/clientset/versioned"
)

// startEtcd runs an etcd in dir and returns its address, a Unix socket, and what
// stops it.
func startEtcd(t *testing.T, dir string) (endpoint string, stop func()) {
	t.Helper()
	cfg := embed.NewConfig()
	peer := url.URL{Scheme: "http", Host: "localhost:2380"}
	cfg.Dir = dir
	cfg.ListenPeerUrls, cfg.ListenClientUrls = nil, nil
	cfg.AdvertisePeerUrls = []url.URL{peer}
	cfg.AdvertiseClientUrls = []url.URL{{Scheme: "http", Host: "localhost:2379"}}
	cfg.InitialCluster = cfg.Name + "=" + peer.String()
	cfg.TickMs, cfg.ElectionMs = 20, 200
	cfg.UnsafeNoFsync = true
	cfg.EnableGRPCGateway = false
	cfg.ZapLoggerBuilder = embed.NewZapLoggerBuilder(zap.NewNop())
	etcd, err := embed.StartEtcd(cfg)
	if err != nil {
		t.Fatal(err)
	}
	<-etcd.Server.ReadyNotify()
	short, err := os.MkdirTemp("", "etcd") //nolint:usetesting // paths of sockets must be short
	if err != nil {
		t.Fatal(err)
	}
	socket := filepath.Join(short, "s")
	listener, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	server := v3rpc.Server(etcd.Server, nil, nil)
	go func() { _ = server.Serve(listener) }()
	var once sync.Once
	stop = func() {
		once.Do(func() {
			server.Stop()
			etcd.Close()
			_ = os.RemoveAll(short)
		})
	}
	t.Cleanup(stop)
	return "unix://" + socket, stop
}

// controlPlane is an API server that authenticates users by their tokens and decides what
// they may do.
type controlPlane struct {
	*httptest.Server

	mu      sync.Mutex
	allowed func(authorizationv1.SubjectAccessReviewSpec) bool
	reviews []authorizationv1.SubjectAccessReviewSpec
	// other are requests that are no reviews.
	other []*http.Request
}

// users are the users by token.
func users() map[string]authenticationv1.UserInfo {
	return map[string]authenticationv1.UserInfo{
		"admin": {Username: "system:admin", Groups: []string{"system:masters"}},
		"alice": {Username: "alice", Groups: []string{"dev", "ops"}},
		"bob":   {Username: "bob"},
		"carol": {Username: "carol"},
		"dave":  {Username: "dave"},
	}
}

func newControlPlane(t *testing.T) *controlPlane {
	t.Helper()
	c := &controlPlane{allowed: func(authorizationv1.SubjectAccessReviewSpec) bool { return false }}
	c.Server = httptest.NewServer(c)
	t.Cleanup(c.Close)
	return c
}

func (c *controlPlane) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	var answer any
	switch {
	case strings.HasSuffix(req.URL.Path, "/tokenreviews"):
		var review authenticationv1.TokenReview
		_ = json.NewDecoder(req.Body).Decode(&review)
		review.Status.User, review.Status.Authenticated = users()[review.Spec.Token], users()[review.Spec.Token].Username != ""
		answer = review
	case strings.HasSuffix(req.URL.Path, "/subjectaccessreviews"):
		var review authorizationv1.SubjectAccessReview
		_ = json.NewDecoder(req.Body).Decode(&review)
		c.mu.Lock()
		c.reviews = append(c.reviews, review.Spec)
		review.Status.Allowed = c.allowed(review.Spec)
		c.mu.Unlock()
		answer = review
	default:
		c.mu.Lock()
		c.other = append(c.other, req)
		c.mu.Unlock()
		answer = map[string]string{"path": req.URL.Path}
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(answer)
}

// config is how the servers reach the control plane.
func (c *controlPlane) config() *rest.Config {
	return &rest.Config{Host: c.URL, ContentConfig: rest.ContentConfig{ContentType: "application/json"}}
}

// running is a server that runs.
type runningServer struct {
	url  string
	stop func() error
}

// startServer runs the aggregated API server against an etcd.
func startServer(t *testing.T, etcd string, c *controlPlane, secrets map[string]*corev1.Secret) *runningServer {
	t.Helper()
	o := NewOptions()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	o.SecureServing.Listener = listener
	o.Etcd.StorageConfig.Transport.ServerList = []string{etcd}
	o.Authentication.SkipInClusterLookup = true
	o.ShutdownTimeout = 100 * time.Millisecond
	if err := o.Validate(); err != nil {
		t.Fatal(err)
	}
	serving, err := o.Serving("aggregated-apiserver")
	if err != nil {
		t.Fatal(err)
	}
	s := &server{
		options: o, controlPlane: c.config(), now: time.Now, serving: serving,
		secret: func(_ context.Context, namespace, name string) (*corev1.Secret, error) {
			if secret, ok := secrets[namespace+"/"+name]; ok {
				return secret, nil
			}
			return nil, apierrors.NewNotFound(schema.GroupResource{Resource: "secrets"}, name)
		},
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- s.run(ctx) }()
	r := &runningServer{url: "https://" + listener.Addr().String()}
	var once sync.Once
	r.stop = func() (err error) {
		once.Do(func() {
			cancel()
			err = <-done
		})
		return err
	}
	t.Cleanup(func() { _ = r.stop() })
	r.waitReady(t, done)
	return r
}

func (r *runningServer) waitReady(t *testing.T, done <-chan error) {
	t.Helper()
	transport, err := rest.TransportFor(r.config("admin"))
	if err != nil {
		t.Fatal(err)
	}
	client := &http.Client{Transport: transport}
	var last string
	for deadline := time.Now().Add(2 * time.Minute); time.Now().Before(deadline); {
		select {
		case err := <-done:
			t.Fatalf("the server ended: %v", err)
		case <-time.After(10 * time.Millisecond):
		}
		answer, err := client.Get(r.url + "/readyz")
		if err != nil {
			last = err.Error()
			continue
		}
		_ = answer.Body.Close()
		if answer.StatusCode == http.StatusOK {
			return
		}
		last = answer.Status
	}
	t.Fatalf("the server did not become ready: %s", last)
}

// config is how a user reaches the server.
func (r *runningServer) config(token string) *rest.Config {
	return &rest.Config{Host: r.url, BearerToken: token, QPS: -1, TLSClientConfig: rest.TLSClientConfig{Insecure: true}}
}

func (r *runningServer) client(t *testing.T, token string) versioned.Interface {
	t.Helper()
	c, err := versioned.NewForConfig(r.config(token))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

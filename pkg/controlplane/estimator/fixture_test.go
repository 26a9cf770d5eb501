package estimator

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"

	"github.com/karmada-toolkit/karmada/pkg/controlplane/estimator/pb"
	"github.com/karmada-toolkit/karmada/pkg/member/access"
)

// api is a member's API server that serves fixed lists, and watches that report what is sent.
type api struct {
	*httptest.Server
	mu      sync.Mutex
	lists   map[string][]any
	broken  bool
	watches map[string]chan any
}

func newAPI(t testing.TB, lists map[string][]any) *api {
	t.Helper()
	a := &api{lists: lists, watches: map[string]chan any{}}
	for _, resource := range []string{"nodes", "pods", "deployments", "replicasets", "resourcequotas"} {
		a.watches[resource] = make(chan any, 100)
	}
	a.Server = httptest.NewServer(a)
	t.Cleanup(a.CloseClientConnections)
	t.Cleanup(a.Close)
	return a
}

func (a *api) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var group, version, name string
	if _, err := fmt.Sscanf(r.URL.Path, "/api/v1/%s", &name); err == nil {
		version = "v1"
	} else if _, err := fmt.Sscanf(r.URL.Path, "/apis/apps/v1/%s", &name); err == nil {
		group, version = "apps/", "v1"
	}
	kinds := map[string]string{"nodes": "Node", "pods": "Pod", "deployments": "Deployment", "replicasets": "ReplicaSet", "resourcequotas": "ResourceQuota"}
	a.mu.Lock()
	broken, items := a.broken, a.lists[name]
	a.mu.Unlock()
	if broken || kinds[name] == "" {
		http.Error(w, "broken", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	if r.URL.Query().Get("watch") == "" {
		if items == nil {
			items = []any{}
		}
		from, _ := strconv.Atoi(r.URL.Query().Get("continue"))
		to, next := len(items), ""
		if limit, _ := strconv.Atoi(r.URL.Query().Get("limit")); limit > 0 && from+limit < to {
			to = from + limit
			next = strconv.Itoa(to)
		}
		_ = json.NewEncoder(w).Encode(map[string]any{
			"kind": kinds[name] + "List", "apiVersion": group + version,
			"metadata": map[string]any{"resourceVersion": "1", "continue": next}, "items": items[from:to],
		})
		return
	}
	w.WriteHeader(http.StatusOK)
	_ = http.NewResponseController(w).Flush()
	for {
		select {
		case <-r.Context().Done():
			return
		case event := <-a.watches[name]:
			_ = json.NewEncoder(w).Encode(event)
			_ = http.NewResponseController(w).Flush()
		}
	}
}

func (a *api) setBroken(broken bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.broken = broken
}

// send has the watches of a resource report a change.
func (a *api) send(resource, change string, object any) {
	a.watches[resource] <- map[string]any{"type": change, "object": object}
}

func node(name, cpu, pods string) *corev1.Node {
	return &corev1.Node{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Node"}, ObjectMeta: metav1.ObjectMeta{Name: name, ResourceVersion: "2"},
		Status: corev1.NodeStatus{Allocatable: corev1.ResourceList{"cpu": resource.MustParse(cpu), "memory": resource.MustParse("64Gi"), "pods": resource.MustParse(pods)}},
	}
}

func podOn(name, node, cpu string) *corev1.Pod {
	return &corev1.Pod{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"}, ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, ResourceVersion: "2"},
		Spec: corev1.PodSpec{NodeName: node, Containers: []corev1.Container{{Resources: corev1.ResourceRequirements{
			Requests: corev1.ResourceList{"cpu": resource.MustParse(cpu)},
		}}}},
	}
}

// eventually waits until a condition holds.
func eventually(t testing.TB, what string, holds func() bool) {
	t.Helper()
	for range 12_000 {
		if holds() {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Fatalf("%s: not within 2 minutes", what)
}

// start serves estimates about a member until the test ends and returns its server and address.
func start(t testing.TB, a *api, o *Options) (*server, string) {
	t.Helper()
	name := cmp.Or(o.ClusterName, "m1")
	m, err := access.NewMember(name, &rest.Config{Host: a.URL, QPS: -1}, nil)
	if err != nil {
		t.Fatal(err)
	}
	c := newCluster(m, true)
	options, err := serverOptions(o)
	if err != nil {
		t.Fatal(err)
	}
	s := &server{
		clusterName: name, cluster: c, overcommit: true, slots: make(chan struct{}, o.parallelism()),
		clock: clock.RealClock{}, metrics: newMetrics(prometheus.NewRegistry()), log: logr.Discard(),
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	wg.Go(func() { c.run(t.Context()) })
	wg.Go(func() {
		if err := serve(t.Context(), listener, s, options); err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(wg.Wait)
	return s, listener.Addr().String()
}

// dial returns a client of a server.
func dial(t *testing.T, address string, options ...grpc.DialOption) pb.EstimatorClient {
	t.Helper()
	if len(options) == 0 {
		options = []grpc.DialOption{grpc.WithTransportCredentials(insecure.NewCredentials())}
	}
	conn, err := grpc.NewClient(address, options...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return pb.NewEstimatorClient(conn)
}

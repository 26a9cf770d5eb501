// Command estimates measures an estimator as a process: the resident memory with 1,000 nodes and 30,000 pods, and the
// time of answers to 500 requests a second while 200 pods a second change.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/karmada-toolkit/karmada/hack/bench"
	workv1alpha2 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha2"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/estimator/pb"
)

const nodes, pods = 1000, 30_000

func main() {
	program := flag.String("karmada", "bin/karmada", "Path of the program.")
	flag.Parse()
	bench.Exit(run(*program))
}

func run(program string) error {
	api := httptest.NewServer(http.HandlerFunc(serve))
	defer api.Close()
	defer api.CloseClientConnections()
	dir, err := os.MkdirTemp("", "estimates")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir) //nolint:errcheck // a temporary directory
	kubeconfig := filepath.Join(dir, "kubeconfig")
	text := `{"apiVersion":"v1","kind":"Config","clusters":[{"name":"m","cluster":{"server":"` + api.URL + `"}}],"contexts":[{"name":"m","context":{"cluster":"m"}}],"current-context":"m"}`
	if err := os.WriteFile(kubeconfig, []byte(text), 0o600); err != nil {
		return err
	}
	port, err := freePort()
	if err != nil {
		return err
	}
	cmd := exec.Command(program, "scheduler-estimator", "--kubeconfig="+kubeconfig, "--cluster-name=m", "--bind-address=127.0.0.1",
		"--server-port="+port, "--health-probe-bind-address=0", "--metrics-bind-address=0")
	if err := cmd.Start(); err != nil {
		return err
	}
	defer func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	}()
	conn, err := grpc.NewClient("127.0.0.1:"+port, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return err
	}
	defer conn.Close() //nolint:errcheck // the program ends
	return measure(pb.NewEstimatorClient(conn), cmd.Process.Pid)
}

func measure(c pb.EstimatorClient, pid int) error {
	r, err := pb.FromReplicaRequirements(&workv1alpha2.ReplicaRequirements{ResourceRequest: corev1.ResourceList{
		"cpu": resource.MustParse("1"), "memory": resource.MustParse("1Gi"),
	}})
	if err != nil {
		return err
	}
	request := &pb.MaxAvailableReplicasRequest{Cluster: "m", ReplicaRequirements: r}
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	if err := bench.Poll(ctx, 100*time.Millisecond, func() error {
		answer, err := c.MaxAvailableReplicas(ctx, request)
		if err == nil {
			fmt.Printf("%d replicas fit\n", answer.MaxReplicas)
		}
		return err
	}); err != nil {
		return err
	}
	time.Sleep(15 * time.Second)
	fmt.Printf("resident memory: %s\n", resident(pid))
	var mu sync.Mutex
	var took []time.Duration
	var failed int
	var wg sync.WaitGroup
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for range 5000 {
		<-tick.C
		wg.Go(func() {
			from := time.Now()
			_, err := c.MaxAvailableReplicas(ctx, request)
			mu.Lock()
			defer mu.Unlock()
			if took = append(took, time.Since(from)); err != nil {
				failed++
			}
		})
	}
	wg.Wait()
	fmt.Printf("500 requests/s, 200 pods/s: median %s, p99 %s, %d of %d failed\n", bench.Percentile(took, .5), bench.Percentile(took, .99), failed, len(took))
	fmt.Printf("resident memory: %s\n", resident(pid))
	return nil
}

func resident(pid int) string {
	data, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	for line := range strings.Lines(string(data)) {
		if value, ok := strings.CutPrefix(line, "VmRSS:"); ok {
			return strings.TrimSpace(value)
		}
	}
	return "unknown"
}

func freePort() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	_, port, err := net.SplitHostPort(l.Addr().String())
	return port, errors.Join(err, l.Close())
}

// serve is the API server of the member.
func serve(w http.ResponseWriter, r *http.Request) {
	name := filepath.Base(r.URL.Path)
	kind := map[string]string{"nodes": "Node", "pods": "Pod", "deployments": "Deployment", "replicasets": "ReplicaSet"}[name]
	total := map[string]int{"nodes": nodes, "pods": pods}[name]
	item := map[string]func(int) any{"nodes": node, "pods": pod}[name]
	w.Header().Set("Content-Type", "application/json")
	query := r.URL.Query()
	if query.Get("watch") != "" {
		watch(w, r, name)
		return
	}
	from, _ := strconv.Atoi(query.Get("continue"))
	to, next := total, ""
	if limit, _ := strconv.Atoi(query.Get("limit")); limit > 0 && from+limit < total {
		to = from + limit
		next = strconv.Itoa(to)
	}
	items := []any{}
	for i := from; i < to; i++ {
		items = append(items, item(i))
	}
	group := strings.TrimPrefix(strings.TrimPrefix(filepath.Dir(r.URL.Path), "/apis/"), "/api/")
	_ = json.NewEncoder(w).Encode(map[string]any{"kind": kind + "List", "apiVersion": group, "metadata": map[string]any{"resourceVersion": "1", "continue": next}, "items": items})
}

// watch reports 200 changed pods a second.
func watch(w http.ResponseWriter, r *http.Request, name string) {
	w.WriteHeader(http.StatusOK)
	_ = http.NewResponseController(w).Flush()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for i := 0; ; i++ {
		select {
		case <-r.Context().Done():
			return
		case <-tick.C:
		}
		if name == "pods" {
			change := []string{"DELETED", "ADDED"}[i%2]
			_ = json.NewEncoder(w).Encode(map[string]any{"type": change, "object": pod(i / 2 % pods)})
			_ = http.NewResponseController(w).Flush()
		}
	}
}

func node(i int) any {
	name := fmt.Sprintf("node-%04d", i)
	return map[string]any{
		"kind": "Node", "apiVersion": "v1",
		"metadata": map[string]any{"name": name, "resourceVersion": "1", "labels": map[string]any{
			"kubernetes.io/hostname": name, "kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64", "topology.kubernetes.io/zone": fmt.Sprint("zone-", i%3),
		}},
		"status": map[string]any{"allocatable": map[string]any{"cpu": "63500m", "memory": "250Gi", "ephemeral-storage": "400Gi", "pods": "110"}},
	}
}

func pod(i int) any {
	container := map[string]any{"name": "c", "image": "registry.example.com/app:1", "resources": map[string]any{"requests": map[string]any{"cpu": fmt.Sprintf("%dm", 100+i%900), "memory": "1Gi"}}}
	return map[string]any{
		"kind": "Pod", "apiVersion": "v1",
		"metadata": map[string]any{"namespace": fmt.Sprintf("ns-%d", i%100), "name": fmt.Sprintf("web-7d4b9c6f5-%05d", i), "resourceVersion": "1", "labels": map[string]any{"app": "web"}},
		"spec":     map[string]any{"nodeName": fmt.Sprintf("node-%04d", i%nodes), "containers": []any{container, container}},
		"status":   map[string]any{"phase": "Running"},
	}
}

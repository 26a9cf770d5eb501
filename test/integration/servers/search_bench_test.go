//go:build integration

package servers_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/karmada-toolkit/karmada/internal/kube"
	"github.com/karmada-toolkit/karmada/internal/testenv"
	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
	searchv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/search/v1alpha1"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/planetest"
	"github.com/karmada-toolkit/karmada/pkg/member/access/accesstest"
)

const (
	searchBenchPods = 2000 // of each of the first 5 members
	benchConfigMaps = 5000 // of each of 20 members
	benchEvents     = 300
	benchWatchers   = 100
)

// searchBench is a control plane and the role search as a process.
type searchBench struct {
	*testing.B
	plane   *testenv.Cluster
	port    int
	http    *http.Client
	url     string
	members []*accesstest.Server
}

// BenchmarkSearch measures the role as a process, with members in the process of the benchmark.
func BenchmarkSearch(b *testing.B) {
	f := &searchBench{B: b, plane: testenv.Start(b, testenv.ControlPlane())}
	c, err := client.New(f.plane.Config, client.Options{Scheme: kube.NewScheme()})
	if err != nil {
		b.Fatal(err)
	}
	planetest.InstallClusters(b, c)
	if err := c.Create(b.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: clusterv1alpha1.NamespaceKarmadaSystem}}); err != nil {
		b.Fatal(err)
	}
	for i := range 20 {
		f.members = append(f.members, searchJoin(b, c, fmt.Sprintf("m%02d", i)))
	}
	for _, m := range f.members[:5] {
		for i := range searchBenchPods {
			f.put(m, fmt.Sprintf("team-%d", i%10), fmt.Sprintf("web-%05d", i), i)
		}
	}
	config := rest.CopyConfig(f.plane.Config)
	config.DisableCompression = true
	if f.http, err = rest.HTTPClientFor(config); err != nil {
		b.Fatal(err)
	}
	f.url = f.plane.Config.Host + "/apis/search.karmada.io/v1alpha1/proxying/karmada/proxy/api/v1/"
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	f.port = listener.Addr().(*net.TCPAddr).Port
	_ = listener.Close()
	role := f.start()
	expose(b, c, int32(f.port))
	registries := searchClient(b, f.plane.Config, "").SearchV1alpha1().ResourceRegistries()
	time.Sleep(20 * time.Second) // until unused memory of the start is returned
	before := f.resident(role.Pid)
	if _, err := registries.Create(b.Context(), podRegistry(), metav1.CreateOptions{}); err != nil {
		b.Fatal(err)
	}
	f.complete("pods")
	if data, err := benchPod("team-1", "web-00001", 1).MarshalJSON(); err == nil {
		b.ReportMetric(float64(len(data)), "B-pod")
	}
	time.Sleep(time.Minute)
	b.ReportMetric(f.resident(role.Pid)-before, "MB-10000-pods")
	b.ReportMetric(medianTime(5, func() time.Duration { return f.list("pods") }), "ms-list")
	b.ReportMetric(medianTime(5, func() time.Duration { return f.list("pods?limit=500") }), "ms-list-in-pages")
	b.ReportMetric(f.latency(), "ms-event-p99")
	b.ReportMetric(f.watched(role.Pid), "cores-100-watchers")
	for _, m := range f.members {
		for i := range benchConfigMaps {
			m.Put(fmt.Sprintf("/api/v1/namespaces/team-%d/configmaps/c-%05d", i%10, i), benchConfigMap(i))
		}
	}
	more := podRegistry()
	more.Name, more.Spec.ResourceSelectors = "configmaps", []searchv1alpha1.ResourceSelector{{APIVersion: "v1", Kind: "ConfigMap"}}
	if _, err := registries.Create(b.Context(), more, metav1.CreateOptions{}); err != nil {
		b.Fatal(err)
	}
	f.complete("configmaps")
	_ = role.Kill()
	_, _ = role.Wait()
	from := time.Now()
	f.start()
	f.complete("configmaps")
	b.ReportMetric(time.Since(from).Seconds(), "s-start-100000")
	b.ReportMetric(0, "ns/op")
}

func (f *searchBench) put(member *accesstest.Server, namespace, name string, i int) {
	member.Put("/api/v1/namespaces/"+namespace+"/pods/"+name, benchPod(namespace, name, i))
}

// start runs the role.
func (f *searchBench) start() *os.Process {
	role := exec.Command(testenv.Binary(f, "karmada"), "search", "--kubeconfig", f.plane.Kubeconfig, "--authentication-kubeconfig", f.plane.Kubeconfig,
		"--authorization-kubeconfig", f.plane.Kubeconfig, "--bind-address=127.0.0.1", "--secure-port="+strconv.Itoa(f.port), "--etcd-servers="+f.plane.Info.Etcd,
		"--cert-dir="+f.TempDir(), "--metrics-bind-address=0")
	role.Stderr = os.Stderr
	if err := role.Start(); err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { _ = role.Process.Kill() })
	return role.Process
}

// get starts a request.
func (f *searchBench) get(ctx context.Context, path string) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, f.url+path, nil)
	if err != nil {
		return nil, err
	}
	resp, err := f.http.Do(req)
	if err == nil && resp.StatusCode != http.StatusOK {
		data, _ := io.ReadAll(io.LimitReader(resp.Body, 1<<10))
		_ = resp.Body.Close()
		err = fmt.Errorf("%s: %s: %s", path, resp.Status, data)
	}
	return resp, err
}

// complete waits until a list has the objects of all clusters.
func (f *searchBench) complete(resource string) {
	f.Helper()
	testenv.Eventually(f, 2*time.Minute, func(ctx context.Context) error {
		resp, err := f.get(ctx, resource+"?limit=1&strict=true")
		if err != nil {
			return err
		}
		return resp.Body.Close()
	})
}

// list reads a list whole, page by page.
func (f *searchBench) list(path string) time.Duration {
	from := time.Now()
	for next := path; next != ""; {
		resp, err := f.get(f.Context(), next)
		if err != nil {
			f.Fatal(err)
		}
		data, err := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		if err != nil {
			f.Fatal(err)
		}
		next = ""
		head := string(data[:min(len(data), 4000)])
		if _, rest, ok := strings.Cut(head, `"continue":"`); ok {
			token, _, _ := strings.Cut(rest, `"`)
			next = path + "&continue=" + token
		}
	}
	return time.Since(from)
}

// watch reads events until the test ends, and calls fn with each line.
func (f *searchBench) watch(fn func(line string)) {
	f.Helper()
	resp, err := f.get(f.Context(), "pods?watch=true&resourceVersion=0&fieldSelector=metadata.namespace%3Dbench")
	if err != nil {
		f.Fatal(err)
	}
	go func() {
		defer resp.Body.Close() //nolint:errcheck // the benchmark ended
		lines := bufio.NewReaderSize(resp.Body, 64<<10)
		for {
			line, err := lines.ReadString('\n')
			if err != nil {
				return
			}
			fn(line)
		}
	}()
}

// latency returns the 99th percentile of the time from a change in a member to the event of a watch, in ms.
func (f *searchBench) latency() float64 {
	arrived := make(chan struct{}, benchEvents)
	f.watch(func(line string) {
		if strings.Contains(line, `"type":"ADDED"`) {
			arrived <- struct{}{}
		}
	})
	times := make([]time.Duration, 0, benchEvents)
	for i := range benchEvents {
		from := time.Now()
		f.put(f.members[i%5], "bench", fmt.Sprintf("event-%d", i), i)
		<-arrived
		times = append(times, time.Since(from))
	}
	slices.Sort(times)
	return float64(times[len(times)*99/100].Microseconds()) / 1000
}

// watched returns the processor time of the role with 100 watches and 100 changes a second, in cores.
func (f *searchBench) watched(pid int) float64 {
	var events atomic.Int64
	for range benchWatchers {
		f.watch(func(string) { events.Add(1) })
	}
	time.Sleep(3 * time.Second)
	from, used := time.Now(), f.used(pid)
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for i := range 1000 {
		<-tick.C
		f.put(f.members[i%5], "bench", fmt.Sprintf("event-%d", i%benchEvents), i)
	}
	f.ReportMetric(float64(events.Load())/benchWatchers, "events-each")
	return (f.used(pid) - used) / time.Since(from).Seconds()
}

// used returns the processor time of a process in seconds.
func (f *searchBench) used(pid int) float64 {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		f.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(data), ") ")
	fields := strings.Fields(rest)
	ticks := 0.0
	for _, field := range fields[11:13] {
		n, err := strconv.ParseFloat(field, 64)
		if err != nil {
			f.Fatal(err)
		}
		ticks += n
	}
	return ticks / 100
}

// resident returns the resident memory of a process in MB.
func (f *searchBench) resident(pid int) float64 {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		f.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(data), "VmRSS:")
	kb, err := strconv.ParseFloat(strings.Fields(rest)[0], 64)
	if err != nil {
		f.Fatal(err)
	}
	return kb / 1000
}

// medianTime returns the median of some runs in ms.
func medianTime(runs int, run func() time.Duration) float64 {
	times := make([]time.Duration, 0, runs)
	for range runs {
		times = append(times, run())
	}
	slices.Sort(times)
	return float64(times[runs/2].Microseconds()) / 1000
}

// benchPod returns a Pod of about 5 KB.
func benchPod(namespace, name string, i int) *unstructured.Unstructured {
	env := make([]any, 0, 4)
	for n := range 4 {
		var value strings.Builder
		for m := range 12 {
			fmt.Fprintf(&value, "setting-%d=value-%x,", m, i*7919*(n+1)*(m+1))
		}
		env = append(env, map[string]any{"name": fmt.Sprintf("SETTINGS_%d", n), "value": value.String()})
	}
	container := func(name string) map[string]any {
		return map[string]any{
			"name": name, "image": "registry.example/team/" + name + ":1.2.3", "env": env, "imagePullPolicy": "IfNotPresent",
			"resources":     map[string]any{"requests": map[string]any{"cpu": "100m", "memory": "128Mi"}},
			"livenessProbe": map[string]any{"httpGet": map[string]any{"path": "/healthz", "port": int64(8080), "scheme": "HTTP"}, "periodSeconds": int64(10)},
		}
	}
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "Pod",
		"metadata": map[string]any{
			"namespace": namespace, "name": name,
			"labels":      map[string]any{"app": "web", "pod-template-hash": fmt.Sprintf("%x", i*31)},
			"annotations": map[string]any{"checksum/config": fmt.Sprintf("%064x", i*7919)},
		},
		"spec":   map[string]any{"nodeName": fmt.Sprintf("node-%d", i%100), "containers": []any{container("web"), container("proxy"), container("logs")}},
		"status": map[string]any{"phase": "Running", "podIP": fmt.Sprintf("10.0.%d.%d", i/250, i%250)},
	}}
}

// benchConfigMap returns a ConfigMap of about 2 KB.
func benchConfigMap(i int) *unstructured.Unstructured {
	data := map[string]any{}
	for n := range 20 {
		data[fmt.Sprintf("key-%d", n)] = fmt.Sprintf("%060x", (i+1)*7919*(n+1))
	}
	return &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{
		"namespace": fmt.Sprintf("team-%d", i%10), "name": fmt.Sprintf("c-%05d", i),
	}, "data": data}}
}

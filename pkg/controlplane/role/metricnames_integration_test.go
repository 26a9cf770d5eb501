//go:build integration

package role

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/karmada-toolkit/karmada/internal/kube"
	"github.com/karmada-toolkit/karmada/internal/testenv"
	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
	"github.com/karmada-toolkit/karmada/pkg/apis/names"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/planetest"
)

// workQueue returns the metrics of queues.
func workQueue() []string {
	return []string{
		"workqueue_adds_total", "workqueue_depth", "workqueue_queue_duration_seconds", "workqueue_work_duration_seconds",
		"workqueue_unfinished_work_seconds", "workqueue_longest_running_processor_seconds", "workqueue_retries_total",
	}
}

// TestMetrics_NamesOfEachRole starts each role alone, in a process of its own, and compares the metrics that it serves
// while there is nothing to do with those of the contract.
func TestMetrics_NamesOfEachRole(t *testing.T) {
	cp := controlPlane(t)
	common := []string{"karmada_build_info", "karmada_certificate_not_after_seconds", "go_goroutines", "process_cpu_seconds_total"}
	requests := []string{"rest_client_requests_total"}
	elected := slices.Concat(workQueue(), requests, []string{"leader_election_master_status"})
	_, port, _ := net.SplitHostPort(freeAddress(t))
	serving := []string{"--secure-port=" + port, "--cert-dir=" + certDir(t, cp), "--tls-cert-file-name=apiserver.crt", "--tls-private-key-file-name=apiserver.key"}
	for _, tc := range []struct {
		role string
		args []string
		want []string
	}{
		{"controller-manager", nil, elected},
		{"scheduler", nil, slices.Concat(elected, []string{"scheduler_pending_bindings"})},
		{"descheduler", nil, elected},
		{"webhook", serving, []string{"certwatcher_read_certificate_total", "certwatcher_read_certificate_errors_total"}},
		{"scheduler-estimator", []string{"--cluster-name=m1", "--server-port=0"}, requests},
		{"agent", []string{"--cluster-name=m1", "--karmada-kubeconfig=" + cp.Kubeconfig}, slices.Concat(workQueue(), requests)},
	} {
		t.Run(tc.role, func(t *testing.T) {
			t.Parallel()
			address := freeAddress(t)
			args := append([]string{tc.role, "--kubeconfig=" + cp.Kubeconfig, "--metrics-bind-address=" + address, "--health-probe-bind-address=0"}, tc.args...)
			runRole(t, args)
			want := sets.New(slices.Concat(common, tc.want)...)
			testenv.Eventually(t, time.Minute, func(ctx context.Context) error {
				served, err := metricNames(ctx, "http://"+address+"/metrics")
				if err != nil {
					return err
				}
				if missing := want.Difference(served); missing.Len() > 0 {
					return fmt.Errorf("%s does not serve %v", tc.role, sets.List(missing))
				}
				return nil
			})
		})
	}
}

// controlPlane returns a control plane with CRDs and the cluster m1.
func controlPlane(t *testing.T) *testenv.Cluster {
	t.Helper()
	cp := testenv.Start(t, testenv.ControlPlane())
	c, err := client.New(cp.Config, client.Options{Scheme: kube.NewScheme()})
	if err != nil {
		t.Fatal(err)
	}
	planetest.Install(t, c)
	for _, obj := range []client.Object{
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "karmada-system"}},
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: names.ExecutionNamespace("m1")}},
		&clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "m1"}, Spec: clusterv1alpha1.ClusterSpec{SyncMode: clusterv1alpha1.Pull}},
	} {
		if err := c.Create(t.Context(), obj); err != nil {
			t.Fatal(err)
		}
	}
	return cp
}

// certDir returns a directory with the serving certificate of a cluster.
func certDir(t *testing.T, c *testenv.Cluster) string {
	t.Helper()
	found := ""
	err := filepath.WalkDir(c.DataDir, func(path string, _ os.DirEntry, err error) error {
		if filepath.Base(path) == "apiserver.crt" {
			found = filepath.Dir(path)
		}
		return err
	})
	if err != nil || found == "" {
		t.Fatalf("no certificate in %s: %v", c.DataDir, err)
	}
	return found
}

// taken are the addresses that freeAddress returned: the kernel may choose a port again that nothing listens on yet.
var taken sync.Map

// freeAddress returns an address that nothing listens on, each one once.
func freeAddress(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listener.Close() }()
	if _, again := taken.LoadOrStore(listener.Addr().String(), true); again {
		return freeAddress(t)
	}
	return listener.Addr().String()
}

// runRole runs the program until the test ends, and shows what it printed if the test failed.
func runRole(t *testing.T, args []string) {
	t.Helper()
	log, err := os.Create(filepath.Join(t.TempDir(), "log"))
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(testenv.Binary(t, "karmada"), args...)
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		if content, err := os.ReadFile(log.Name()); err == nil && t.Failed() {
			t.Logf("%v printed\n%s", args, content[max(0, len(content)-4096):])
		}
		_ = log.Close()
	})
}

// metricNames returns the names of the families that are served.
func metricNames(ctx context.Context, url string) (sets.Set[string], error) {
	text, err := metricsText(ctx, url)
	if err != nil {
		return nil, err
	}
	out := sets.New[string]()
	for line := range strings.Lines(text) {
		if name, found := strings.CutPrefix(line, "# TYPE "); found {
			out.Insert(strings.Fields(name)[0])
		}
	}
	return out, nil
}

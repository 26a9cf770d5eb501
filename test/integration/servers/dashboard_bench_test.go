//go:build integration

package servers_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"os/exec"
	"strings"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/karmada-toolkit/karmada/internal/kube"
	"github.com/karmada-toolkit/karmada/internal/testenv"
	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
	workv1alpha2 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha2"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/planetest"
)

const (
	dashboardWorkloads = 1000
	dashboardClusters  = 50
	dashboardUpdates   = 20
)

// BenchmarkDashboard measures the dashboard of 1,000 workloads that are in each of 50 clusters: the start of the command until the first page
// and until the workloads, a page, an update from the write of a binding until the page has it, and the resident memory of the process.
func BenchmarkDashboard(b *testing.B) {
	plane := testenv.Start(b, testenv.ControlPlane())
	cfg := rest.CopyConfig(plane.Config)
	cfg.QPS = -1
	c, err := client.New(cfg, client.Options{Scheme: kube.NewScheme()})
	if err != nil {
		b.Fatal(err)
	}
	planetest.Install(b, c)
	last := dashboardFederation(b, c)

	from := time.Now()
	command := exec.CommandContext(b.Context(), testenv.Binary(b, "karmadactl"), "dashboard", "--no-open", "--kubeconfig", plane.Kubeconfig)
	output, err := command.StderrPipe()
	if err != nil {
		b.Fatal(err)
	}
	if err := command.Start(); err != nil {
		b.Fatal(err)
	}
	defer func() {
		_ = command.Process.Kill()
		_ = command.Wait()
	}()
	jar, err := cookiejar.New(nil)
	if err != nil {
		b.Fatal(err)
	}
	browser := &http.Client{Jar: jar}
	get := func(url string) string {
		response, err := browser.Get(url)
		if err != nil {
			b.Fatal(err)
		}
		body, err := io.ReadAll(response.Body)
		if err := errors.Join(err, response.Body.Close()); err != nil || response.StatusCode != http.StatusOK {
			b.Fatal(response.Status, err)
		}
		return string(body)
	}
	address := ""
	for lines := bufio.NewScanner(output); lines.Scan() && address == ""; {
		_, address, _ = strings.Cut(lines.Text(), " is at ")
	}
	base, _, _ := strings.Cut(address, "?")
	get(address)
	get(base)
	b.ReportMetric(float64(time.Since(from).Milliseconds()), "ms-start-to-page")
	for !strings.Contains(get(base), fmt.Sprint(dashboardWorkloads)+" workloads") {
		time.Sleep(50 * time.Millisecond)
	}
	b.ReportMetric(float64(time.Since(from).Milliseconds()), "ms-start-to-workloads")
	from = time.Now()
	get(base)
	b.ReportMetric(float64(time.Since(from).Milliseconds()), "ms-page")

	updates := make(chan struct{}, 1000)
	go func() {
		response, err := browser.Get(base + "events")
		if err != nil {
			return
		}
		defer func() { _ = response.Body.Close() }()
		for lines := bufio.NewScanner(response.Body); lines.Scan(); {
			if lines.Text() == "event: update" {
				updates <- struct{}{}
			}
		}
	}()
	var all, most time.Duration
	for i := range dashboardUpdates {
		time.Sleep(time.Second) // an update after another one waits for its turn
		status := fmt.Sprintf(`{"readyReplicas":%d}`, 100+i)
		last.Status.AggregatedStatus[0].Status = &runtime.RawExtension{Raw: []byte(status)}
		from := time.Now()
		if err := c.Status().Update(b.Context(), last); err != nil {
			b.Fatal(err)
		}
		for want := fmt.Sprintf("%d/2", 100+i); !strings.Contains(get(base+"?q="+last.Spec.Resource.Name), want); {
			<-updates
		}
		all, most = all+time.Since(from), max(most, time.Since(from))
	}
	b.ReportMetric(float64(all.Milliseconds())/dashboardUpdates, "ms-update")
	b.ReportMetric(float64(most.Milliseconds()), "ms-update-max")
	b.ReportMetric(resident(b, command.Process.Pid), "MB")
	b.ReportMetric(0, "ns/op")
}

// dashboardFederation creates clusters and bindings with what the control plane reports of them, and returns the last binding.
func dashboardFederation(b *testing.B, c client.Client) *workv1alpha2.ResourceBinding {
	b.Helper()
	var targets []workv1alpha2.TargetCluster
	var items []workv1alpha2.AggregatedStatusItem
	for i := range dashboardClusters {
		cluster := &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("member%02d", i)}, Spec: clusterv1alpha1.ClusterSpec{SyncMode: clusterv1alpha1.Push}}
		if err := c.Create(b.Context(), cluster); err != nil {
			b.Fatal(err)
		}
		cluster.Status.Conditions = []metav1.Condition{{Type: clusterv1alpha1.ClusterConditionReady, Status: metav1.ConditionTrue, Reason: "ClusterReady", LastTransitionTime: metav1.Now()}}
		if err := c.Status().Update(b.Context(), cluster); err != nil {
			b.Fatal(err)
		}
		targets = append(targets, workv1alpha2.TargetCluster{Name: cluster.Name, Replicas: 2})
		items = append(items, workv1alpha2.AggregatedStatusItem{
			ClusterName: cluster.Name, Applied: true, Health: workv1alpha2.ResourceHealthy, Status: &runtime.RawExtension{Raw: []byte(
				`{"availableReplicas":2,"generation":1,"observedGeneration":1,"readyReplicas":2,"replicas":2,"resourceTemplateGeneration":1,"updatedReplicas":2}`)},
		})
	}
	if err := c.Create(b.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "bench"}}); err != nil {
		b.Fatal(err)
	}
	var last *workv1alpha2.ResourceBinding
	var group errgroup.Group
	group.SetLimit(16)
	for i := range dashboardWorkloads {
		binding := &workv1alpha2.ResourceBinding{ObjectMeta: metav1.ObjectMeta{Namespace: "bench", Name: fmt.Sprintf("web-%04d-deployment", i)}}
		binding.Spec.Resource = workv1alpha2.ObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "bench", Name: fmt.Sprintf("web-%04d", i)}
		binding.Spec.Replicas, binding.Spec.Clusters = 2, targets
		last = binding
		group.Go(func() error { return dashboardBinding(b.Context(), c, binding, items) })
	}
	if err := group.Wait(); err != nil {
		b.Fatal(err)
	}
	return last
}

func dashboardBinding(ctx context.Context, c client.Client, binding *workv1alpha2.ResourceBinding, items []workv1alpha2.AggregatedStatusItem) error {
	if err := c.Create(ctx, binding); err != nil {
		return err
	}
	binding.Status.AggregatedStatus = append([]workv1alpha2.AggregatedStatusItem(nil), items...)
	return c.Status().Update(ctx, binding)
}

// Evictions measures how long many workloads take to leave a cluster that is dead: it creates Deployments in one member,
// kills the process of the member, taints its Cluster with NoExecute, and prints times and API writes for each binding.
//
//	karmadactl local up --members 2 --feature-gates Failover=true \
//	  --set controller-manager.enable-no-execute-taint-eviction=true --set controller-manager.resource-eviction-rate=10000
//	go run ./hack/evictions --kubeconfig $(karmadactl local kubeconfig) --pid PID
package main

import (
	"bufio"
	"bytes"
	"context"
	"flag"
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/karmada-toolkit/karmada/hack/bench"
	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
	policyv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/policy/v1alpha1"
	workv1alpha2 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha2"
)

const namespace = "evictions"

type eviction struct {
	client   client.WithWatch
	plane    *kubernetes.Clientset
	from     string
	bindings int
	pid      int
	// cpu are processes whose CPU time is printed, by name.
	cpu map[string]int
}

func main() {
	var kubeconfig, name string
	var b eviction
	flag.StringVar(&kubeconfig, "kubeconfig", os.Getenv("KUBECONFIG"), "kubeconfig of the control plane")
	flag.StringVar(&name, "context", "karmada-apiserver", "context of the control plane")
	flag.StringVar(&b.from, "member", "member2", "cluster that dies")
	flag.IntVar(&b.pid, "pid", 0, "process of that cluster; without it the cluster is only tainted")
	flag.Func("cpu", "NAME=PID of a process whose CPU time is printed; may be repeated", b.addProcess)
	flag.IntVar(&b.bindings, "bindings", 500, "number of Deployments")
	flag.Parse()
	cfg, c, err := bench.Connect(kubeconfig, name)
	bench.Exit(err)
	b.client = c
	b.plane, err = kubernetes.NewForConfig(cfg)
	bench.Exit(err)
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Minute)
	defer cancel()
	bench.Exit(b.run(ctx))
}

func (b *eviction) addProcess(text string) error {
	name, pid, _ := strings.Cut(text, "=")
	n, err := strconv.Atoi(pid)
	if b.cpu == nil {
		b.cpu = map[string]int{}
	}
	b.cpu[name] = n
	return err
}

// used returns the CPU time of the processes.
func (b *eviction) used() map[string]time.Duration {
	out := map[string]time.Duration{}
	for name, pid := range b.cpu {
		data, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		fields := strings.Fields(string(data[bytes.LastIndexByte(data, ')')+1:]))
		if len(fields) < 13 {
			continue
		}
		for _, ticks := range fields[11:13] { // user and system time, in hundredths of a second
			n, _ := strconv.Atoi(ticks)
			out[name] += time.Duration(n) * 10 * time.Millisecond
		}
	}
	return out
}

func total(used map[string]time.Duration) time.Duration {
	var sum time.Duration
	for _, d := range used {
		sum += d
	}
	return sum
}

func (b *eviction) run(ctx context.Context) error {
	defer func() {
		_ = b.plane.CoreV1().Namespaces().Delete(context.WithoutCancel(ctx), namespace, metav1.DeleteOptions{})
	}()
	before, err := b.ready(ctx)
	if err != nil {
		return err
	}
	began, used := time.Now(), b.used()
	if err := b.lose(ctx); err != nil {
		return err
	}
	if err := b.wait(ctx, "are evicted", func(x *workv1alpha2.ResourceBinding) bool { return !x.Spec.TargetContains(b.from) }); err != nil {
		return err
	}
	evicted := time.Since(began)
	if err := b.wait(ctx, "have another target", func(x *workv1alpha2.ResourceBinding) bool {
		return len(x.Spec.Clusters) > 0 && !x.Spec.TargetContains(b.from)
	}); err != nil {
		return err
	}
	moved, movedCPU := time.Since(began), total(b.used())-total(used)
	if err := b.wait(ctx, "are healthy", func(x *workv1alpha2.ResourceBinding) bool {
		return healthy(x) && len(x.Spec.GracefulEvictionTasks) == 0
	}); err != nil {
		return err
	}
	ended := time.Since(began)
	after, err := b.quiet(ctx)
	if err != nil {
		return err
	}
	fmt.Printf("%d bindings: evicted after %s, rescheduled after %s, evictions ended after %s\n", b.bindings,
		evicted.Round(10*time.Millisecond), moved.Round(10*time.Millisecond), ended.Round(10*time.Millisecond))
	printWrites(before, after, b.bindings)
	fmt.Printf("all processes: %s of CPU time until rescheduled\n", movedCPU)
	for name, after := range b.used() {
		fmt.Printf("%s: %s of CPU time\n", name, after-used[name])
	}
	return nil
}

// lose kills the cluster, if it is to be killed, and taints it.
func (b *eviction) lose(ctx context.Context) error {
	if b.pid != 0 {
		if err := syscall.Kill(b.pid, syscall.SIGKILL); err != nil {
			return fmt.Errorf("killing %s: %w", b.from, err)
		}
	}
	return b.taint(ctx, b.from, corev1.TaintEffectNoExecute, true)
}

// healthy reports whether a workload runs in all its targets.
func healthy(x *workv1alpha2.ResourceBinding) bool {
	for _, target := range x.Spec.Clusters {
		if !slices.ContainsFunc(x.Status.AggregatedStatus, func(s workv1alpha2.AggregatedStatusItem) bool {
			return s.ClusterName == target.Name && s.Health == workv1alpha2.ResourceHealthy
		}) {
			return false
		}
	}
	return len(x.Spec.Clusters) > 0
}

// prepare creates Deployments that only the cluster that will die can take.
func (b *eviction) prepare(ctx context.Context) error {
	if err := b.taintOthers(ctx, true); err != nil {
		return err
	}
	policy := &policyv1alpha1.PropagationPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "all"}}
	policy.Spec.ResourceSelectors = []policyv1alpha1.ResourceSelector{{APIVersion: "apps/v1", Kind: "Deployment"}}
	policy.Spec.Placement.ReplicaScheduling = &policyv1alpha1.ReplicaSchedulingStrategy{
		ReplicaSchedulingType: policyv1alpha1.ReplicaSchedulingTypeDivided, ReplicaDivisionPreference: policyv1alpha1.ReplicaDivisionPreferenceAggregated,
	}
	if err := b.client.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}); err != nil {
		return err
	}
	if err := b.client.Create(ctx, policy); err != nil {
		return err
	}
	var g errgroup.Group
	g.SetLimit(8)
	for i := range b.bindings {
		g.Go(func() error {
			labels := map[string]string{"app": "d" + strconv.Itoa(i)}
			d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: labels["app"]}}
			d.Spec.Replicas = new(int32(1))
			d.Spec.Selector = &metav1.LabelSelector{MatchLabels: labels}
			d.Spec.Template.Labels = labels
			d.Spec.Template.Spec.Containers = []corev1.Container{{Name: "c", Image: "nginx:1.27"}}
			return b.client.Create(ctx, d)
		})
	}
	return g.Wait()
}

// taintOthers adds or removes a taint that keeps workloads away from the clusters that stay.
func (b *eviction) taintOthers(ctx context.Context, add bool) error {
	list := &clusterv1alpha1.ClusterList{}
	if err := b.client.List(ctx, list); err != nil {
		return err
	}
	for i := range list.Items {
		if name := list.Items[i].Name; name != b.from {
			if err := b.taint(ctx, name, corev1.TaintEffectNoSchedule, add); err != nil {
				return err
			}
		}
	}
	return nil
}

func (b *eviction) taint(ctx context.Context, cluster string, effect corev1.TaintEffect, add bool) error {
	c := &clusterv1alpha1.Cluster{}
	if err := b.client.Get(ctx, client.ObjectKey{Name: cluster}, c); err != nil {
		return err
	}
	before := c.DeepCopy()
	c.Spec.Taints = slices.DeleteFunc(c.Spec.Taints, func(t corev1.Taint) bool { return t.Key == "bench" && t.Effect == effect })
	if add {
		c.Spec.Taints = append(c.Spec.Taints, corev1.Taint{Key: "bench", Effect: effect})
	}
	return b.client.Patch(ctx, c, client.MergeFrom(before))
}

// wait waits until all bindings fulfil a condition. It watches: reading all of them again and again would be a load.
func (b *eviction) wait(ctx context.Context, what string, holds func(*workv1alpha2.ResourceBinding) bool) error {
	list := &workv1alpha2.ResourceBindingList{}
	if err := b.client.List(ctx, list, client.InNamespace(namespace)); err != nil {
		return err
	}
	done := map[string]bool{}
	for i := range list.Items {
		done[list.Items[i].Name] = holds(&list.Items[i])
	}
	watching, err := b.client.Watch(ctx, &workv1alpha2.ResourceBindingList{}, client.InNamespace(namespace), &client.ListOptions{
		Raw: &metav1.ListOptions{ResourceVersion: list.ResourceVersion},
	})
	if err != nil {
		return err
	}
	defer watching.Stop()
	for {
		n := 0
		for _, yes := range done {
			if yes {
				n++
			}
		}
		if n == b.bindings {
			return nil
		}
		event, ok := <-watching.ResultChan()
		if !ok {
			return fmt.Errorf("%d of %d bindings %s: the watch ended", n, b.bindings, what)
		}
		if x, ok := event.Object.(*workv1alpha2.ResourceBinding); ok {
			done[x.Name] = holds(x)
		}
	}
}

// ready has the cluster that will die run all workloads and lets the others take them, and returns the number of writes
// until then.
func (b *eviction) ready(ctx context.Context) (map[string]int, error) {
	if err := b.prepare(ctx); err != nil {
		return nil, err
	}
	if err := b.wait(ctx, "are ready", func(x *workv1alpha2.ResourceBinding) bool { return x.Spec.TargetContains(b.from) && healthy(x) }); err != nil {
		return nil, err
	}
	if err := b.taintOthers(ctx, false); err != nil {
		return nil, err
	}
	return b.quiet(ctx)
}

// quiet waits until few writes happen, and returns how many there were.
func (b *eviction) quiet(ctx context.Context) (now map[string]int, err error) {
	last := -1
	err = bench.Poll(ctx, 5*time.Second, func() error {
		if now, err = b.writes(ctx); err != nil {
			return err
		}
		sum := 0
		for _, n := range now {
			sum += n
		}
		if before := last; before < 0 || sum-before > 5 {
			last = sum
			return fmt.Errorf("%d writes, and still some", sum)
		}
		return nil
	})
	return now, err
}

var counter = regexp.MustCompile(`^apiserver_request_total\{code="(\d+)".*resource="([^"]*)".*subresource="([^"]*)".*verb="([^"]*)".*\} (\S+)$`)

// writes returns the number of writes, without those of leases and reviews.
func (b *eviction) writes(ctx context.Context) (map[string]int, error) {
	data, err := b.plane.RESTClient().Get().AbsPath("/metrics").DoRaw(ctx)
	if err != nil {
		return nil, err
	}
	out := map[string]int{}
	lines := bufio.NewScanner(bytes.NewReader(data))
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		m := counter.FindStringSubmatch(lines.Text())
		if m == nil || !slices.Contains([]string{"POST", "PUT", "PATCH", "APPLY", "DELETE"}, m[4]) ||
			slices.Contains([]string{"leases", "tokenreviews", "subjectaccessreviews"}, m[2]) {
			continue
		}
		n, err := strconv.ParseFloat(m[5], 64)
		if err != nil {
			return nil, err
		}
		what := strings.TrimSuffix(m[4]+" "+m[2]+"/"+m[3], "/")
		if !strings.HasPrefix(m[1], "2") {
			what += " (answered " + m[1] + ")"
		}
		out[what] += int(n)
	}
	return out, lines.Err()
}

// printWrites prints the writes of each binding between two counts.
func printWrites(before, after map[string]int, bindings int) {
	total := 0
	for _, what := range slices.Sorted(maps.Keys(after)) {
		if n := after[what] - before[what]; n > bindings/50 {
			fmt.Printf("%-40s %.2f for each binding\n", what, float64(n)/float64(bindings))
			if !strings.HasSuffix(what, " events") && !strings.HasSuffix(what, ")") {
				total += n
			}
		}
	}
	fmt.Printf("%-40s %.2f for each binding\n", "writes without events", float64(total)/float64(bindings))
}

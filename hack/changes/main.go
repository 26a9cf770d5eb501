// Changes measures how long a change of a template takes to be in a member: it
// changes ConfigMaps of the control plane at a steady rate, watches the member, and
// prints percentiles.
//
//	go run ./hack/changes --kubeconfig $(karmadactl local kubeconfig) --member member2
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"slices"
	"strconv"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	policyv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/policy/v1alpha1"
)

type settings struct {
	kubeconfig, plane, member, namespace string
	rate, objects                        int
	lasts                                time.Duration
}

func main() {
	var s settings
	flag.StringVar(&s.kubeconfig, "kubeconfig", os.Getenv("KUBECONFIG"), "kubeconfig with contexts of the control plane and the member")
	flag.StringVar(&s.plane, "context", "karmada-apiserver", "context of the control plane")
	flag.StringVar(&s.member, "member", "member1", "context and name of the member")
	flag.StringVar(&s.namespace, "namespace", "changes", "namespace that is made for it")
	flag.IntVar(&s.rate, "rate", 50, "changes a second")
	flag.IntVar(&s.objects, "objects", 100, "ConfigMaps that are changed in turn")
	flag.DurationVar(&s.lasts, "for", 20*time.Second, "how long")
	flag.Parse()
	if err := run(context.Background(), s); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, s settings) error {
	cfg, plane, err := connect(s.kubeconfig, s.plane)
	if err != nil {
		return err
	}
	_, member, err := connect(s.kubeconfig, s.member)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, s.lasts+2*time.Minute)
	defer cancel()
	if err := prepare(ctx, s, cfg, plane); err != nil {
		return err
	}
	defer func() {
		_ = plane.CoreV1().Namespaces().Delete(context.WithoutCancel(ctx), s.namespace, metav1.DeleteOptions{})
	}()
	b := &board{sent: map[string]time.Time{}}
	go b.watch(ctx, member, s.namespace)
	if err := b.await(ctx, s.objects); err != nil {
		return fmt.Errorf("waiting for %d ConfigMaps in %s: %w", s.objects, s.member, err)
	}
	n := b.change(ctx, s, plane)
	_ = b.await(ctx, s.objects+n)
	b.print(s, n)
	return nil
}

func connect(kubeconfig, name string) (*rest.Config, *kubernetes.Clientset, error) {
	cfg, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(&clientcmd.ClientConfigLoadingRules{ExplicitPath: kubeconfig},
		&clientcmd.ConfigOverrides{CurrentContext: name}).ClientConfig()
	if err != nil {
		return nil, nil, fmt.Errorf("reading context %s: %w", name, err)
	}
	cfg.QPS = -1
	c, err := kubernetes.NewForConfig(cfg)
	return cfg, c, err
}

// prepare makes the policy and the objects.
func prepare(ctx context.Context, s settings, cfg *rest.Config, plane *kubernetes.Clientset) error {
	_, err := plane.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: s.namespace}}, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	c, err := client.New(cfg, client.Options{})
	if err != nil {
		return err
	}
	if err := policyv1alpha1.AddToScheme(c.Scheme()); err != nil {
		return err
	}
	policy := &policyv1alpha1.PropagationPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "all"}}
	policy.Spec.ResourceSelectors = []policyv1alpha1.ResourceSelector{{APIVersion: "v1", Kind: "ConfigMap", LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"bench": "changes"}}}}
	policy.Spec.Placement.ClusterAffinity = &policyv1alpha1.ClusterAffinity{ClusterNames: []string{s.member}}
	if err := c.Create(ctx, policy); err != nil {
		return err
	}
	for i := range s.objects {
		cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "c" + strconv.Itoa(i), Labels: map[string]string{"bench": "changes"}}, Data: map[string]string{"seq": "first-" + strconv.Itoa(i)}}
		if _, err := plane.CoreV1().ConfigMaps(s.namespace).Create(ctx, cm, metav1.CreateOptions{}); err != nil {
			return err
		}
	}
	return nil
}

// board records when each value was sent, and how long it took to arrive.
type board struct {
	mu    sync.Mutex
	sent  map[string]time.Time
	seen  map[string]bool
	took  []time.Duration
	count int
}

// watch records when values arrive in the member.
func (b *board) watch(ctx context.Context, member *kubernetes.Clientset, namespace string) {
	b.seen = map[string]bool{}
	for ctx.Err() == nil {
		w, err := member.CoreV1().ConfigMaps(namespace).Watch(ctx, metav1.ListOptions{LabelSelector: "bench=changes"})
		if err != nil {
			time.Sleep(100 * time.Millisecond)
			continue
		}
		for event := range w.ResultChan() {
			if cm, ok := event.Object.(*corev1.ConfigMap); ok && event.Type != "DELETED" {
				b.arrived(cm.Data["seq"])
			}
		}
	}
}

func (b *board) arrived(seq string) {
	now := time.Now()
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.seen[seq] {
		return
	}
	b.seen[seq] = true
	b.count++
	if at, ok := b.sent[seq]; ok {
		b.took = append(b.took, now.Sub(at))
	}
}

// await waits until n values have arrived, or nothing has for a while.
func (b *board) await(ctx context.Context, n int) error {
	last, since := -1, time.Now()
	for {
		b.mu.Lock()
		count := b.count
		b.mu.Unlock()
		switch {
		case count >= n:
			return nil
		case count != last:
			last, since = count, time.Now()
		case time.Since(since) > 30*time.Second:
			return fmt.Errorf("%d of %d arrived", count, n)
		}
		select {
		case <-ctx.Done():
			return errors.Join(ctx.Err(), fmt.Errorf("%d of %d arrived", count, n))
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// change changes one object after the other and returns how often it did.
func (b *board) change(ctx context.Context, s settings, plane *kubernetes.Clientset) int {
	tick := time.NewTicker(time.Second / time.Duration(s.rate))
	defer tick.Stop()
	n := int(s.lasts.Seconds() * float64(s.rate))
	var sending sync.WaitGroup
	failed := 0
	for i := range n {
		<-tick.C
		seq := "change-" + strconv.Itoa(i)
		sending.Go(func() {
			b.mu.Lock()
			b.sent[seq] = time.Now()
			b.mu.Unlock()
			_, err := plane.CoreV1().ConfigMaps(s.namespace).Patch(ctx, "c"+strconv.Itoa(i%s.objects), types.MergePatchType, []byte(`{"data":{"seq":"`+seq+`"}}`), metav1.PatchOptions{})
			if err != nil && !apierrors.IsConflict(err) {
				b.mu.Lock()
				failed++
				b.mu.Unlock()
			}
		})
	}
	sending.Wait()
	if failed > 0 {
		fmt.Printf("%d changes failed\n", failed)
	}
	return n - failed
}

func (b *board) print(s settings, n int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	slices.Sort(b.took)
	if len(b.took) == 0 {
		fmt.Println("nothing arrived")
		return
	}
	at := func(part float64) time.Duration {
		return b.took[min(len(b.took)-1, int(part*float64(len(b.took))))].Round(time.Millisecond)
	}
	fmt.Printf("%d changes of %d objects at %d a second to %s: p50 %s, p90 %s, p99 %s, longest %s (%d arrived by themselves, the others with a later one)\n",
		n, s.objects, s.rate, s.member, at(.5), at(.9), at(.99), at(1), len(b.took))
}

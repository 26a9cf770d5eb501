// Changes measures how long a change of a template takes to be in a member: it
// changes ConfigMaps of the control plane at a steady rate, watches the member, and
// prints percentiles.
//
//	go run ./hack/changes --kubeconfig $(karmadactl local kubeconfig) --member member2
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"strconv"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/karmada-toolkit/karmada/hack/bench"
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
	bench.Exit(run(context.Background(), s))
}

func run(ctx context.Context, s settings) error {
	_, plane, err := bench.Connect(s.kubeconfig, s.plane)
	if err != nil {
		return err
	}
	_, member, err := bench.Connect(s.kubeconfig, s.member)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, s.lasts+2*time.Minute)
	defer cancel()
	if err := prepare(ctx, s, plane); err != nil {
		return err
	}
	defer bench.Clean(ctx, plane, s.namespace)
	b := &board{sent: map[string]time.Time{}, seen: map[string]bool{}}
	go bench.Watch(ctx, member, &corev1.ConfigMapList{}, b.arrived, client.InNamespace(s.namespace), client.MatchingLabels{"bench": "changes"})
	if err := b.await(ctx, s.objects); err != nil {
		return fmt.Errorf("waiting for %d ConfigMaps in %s: %w", s.objects, s.member, err)
	}
	n := b.change(ctx, s, plane)
	_ = b.await(ctx, s.objects+n)
	b.print(s, n)
	return nil
}

// prepare makes the policy and the objects.
func prepare(ctx context.Context, s settings, plane client.Client) error {
	if err := bench.Prepare(ctx, plane, s.namespace, s.member, "changes"); err != nil {
		return err
	}
	for i := range s.objects {
		cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "c" + strconv.Itoa(i), Labels: map[string]string{"bench": "changes"}}, Data: map[string]string{"seq": "first-" + strconv.Itoa(i)}}
		if err := plane.Create(ctx, cm); err != nil {
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

// arrived records when a value arrives in the member.
func (b *board) arrived(obj client.Object) {
	now, seq := time.Now(), ""
	if cm, ok := obj.(*corev1.ConfigMap); ok {
		seq = cm.Data["seq"]
	}
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
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	last, since := -1, time.Now()
	return bench.Poll(ctx, 50*time.Millisecond, func() error {
		b.mu.Lock()
		defer b.mu.Unlock()
		switch {
		case b.count >= n:
			return nil
		case b.count != last:
			last, since = b.count, time.Now()
		case time.Since(since) > 30*time.Second:
			cancel()
		}
		return fmt.Errorf("%d of %d arrived", b.count, n)
	})
}

// change changes one object after the other and returns how often it did.
func (b *board) change(ctx context.Context, s settings, plane client.Client) int {
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
			cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "c" + strconv.Itoa(i%s.objects)}}
			err := plane.Patch(ctx, cm, client.RawPatch(types.MergePatchType, []byte(`{"data":{"seq":"`+seq+`"}}`)))
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
	if len(b.took) == 0 {
		fmt.Println("nothing arrived")
		return
	}
	at := func(part float64) time.Duration { return bench.Percentile(b.took, part).Round(time.Millisecond) }
	fmt.Printf("%d changes of %d objects at %d a second to %s: p50 %s, p90 %s, p99 %s, longest %s (%d arrived by themselves, the others with a later one)\n",
		n, s.objects, s.rate, s.member, at(.5), at(.9), at(.99), at(1), len(b.took))
}

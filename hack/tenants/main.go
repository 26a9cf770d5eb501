// Tenants measures how long the ConfigMap of one namespace takes to become a Work while
// another namespace floods the control plane: it creates ConfigMaps in the first at a
// slow rate, in rest and then during the flood, and prints percentiles of both.
//
//	go run ./hack/tenants --kubeconfig $(karmadactl local kubeconfig) --member member1
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/karmada-toolkit/karmada/hack/bench"
	"github.com/karmada-toolkit/karmada/internal/kube"
	"github.com/karmada-toolkit/karmada/pkg/apis/names"
	policyv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/policy/v1alpha1"
	workv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha1"
	workv1alpha2 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha2"
)

// The namespaces of the tenant that is measured and of the one that floods.
const (
	quiet = "tenants-quiet"
	flood = "tenants-flood"
)

type settings struct {
	kubeconfig, plane, member string
	samples, objects, rate    int
	size                      int
	interval                  time.Duration
}

func main() {
	var s settings
	flag.StringVar(&s.kubeconfig, "kubeconfig", os.Getenv("KUBECONFIG"), "kubeconfig with the context of the control plane")
	flag.StringVar(&s.plane, "context", "karmada-apiserver", "context of the control plane")
	flag.StringVar(&s.member, "member", "member1", "name of the member that the objects go to")
	flag.IntVar(&s.samples, "samples", 100, "ConfigMaps that are measured, in rest and during the flood")
	flag.DurationVar(&s.interval, "interval", 100*time.Millisecond, "time between two of them")
	flag.IntVar(&s.objects, "objects", 200, "ConfigMaps of the namespace that floods")
	flag.IntVar(&s.rate, "rate", 100, "changes a second of the namespace that floods")
	flag.IntVar(&s.size, "size", 0, "length of each of these ConfigMaps, in bytes")
	flag.Parse()
	bench.Exit(run(context.Background(), s))
}

func run(ctx context.Context, s settings) error {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Duration(s.samples)*s.interval+5*time.Minute)
	defer cancel()
	cfg, plane, err := bench.Connect(s.kubeconfig, s.plane)
	if err != nil {
		return err
	}
	users, err := tenants(cfg)
	if err != nil {
		return err
	}
	defer bench.Clean(ctx, plane, quiet, flood)
	for _, name := range []string{quiet, flood} {
		edit := &rbacv1.RoleBinding{
			ObjectMeta: metav1.ObjectMeta{Namespace: name, Name: "edit"},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "edit"},
			Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: name}},
		}
		if err := bench.Prepare(ctx, plane, name, s.member, "tenants", edit); err != nil {
			return err
		}
	}
	b := &board{created: map[string]time.Time{}}
	for i := range b.reached {
		b.reached[i] = map[string]time.Time{}
	}
	go bench.Watch(ctx, plane, &workv1alpha1.WorkList{}, b.works, client.InNamespace(names.ExecutionNamespace(s.member)))
	go bench.Watch(ctx, plane, &workv1alpha2.ResourceBindingList{}, b.bindings, client.InNamespace(quiet))
	go bench.Watch(ctx, plane, &corev1.ConfigMapList{}, b.templates, client.InNamespace(quiet))
	if _, err := b.measure(ctx, s, users[quiet], "warm", 10); err != nil {
		return err
	}
	rest, err := b.measure(ctx, s, users[quiet], "rest", s.samples)
	if err != nil {
		return err
	}
	stop := begin(ctx, s, users[flood])
	flooded, err := b.measure(ctx, s, users[quiet], "flooded", s.samples)
	changes := stop()
	if err != nil {
		return err
	}
	describe("in rest", rest)
	describe("during the flood", flooded)
	fmt.Printf("p99 until the Work, flood / rest: %.1f; %d changes of %d objects were made\n",
		float64(at(flooded[written], .99))/float64(at(rest[written], .99)), changes, s.objects)
	return nil
}

// tenants returns a client for each namespace, of a user who may edit that namespace only: an administrator's requests are
// exempt from priority and fairness.
func tenants(cfg *rest.Config) (map[string]client.Client, error) {
	out := map[string]client.Client{}
	for _, name := range []string{quiet, flood} {
		as := rest.CopyConfig(cfg)
		as.Impersonate = rest.ImpersonationConfig{UserName: name}
		c, err := client.New(as, client.Options{Scheme: kube.NewScheme()})
		if err != nil {
			return nil, err
		}
		out[name] = c
	}
	return out, nil
}

func configMap(namespace, name string) *corev1.ConfigMap {
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: map[string]string{"bench": "tenants"}},
		Data:       map[string]string{"seq": "first"},
	}
}

// The stages of an object, in order.
const (
	answered = iota
	claimed
	bound
	scheduled
	written
	stages
)

// board records when each ConfigMap was created, and when it reached each stage.
type board struct {
	mu      sync.Mutex
	created map[string]time.Time
	reached [stages]map[string]time.Time
}

func (b *board) mark(stage int, binding string) {
	now := time.Now()
	name := strings.TrimSuffix(binding, "-configmap")
	b.mu.Lock()
	defer b.mu.Unlock()
	if _, found := b.reached[stage][name]; !found {
		b.reached[stage][name] = now
	}
}

// works records when the Works of the quiet namespace are written.
func (b *board) works(obj client.Object) {
	if annotations := obj.GetAnnotations(); annotations[workv1alpha2.ResourceBindingNamespaceAnnotation] == quiet {
		b.mark(written, annotations[workv1alpha2.ResourceBindingNameAnnotation])
	}
}

// templates records when ConfigMaps are claimed by their policy.
func (b *board) templates(obj client.Object) {
	if obj.GetLabels()[policyv1alpha1.PropagationPolicyPermanentIDLabel] != "" {
		b.mark(claimed, obj.GetName())
	}
}

// bindings records when bindings are made and have a cluster.
func (b *board) bindings(obj client.Object) {
	b.mark(bound, obj.GetName())
	if binding, ok := obj.(*workv1alpha2.ResourceBinding); ok && len(binding.Spec.Clusters) > 0 {
		b.mark(scheduled, obj.GetName())
	}
}

// measure creates n ConfigMaps one after the other, and returns how long each took to become a Work, in order.
func (b *board) measure(ctx context.Context, s settings, plane client.Client, phase string, n int) ([stages][]time.Duration, error) {
	tick := time.NewTicker(s.interval)
	defer tick.Stop()
	for i := range n {
		<-tick.C
		name := phase + "-" + strconv.Itoa(i)
		b.mu.Lock()
		b.created[name] = time.Now()
		b.mu.Unlock()
		if err := plane.Create(ctx, configMap(quiet, name)); err != nil {
			return [stages][]time.Duration{}, fmt.Errorf("creating a ConfigMap: %w", err)
		}
		b.mark(answered, name)
	}
	took := [stages][]time.Duration{}
	err := bench.Poll(ctx, 50*time.Millisecond, func() error {
		if took = b.took(phase, n); len(took[written]) == n && len(took[scheduled]) == n && len(took[bound]) == n && len(took[claimed]) == n {
			return nil
		}
		return fmt.Errorf("%d of %d ConfigMaps became Works", len(took[written]), n)
	})
	return took, err
}

// took returns how long the ConfigMaps of a phase took to reach each stage, in order.
func (b *board) took(phase string, n int) (out [stages][]time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for stage := range out {
		for i := range n {
			name := phase + "-" + strconv.Itoa(i)
			if at, found := b.reached[stage][name]; found {
				out[stage] = append(out[stage], at.Sub(b.created[name]))
			}
		}
	}
	return out
}

// begin creates the objects of the other namespace and changes them in turn until stop is called, which returns how many
// changes were made.
func begin(ctx context.Context, s settings, plane client.Client) (stop func() int64) {
	ctx, cancel := context.WithCancel(ctx)
	var made atomic.Int64
	var sending sync.WaitGroup
	next := make(chan int)
	for range 16 {
		sending.Go(func() {
			for i := range next {
				cm := configMap(flood, "c"+strconv.Itoa(i%s.objects))
				cm.Data["filling"] = strings.Repeat("x", s.size)
				var err error
				if i < s.objects {
					err = plane.Create(ctx, cm)
				} else {
					err = plane.Patch(ctx, cm, client.RawPatch(types.MergePatchType, []byte(`{"data":{"seq":"`+strconv.Itoa(i)+`"}}`)))
				}
				if err == nil {
					made.Add(1)
				}
			}
		})
	}
	sending.Go(func() {
		defer close(next)
		tick := time.NewTicker(time.Second / time.Duration(s.rate))
		defer tick.Stop()
		for i := 0; ; i++ {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
			select {
			case <-ctx.Done():
				return
			case next <- i:
			}
		}
	})
	return func() int64 {
		cancel()
		sending.Wait()
		return made.Load()
	}
}

func at(took []time.Duration, part float64) time.Duration {
	return bench.Percentile(took, part).Round(time.Millisecond)
}

func describe(phase string, took [stages][]time.Duration) {
	fmt.Printf("%s, p50 / p99:", phase)
	for stage, name := range [stages]string{"request", "claim", "binding", "scheduled", "Work"} {
		fmt.Printf(" %s %s / %s", name, at(took[stage], .5), at(took[stage], .99))
	}
	fmt.Println()
}

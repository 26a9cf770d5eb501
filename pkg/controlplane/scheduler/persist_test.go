package scheduler

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/karmada-toolkit/karmada/internal/kube"
	"github.com/karmada-toolkit/karmada/internal/testenv"
	"github.com/karmada-toolkit/karmada/pkg/apis/crds"
	workv1alpha2 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha2"
	"github.com/karmada-toolkit/karmada/pkg/domain/scope"
)

// BenchmarkPersist queues 5000 bindings at once and measures how many of them are
// scheduled and written through a real API server each second, to 10 clusters.
func BenchmarkPersist(b *testing.B) {
	const bindings, clusters = 5000, 10
	ctrl.SetLogger(logr.Discard())
	env := testenv.Start(b, testenv.ControlPlane())
	c := bindingClient(b, env.Config)
	inParallel(bindings, func(i int) {
		obj := fill(&workv1alpha2.ResourceBinding{}, scope.NamespacedBinding(), dividedPlacement())
		obj.SetNamespace("default")
		obj.SetName(fmt.Sprintf("web-%04d", i))
		if err := c.Create(b.Context(), obj); err != nil {
			b.Error(err)
		}
	})
	for b.Loop() {
		s, err := newScheduler(NewOptions(), deps{
			client: c, live: c, events: record.NewFakeRecorder(10 * bindings), clock: clock.RealClock{}, metrics: newMetrics(prometheus.NewRegistry()),
		})
		if err != nil {
			b.Fatal(err)
		}
		for i := range clusters {
			s.observer.clusterChanged(cluster(fmt.Sprintf("m%02d", i), 1000000), true)
		}
		start := time.Now()
		runUntilScheduled(b, env.Config, s, bindings)
		b.ReportMetric(bindings/time.Since(start).Seconds(), "bindings/s")
	}
}

// bindingClient installs the kinds of bindings and returns a client.
func bindingClient(b *testing.B, cfg *rest.Config) client.Client {
	b.Helper()
	c, err := client.New(cfg, client.Options{Scheme: kube.NewScheme()})
	if err != nil {
		b.Fatal(err)
	}
	all, err := crds.All()
	if err != nil {
		b.Fatal(err)
	}
	for _, crd := range all {
		if crd.Spec.Group != workv1alpha2.GroupName || crd.Spec.Names.Kind == "Work" {
			continue
		}
		// Without the webhook that converts, there is one version.
		crd.Spec.Conversion = nil
		crd.Spec.Versions = slices.DeleteFunc(crd.Spec.Versions, func(v apiextensionsv1.CustomResourceDefinitionVersion) bool { return !v.Storage })
		if err := c.Create(b.Context(), crd); err != nil {
			b.Fatal(err)
		}
	}
	testenv.Eventually(b, 30*time.Second, func(ctx context.Context) error {
		return c.List(ctx, &workv1alpha2.ResourceBindingList{}, client.Limit(1))
	})
	return c
}

func inParallel(n int, do func(i int)) {
	var wg sync.WaitGroup
	next := make(chan int)
	for range 16 {
		wg.Go(func() {
			for i := range next {
				do(i)
			}
		})
	}
	for i := range n {
		next <- i
	}
	close(next)
	wg.Wait()
}

// runUntilScheduled runs the scheduler until that many bindings are scheduled.
func runUntilScheduled(b *testing.B, cfg *rest.Config, s *scheduler, want int) {
	b.Helper()
	ctx, cancel := context.WithCancel(b.Context())
	defer cancel()
	informers, err := cache.New(cfg, cache.Options{Scheme: kube.NewScheme(), DefaultTransform: cache.TransformStripManagedFields()})
	if err != nil {
		b.Fatal(err)
	}
	informer, err := informers.GetInformer(ctx, &workv1alpha2.ResourceBinding{}, cache.BlockUntilSynced(false))
	if err != nil {
		b.Fatal(err)
	}
	done := make(chan struct{})
	seen := map[string]bool{}
	_, err = informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{UpdateFunc: func(_, obj any) {
		rb := obj.(*workv1alpha2.ResourceBinding)
		if rb.Status.SchedulerObservedGeneration != rb.Generation || seen[rb.Name] {
			return
		}
		seen[rb.Name] = true
		if len(seen) == want {
			close(done)
		}
	}})
	if err != nil {
		b.Fatal(err)
	}
	go func() { _ = informers.Start(ctx) }()
	go func() {
		_ = (&runner{scheduler: s, workers: NewOptions().Workers, informers: informers, watches: []watch{{&workv1alpha2.ResourceBinding{}, s.observer.bindingHandler(scope.NamespacedBinding())}}}).Start(ctx)
	}()
	select {
	case <-done:
	case <-time.After(5 * time.Minute):
		b.Fatalf("%d of %d are scheduled", len(seen), want)
	}
}

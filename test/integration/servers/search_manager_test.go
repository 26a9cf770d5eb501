//go:build integration

// Covers pkg/controlplane/search.

package servers_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/karmada-toolkit/karmada/internal/kube"
	"github.com/karmada-toolkit/karmada/internal/testenv"
	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
)

// A manager of controller-runtime reads typed objects of all members, and writes them back.
func TestProxy_ControllerManager(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	skip := true
	f.config.ContentType = "application/json" // the stand-ins of members know nothing else
	mgr, err := ctrl.NewManager(f.config, manager.Options{
		Scheme: kube.NewScheme(), Metrics: metricsserver.Options{BindAddress: "0"}, Controller: config.Controller{SkipNameValidation: &skip},
		Cache: cache.Options{DefaultNamespaces: map[string]cache.Config{"other": {}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	clusters := map[string]string{}
	var failure error
	reconciler := reconcile.Func(func(ctx context.Context, r reconcile.Request) (reconcile.Result, error) {
		object := &corev1.ConfigMap{}
		err := mgr.GetClient().Get(ctx, r.NamespacedName, object)
		mu.Lock()
		defer mu.Unlock()
		if apierrors.IsNotFound(err) {
			delete(clusters, r.Name)
			return reconcile.Result{}, nil
		}
		if err != nil {
			return reconcile.Result{}, err
		}
		clusters[r.Name] = object.Annotations[clusterv1alpha1.CacheSourceAnnotation]
		if object.Data["seen"] == "yes" {
			return reconcile.Result{}, nil
		}
		object = object.DeepCopy()
		object.Data = map[string]string{"seen": "yes"}
		if failure = mgr.GetClient().Update(ctx, object); apierrors.IsConflict(failure) {
			return reconcile.Result{RequeueAfter: time.Millisecond}, nil
		}
		return reconcile.Result{}, failure
	})
	if err := ctrl.NewControllerManagedBy(mgr).Named("proxied").For(&corev1.ConfigMap{}).Complete(reconciler); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- mgr.Start(ctx) }()
	defer func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	}()
	wants := func(want map[string]string) {
		t.Helper()
		testenv.Eventually(t, time.Minute, func(context.Context) error {
			mu.Lock()
			defer mu.Unlock()
			if !maps.Equal(clusters, want) {
				return fmt.Errorf("reconciled %v, want %v", clusters, want)
			}
			for _, name := range slices.Sorted(maps.Keys(want)) {
				if o := f.members[want[name]].Get("/api/v1/namespaces/other/configmaps/" + name); o == nil || fmt.Sprint(o.Object["data"]) != "map[seen:yes]" {
					return fmt.Errorf("%s in %s is %v: %w", name, want[name], o, failure)
				}
			}
			return nil
		})
	}
	wants(map[string]string{"only-in-m1": "m1", "only-in-m2": "m2"})
	putConfigMap(f.members["m2"], "other", "new")
	wants(map[string]string{"only-in-m1": "m1", "only-in-m2": "m2", "new": "m2"})
	f.members["m1"].Remove("/api/v1/namespaces/other/configmaps/only-in-m1")
	wants(map[string]string{"only-in-m2": "m2", "new": "m2"})
}

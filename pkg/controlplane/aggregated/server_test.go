package aggregated

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
)

func pushCluster(name string) *clusterv1alpha1.Cluster {
	return &clusterv1alpha1.Cluster{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: clusterv1alpha1.ClusterSpec{
			SyncMode: clusterv1alpha1.Push, ID: "id-" + name, APIEndpoint: "https://127.0.0.1:6443",
		},
	}
}

func TestServer_StoresClusters(t *testing.T) {
	ctx := t.Context()
	dir := t.TempDir()
	etcd, stopEtcd := startEtcd(t, dir)
	home := newControlPlane(t)
	s := startServer(t, etcd, home, nil)
	clusters := s.client(t, "admin").ClusterV1alpha1().Clusters()

	events, err := clusters.Watch(ctx, metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer events.Stop()

	created, err := clusters.Create(ctx, pushCluster("m1"), metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if created.Generation != 1 || len(created.Spec.ResourceModels) != 9 {
		t.Errorf("created: generation %d, %d models", created.Generation, len(created.Spec.ResourceModels))
	}
	if e := <-events.ResultChan(); e.Type != watch.Added {
		t.Errorf("first event %v", e)
	}

	t.Run("the same id is refused under another name", func(t *testing.T) {
		again := pushCluster("m2")
		again.Spec.ID = "id-m1"
		if _, err := clusters.Create(ctx, again, metav1.CreateOptions{}); !apierrors.IsInvalid(err) {
			t.Errorf("got %v", err)
		}
	})
	t.Run("one of many requests gets an id", func(t *testing.T) {
		var admitted atomic.Int32
		var done sync.WaitGroup
		for i := range 16 {
			done.Go(func() {
				c := pushCluster(fmt.Sprintf("twin%d", i))
				c.Spec.ID = "twin"
				_, err := clusters.Create(ctx, c, metav1.CreateOptions{})
				switch {
				case err == nil:
					admitted.Add(1)
				case !apierrors.IsInvalid(err):
					t.Errorf("got %v", err)
				}
			})
		}
		done.Wait()
		if n := admitted.Load(); n != 1 {
			t.Errorf("%d clusters have the same id", n)
		}
	})
	t.Run("a status write changes nothing but the status", func(t *testing.T) {
		c := created.DeepCopy()
		c.Spec.APIEndpoint = "https://evil"
		c.Labels = map[string]string{"a": "b"}
		c.Status.KubernetesVersion = "v1.36.0"
		got, err := clusters.UpdateStatus(ctx, c, metav1.UpdateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(created.Spec, got.Spec); diff != "" || got.Labels != nil || got.Generation != 1 {
			t.Errorf("changed: %s, labels %v, generation %d", diff, got.Labels, got.Generation)
		}
		if got.Status.KubernetesVersion != "v1.36.0" {
			t.Errorf("status %+v", got.Status)
		}
	})
	t.Run("a change of the spec counts and keeps the status", func(t *testing.T) {
		patch := []byte(`{"spec":{"taints":[{"key":"k","effect":"NoExecute"}],"zone":"z1"},"status":{"kubernetesVersion":"x"}}`)
		got, err := clusters.Patch(ctx, "m1", types.MergePatchType, patch, metav1.PatchOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if got.Generation != 2 || got.Status.KubernetesVersion != "v1.36.0" || got.Spec.Taints[0].TimeAdded == nil || got.Spec.Zone != "" || len(got.Spec.Zones) != 1 {
			t.Errorf("got %+v", got)
		}
	})
	t.Run("server-side apply works", func(t *testing.T) {
		patch := []byte(`{"apiVersion":"cluster.karmada.io/v1alpha1","kind":"Cluster","metadata":{"name":"m1","labels":{"x":"y"}}}`)
		got, err := clusters.Patch(ctx, "m1", types.ApplyPatchType, patch, metav1.PatchOptions{FieldManager: "test"})
		if err != nil {
			t.Fatal(err)
		}
		if got.Labels["x"] != "y" || got.Generation != 2 {
			t.Errorf("labels %v, generation %d", got.Labels, got.Generation)
		}
	})
	t.Run("an unconditional update is taken", func(t *testing.T) {
		c := pushCluster("m1")
		c.Spec.Taints = []corev1.Taint{{Key: "k", Effect: corev1.TaintEffectNoSchedule}}
		got, err := clusters.Update(ctx, c, metav1.UpdateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if got.Generation != 3 || got.Spec.ResourceModels != nil {
			t.Errorf("generation %d, models %v", got.Generation, got.Spec.ResourceModels)
		}
	})
	t.Run("a bad cluster is refused", func(t *testing.T) {
		c := pushCluster("m3")
		c.Spec.SyncMode = "Sideways"
		if _, err := clusters.Create(ctx, c, metav1.CreateOptions{}); !apierrors.IsInvalid(err) {
			t.Errorf("got %v", err)
		}
		_, err := clusters.Update(ctx, pushCluster("m3"), metav1.UpdateOptions{})
		if !apierrors.IsNotFound(err) {
			t.Errorf("an update created a cluster: %v", err)
		}
	})
	t.Run("field selectors", func(t *testing.T) {
		got, err := clusters.List(ctx, metav1.ListOptions{FieldSelector: "metadata.name=m1"})
		if err != nil || len(got.Items) != 1 {
			t.Errorf("got %v, %v", got, err)
		}
		if _, err := clusters.List(ctx, metav1.ListOptions{FieldSelector: "spec.region=r"}); !apierrors.IsBadRequest(err) {
			t.Errorf("got %v", err)
		}
	})

	t.Run("a protected cluster is not deleted", func(t *testing.T) {
		protect := func(value string) {
			t.Helper()
			patch := []byte(`{"metadata":{"labels":{"resourcetemplate.karmada.io/deletion-protected":` + value + `}}}`)
			if _, err := clusters.Patch(ctx, "m1", types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
				t.Fatal(err)
			}
		}
		protect(`"Always"`)
		one := clusters.Delete(ctx, "m1", metav1.DeleteOptions{})
		all := clusters.DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{})
		if !apierrors.IsForbidden(one) || !apierrors.IsForbidden(all) {
			t.Errorf("got %v, %v", one, all)
		}
		protect("null")
	})

	before, err := clusters.Get(ctx, "m1", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.stop(); err != nil {
		t.Fatal(err)
	}
	stopEtcd()
	etcd, _ = startEtcd(t, dir)
	s = startServer(t, etcd, home, nil)
	clusters = s.client(t, "admin").ClusterV1alpha1().Clusters()
	after, err := clusters.Get(ctx, "m1", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(before, after); diff != "" {
		t.Errorf("a restart changed the cluster: %s", diff)
	}
	if err := clusters.Delete(ctx, "m1", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := clusters.Get(ctx, "m1", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("still there: %v", err)
	}
}

// The write that makes a cluster Ready is the one that makes it schedulable: no
// watcher observes one without the other.
func TestServer_ReadyAndSchedulableAreOneWrite(t *testing.T) {
	etcd, _ := startEtcd(t, t.TempDir())
	s := startServer(t, etcd, newControlPlane(t), nil)
	clusters := s.client(t, "admin").ClusterV1alpha1().Clusters()
	cluster := pushCluster("m1")
	cluster.Spec.Taints = []corev1.Taint{{Key: clusterv1alpha1.TaintClusterNotReady, Effect: corev1.TaintEffectNoSchedule}, {Key: "mine", Effect: corev1.TaintEffectNoSchedule}}
	created, err := clusters.Create(t.Context(), cluster, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	watcher, err := clusters.Watch(t.Context(), metav1.ListOptions{ResourceVersion: created.ResourceVersion})
	if err != nil {
		t.Fatal(err)
	}
	defer watcher.Stop()
	patch := `{"status":{"apiEnablements":[{"groupVersion":"v1","resources":[]}],"conditions":[{"type":"Ready","status":"True","reason":"ClusterReady","message":"","lastTransitionTime":"2026-01-01T00:00:00Z"}]}}`
	if _, err := clusters.Patch(t.Context(), "m1", types.MergePatchType, []byte(patch), metav1.PatchOptions{}, "status"); err != nil {
		t.Fatal(err)
	}
	got, ok := (<-watcher.ResultChan()).Object.(*clusterv1alpha1.Cluster)
	if !ok {
		t.Fatal("the watch ended")
	}
	if !meta.IsStatusConditionTrue(got.Status.Conditions, clusterv1alpha1.ClusterConditionReady) || len(got.Status.APIEnablements) != 1 ||
		len(got.Spec.Taints) != 1 || got.Spec.Taints[0].Key != "mine" || got.Generation != created.Generation+1 {
		t.Errorf("got generation %d, %+v, %+v", got.Generation, got.Spec.Taints, got.Status)
	}
}

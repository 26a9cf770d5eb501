package aggregated

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestServer_KeysAndFormat(t *testing.T) {
	etcd, _ := startEtcd(t, t.TempDir())
	s := startServer(t, etcd, newControlPlane(t), nil)
	if _, err := s.client(t, "admin").ClusterV1alpha1().Clusters().Create(t.Context(), pushCluster("m1"), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	c, err := clientv3.New(clientv3.Config{Endpoints: []string{etcd}})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	got, err := c.Get(t.Context(), "/registry/cluster.karmada.io/clusters/m1")
	if err != nil {
		t.Fatal(err)
	}
	const start = `{"kind":"Cluster","apiVersion":"cluster.karmada.io/v1alpha1","metadata":{"name":"m1"`
	if len(got.Kvs) != 1 || string(got.Kvs[0].Value[:len(start)]) != start {
		t.Errorf("got %v", got.Kvs)
	}
}

func TestServer_OneIDOneCluster(t *testing.T) {
	etcd, _ := startEtcd(t, t.TempDir())
	s := startServer(t, etcd, newControlPlane(t), nil)
	clusters := s.client(t, "admin").ClusterV1alpha1().Clusters()
	var created, refused atomic.Int32
	var wg sync.WaitGroup
	for i := range 20 {
		wg.Go(func() {
			c := pushCluster(fmt.Sprintf("m%d", i))
			c.Spec.ID = "same"
			_, err := clusters.Create(t.Context(), c, metav1.CreateOptions{})
			switch {
			case err == nil:
				created.Add(1)
			case apierrors.IsInvalid(err):
				refused.Add(1)
			default:
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if created.Load() != 1 || refused.Load() != 19 {
		t.Errorf("%d created, %d refused", created.Load(), refused.Load())
	}
	c := pushCluster("other")
	if _, err := clusters.Create(t.Context(), c, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	c.Spec.ID = "same"
	if _, err := clusters.Update(t.Context(), c, metav1.UpdateOptions{}); !apierrors.IsInvalid(err) {
		t.Errorf("a change to the id of another cluster: %v", err)
	}
}

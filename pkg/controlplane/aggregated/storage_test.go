package aggregated

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"
	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
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

// All errors of the fields come first and at once; nobody is asked about what an invalid cluster refers to.
func TestServer_ValidatesFieldsFirst(t *testing.T) {
	etcd, _ := startEtcd(t, t.TempDir())
	plane := newControlPlane(t)
	// Alice may write clusters, and may read no Secret.
	plane.allowed = func(review authorizationv1.SubjectAccessReviewSpec) bool {
		return review.ResourceAttributes == nil || review.ResourceAttributes.Resource != "secrets"
	}
	s := startServer(t, etcd, plane, nil)
	clusters := s.client(t, "alice").ClusterV1alpha1().Clusters()
	secrets := func() (asked []string) {
		plane.mu.Lock()
		defer plane.mu.Unlock()
		for _, review := range plane.reviews {
			if a := review.ResourceAttributes; a != nil && a.Resource == "secrets" {
				asked = append(asked, a.Namespace+"/"+a.Name)
			}
		}
		plane.reviews = nil
		return asked
	}
	invalid := func(c *clusterv1alpha1.Cluster) {
		c.Spec.SecretRef = &clusterv1alpha1.LocalSecretReference{Name: "no-namespace"}
		c.Spec.ImpersonatorSecretRef = &clusterv1alpha1.LocalSecretReference{Namespace: "karmada-cluster"}
		c.Spec.SyncMode = "Sideways"
	}
	wantInvalid := func(err error) {
		t.Helper()
		status, ok := errors.AsType[*apierrors.StatusError](err)
		if !ok || !apierrors.IsInvalid(err) {
			t.Fatalf("got %v, want Invalid", err)
		}
		var fields []string
		for _, cause := range status.ErrStatus.Details.Causes {
			fields = append(fields, cause.Field)
		}
		if want := []string{"spec.syncMode", "spec.secretRef.namespace", "spec.impersonatorSecretRef.name"}; !slices.Equal(fields, want) {
			t.Errorf("fields %v, want %v", fields, want)
		}
		if asked := secrets(); len(asked) > 0 {
			t.Errorf("asked about %v", asked)
		}
	}
	c := pushCluster("m1")
	c.Spec.SecretRef, c.Spec.ImpersonatorSecretRef = nil, nil
	bad := c.DeepCopy()
	invalid(bad)
	_, err := clusters.Create(t.Context(), bad, metav1.CreateOptions{})
	wantInvalid(err)
	if c, err = clusters.Create(t.Context(), c, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	bad = c.DeepCopy()
	invalid(bad)
	_, err = clusters.Update(t.Context(), bad, metav1.UpdateOptions{})
	wantInvalid(err)

	for name, want := range map[string][]string{"m1": {"karmada-cluster/m1"}, "../../x": nil, "a b": nil} {
		refers := c.DeepCopy()
		refers.Spec.SecretRef = &clusterv1alpha1.LocalSecretReference{Namespace: "karmada-cluster", Name: name}
		_, err := clusters.Update(t.Context(), refers, metav1.UpdateOptions{DryRun: []string{metav1.DryRunAll}})
		if refused := want != nil; apierrors.IsForbidden(err) != refused || !refused && err != nil {
			t.Errorf("a reference to %q: %v", name, err)
		}
		if asked := secrets(); !slices.Equal(asked, want) {
			t.Errorf("a reference to %q: asked about %v", name, asked)
		}
	}
}

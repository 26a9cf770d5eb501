package member

import (
	"context"
	"strings"
	"sync"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
)

// fakeServer is an API server that remembers who wrote what.
type fakeServer struct {
	client.Client

	mu     sync.Mutex
	writes []string
	// fillsTokens acts as the token controller.
	fillsTokens bool
	// refuse returns the error of a write.
	refuse func(verb string, obj client.Object) error
	// deleted is called after a deletion.
	deleted func(obj client.Object)
	// finalized are the namespaces that were finalized.
	finalized []string
}

func newServer(t *testing.T, objects ...client.Object) *fakeServer {
	t.Helper()
	scheme, err := NewScheme()
	if err != nil {
		t.Fatal(err)
	}
	s := &fakeServer{fillsTokens: true}
	s.Client = fake.NewClientBuilder().WithScheme(scheme).WithRESTMapper(newMapper()).WithObjects(objects...).
		WithInterceptorFuncs(interceptor.Funcs{
			Create: s.create, Update: s.update, Delete: s.delete, Patch: s.patch, SubResourceCreate: s.token, SubResourceUpdate: s.finalize,
		}).Build()
	return s
}

func (s *fakeServer) note(verb string, obj client.Object) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	gvk, err := s.GroupVersionKindFor(obj)
	if err != nil {
		return err
	}
	if s.refuse != nil {
		if err := s.refuse(verb, obj); err != nil {
			return err
		}
	}
	s.writes = append(s.writes, verb+" "+gvk.Kind+" "+key(obj))
	return nil
}

func (s *fakeServer) create(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.CreateOption) error {
	if secret, ok := obj.(*corev1.Secret); ok && secret.Type == corev1.SecretTypeServiceAccountToken && s.fillsTokens {
		filled := secret.DeepCopy()
		filled.Data = map[string][]byte{"token": []byte("token of " + secret.Name), "ca.crt": []byte("CA")}
		if err := c.Create(ctx, filled, opts...); err != nil {
			return err
		}
		return s.note("create", obj)
	}
	if review, ok := obj.(*authenticationv1.TokenReview); ok {
		review.Status.Authenticated = !strings.HasPrefix(review.Spec.Token, "dead")
		_, err := c.RESTMapper().RESTMapping(authenticationv1.SchemeGroupVersion.WithKind("TokenReview").GroupKind(), "v1")
		return err
	}
	if obj.GetUID() == "" {
		obj.SetUID(types.UID("uid of " + obj.GetName()))
	}
	if s.refuse != nil {
		if err := s.refuse("create", obj); err != nil {
			return err
		}
	}
	if err := c.Create(ctx, obj, opts...); err != nil {
		return err
	}
	return s.note("create", obj)
}

func (s *fakeServer) update(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.UpdateOption) error {
	if err := s.note("update", obj); err != nil {
		return err
	}
	return c.Update(ctx, obj, opts...)
}

func (s *fakeServer) delete(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.DeleteOption) error {
	if err := s.note("delete", obj); err != nil {
		return err
	}
	err := c.Delete(ctx, obj, opts...)
	if err == nil && s.deleted != nil {
		s.deleted(obj)
	}
	return err
}

func (s *fakeServer) patch(ctx context.Context, c client.WithWatch, obj client.Object, patch client.Patch, opts ...client.PatchOption) error {
	if err := s.note("patch", obj); err != nil {
		return err
	}
	return c.Patch(ctx, obj, patch, opts...)
}

func (s *fakeServer) token(_ context.Context, _ client.Client, _ string, obj client.Object, sub client.Object, _ ...client.SubResourceCreateOption) error {
	request, ok := sub.(*authenticationv1.TokenRequest)
	if ok {
		request.Status.Token = "requested for " + obj.GetName()
	}
	return s.note("token", obj)
}

func (s *fakeServer) finalize(ctx context.Context, c client.Client, _ string, obj client.Object, _ ...client.SubResourceUpdateOption) error {
	s.finalized = append(s.finalized, obj.GetName())
	return client.IgnoreNotFound(c.Delete(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: obj.GetName()}}))
}

// member returns an API server with the namespace that identifies it.
func memberServer(t *testing.T, id string, objects ...client.Object) *fakeServer {
	t.Helper()
	system := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "kube-system", UID: types.UID(id)}}
	return newServer(t, append(objects, system)...)
}

func joinRequest(name string) JoinRequest {
	return JoinRequest{
		Name: name, Namespace: "karmada-cluster", Provider: "p", Region: "r", Zones: []string{"z"},
		Config: &rest.Config{Host: "https://127.0.0.1:6443", TLSClientConfig: rest.TLSClientConfig{CAData: []byte("CA of the kubeconfig")}},
	}
}

func clusterObject(name, id string) *clusterv1alpha1.Cluster {
	return &clusterv1alpha1.Cluster{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       clusterv1alpha1.ClusterSpec{ID: id, SyncMode: clusterv1alpha1.Push},
	}
}

var clusters = schema.GroupResource{Group: "cluster.karmada.io", Resource: "clusters"}

package backend

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/karmada-toolkit/karmada/internal/controllers"
	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
	policyv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/policy/v1alpha1"
	searchv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/search/v1alpha1"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/search/cache"
	"github.com/karmada-toolkit/karmada/pkg/member/access"
	"github.com/karmada-toolkit/karmada/pkg/member/access/accesstest"
)

const configMapIndex = "kubernetes-configmap"

// fleet is members, their caches and the stores.
type fleet struct {
	*testing.T
	caches  *cache.Caches
	stores  *Stores
	clock   *clocktesting.FakeClock
	fence   *controllers.Fence
	members map[string]*access.Member
	servers map[string]*accesstest.Server

	mu     sync.Mutex
	secret *corev1.Secret

	clusters   map[string]*clusterv1alpha1.Cluster
	registries []*searchv1alpha1.ResourceRegistry
}

func newFleet(t *testing.T, names ...string) *fleet {
	t.Helper()
	f := &fleet{
		T: t, clock: clocktesting.NewFakeClock(time.Unix(1000, 0)), members: map[string]*access.Member{}, servers: map[string]*accesstest.Server{},
		clusters: map[string]*clusterv1alpha1.Cluster{},
	}
	kinds := meta.NewDefaultRESTMapper(nil)
	kinds.Add(schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}, meta.RESTScopeNamespace)
	kinds.Add(schema.GroupVersionKind{Version: "v1", Kind: "Pod"}, meta.RESTScopeNamespace)
	f.caches = cache.New(cache.Deps{Members: func(_ context.Context, c *clusterv1alpha1.Cluster) (*access.Member, error) {
		return f.members[c.Name], nil
	}})
	t.Cleanup(f.caches.End)
	for _, name := range names {
		f.servers[name] = accesstest.New(t)
		member, err := access.NewMember(name, f.servers[name].Config(), kinds)
		if err != nil {
			t.Fatal(err)
		}
		f.members[name] = member
		f.clusters[name] = &clusterv1alpha1.Cluster{
			ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID("uid of " + name)},
			Status:     clusterv1alpha1.ClusterStatus{Conditions: []metav1.Condition{{Type: "Ready", Status: metav1.ConditionTrue}}},
		}
	}
	return f
}

// run starts the stores of another replica, and returns a function that ends it.
func (f *fleet) run() func() {
	f.stores = New(Deps{
		Caches: f.caches, Clock: f.clock, Identity: func(context.Context) (string, error) { return "this", nil },
		Secret: func(_ context.Context, namespace, name string) (*corev1.Secret, error) {
			f.mu.Lock()
			defer f.mu.Unlock()
			if f.secret == nil || f.secret.Namespace != namespace || f.secret.Name != name {
				return nil, errors.New("no such Secret")
			}
			return f.secret, nil
		},
	})
	ctx, cancel := context.WithCancel(f.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		f.stores.Run(ctx, f.fence)
	}()
	end := func() {
		cancel()
		<-done
	}
	f.Cleanup(end)
	return end
}

func (f *fleet) follow(registries ...*searchv1alpha1.ResourceRegistry) {
	f.registries = registries
	known := make([]*clusterv1alpha1.Cluster, 0, len(f.clusters))
	for _, c := range f.clusters {
		known = append(known, c.DeepCopy())
	}
	f.stores.Follow(registries, known)
	f.caches.Follow(f.Context(), registries, known)
}

func (f *fleet) put(cluster, namespace, name string) {
	f.servers[cluster].Put("/api/v1/namespaces/"+namespace+"/configmaps/"+name, &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"namespace": namespace, "name": name}, "spec": map[string]any{"a": "b"},
	}})
}

// credentials makes a Secret for a server.
func (f *fleet) credentials(s *server, userKey string, user string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	name, password, _ := strings.Cut(user, ":")
	f.secret = &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "store"},
		Data:       map[string][]byte{userKey: []byte(name), "password": []byte(password), "ca.crt": s.ca()},
	}
}

// eventually waits, and lets time pass.
func (f *fleet) eventually(check func() error) {
	f.Helper()
	accesstest.Eventually(f, func() error {
		err := check()
		if err != nil {
			f.clock.Step(pendingInterval)
		}
		return err
	})
}

func (f *fleet) has(s *server, index string, want ...string) {
	f.Helper()
	f.eventually(func() error {
		if got := s.ids(index); !slices.Equal(got, want) {
			return fmt.Errorf("index %s has %q, want %q; failure %q", index, got, want, f.stores.Failure(f.registries[0]))
		}
		return nil
	})
}

func (f *fleet) fails(want string) {
	f.Helper()
	f.eventually(func() error {
		if got := f.stores.Failure(f.registries[0]); !strings.Contains(got, want) || want == "" && got != "" {
			return fmt.Errorf("the failure is %q, want %q", got, want)
		}
		return nil
	})
}

func registry(name string, addresses []string, clusters []string, selectors ...searchv1alpha1.ResourceSelector) *searchv1alpha1.ResourceRegistry {
	out := &searchv1alpha1.ResourceRegistry{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       searchv1alpha1.ResourceRegistrySpec{TargetCluster: policyv1alpha1.ClusterAffinity{ClusterNames: clusters}, ResourceSelectors: selectors},
	}
	if addresses != nil {
		out.Spec.BackendStore = &searchv1alpha1.BackendStoreConfig{OpenSearch: &searchv1alpha1.OpenSearchConfig{
			Addresses: addresses, SecretRef: clusterv1alpha1.LocalSecretReference{Namespace: "default", Name: "store"},
		}}
	}
	return out
}

func configMaps(namespace string) searchv1alpha1.ResourceSelector {
	return searchv1alpha1.ResourceSelector{APIVersion: "v1", Kind: "ConfigMap", Namespace: namespace}
}

func TestStores_FollowObjects(t *testing.T) {
	for _, userKey := range []string{"username", "userName"} {
		t.Run(userKey, func(t *testing.T) {
			f, s := newFleet(t, "m1", "m2"), newServer(t)
			s.user = "me:secret"
			f.credentials(s, userKey, "me:secret")
			f.put("m1", "x", "a")
			f.put("m2", "x", "a")
			f.run()
			f.follow(registry("r", []string{s.URL}, nil, configMaps("")))
			f.has(s, configMapIndex, "m1/a", "m2/a")
			f.put("m1", "x", "b")
			f.servers["m2"].Remove("/api/v1/namespaces/x/configmaps/a")
			f.has(s, configMapIndex, "m1/a", "m1/b")
			f.fails("")
		})
	}
}

func TestStores_RepeatWhatAServerRefusesForNow(t *testing.T) {
	f, s := newFleet(t, "m1"), newServer(t)
	f.credentials(s, "username", "")
	f.put("m1", "x", "a")
	s.set(func(*http.Request) int { return http.StatusServiceUnavailable }, nil)
	f.run()
	f.follow(registry("r", []string{s.URL}, nil, configMaps("")))
	f.fails("of_the_test")
	refused := 0
	s.set(nil, func(string) int {
		if refused++; refused <= 3 {
			return http.StatusTooManyRequests
		}
		return 0
	})
	f.has(s, configMapIndex, "m1/a")
	f.fails("")
	s.set(nil, func(string) int { return http.StatusBadRequest })
	f.put("m1", "x", "b")
	f.fails("1 documents were refused, the last: item_exception: of the test")
}

func TestStores_HalveRequestsThatAreTooLong(t *testing.T) {
	f, s := newFleet(t, "m1"), newServer(t)
	f.credentials(s, "username", "")
	var want []string
	for i := range 9 {
		f.put("m1", "x", fmt.Sprint("a", i))
		want = append(want, fmt.Sprint("m1/a", i))
	}
	s.set(func(r *http.Request) int {
		if strings.HasSuffix(r.URL.Path, "_bulk") && r.ContentLength > 1500 {
			return http.StatusRequestEntityTooLarge
		}
		return 0
	}, nil)
	f.run()
	f.follow(registry("r", []string{s.URL}, nil, configMaps("")))
	f.has(s, configMapIndex, want...)
}

func TestStore_FailuresHaveNoURLs(t *testing.T) {
	s := &store{failures: map[string]string{}}
	s.fail("index", `reading the Secret: Get "https://10.0.0.1:5443/api/v1": connection refused`)
	if got, want := s.failure(), "index: reading the Secret: connection refused"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestStores_UnreachableServerDelaysNoCache(t *testing.T) {
	f := newFleet(t, "m1")
	f.secret = &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "store"}}
	f.run()
	f.follow(registry("r", []string{"https://127.0.0.1:1"}, nil, configMaps("")))
	f.fails("connection refused")
	for i := range 20 {
		f.put("m1", "x", fmt.Sprint("a", i))
	}
	f.eventually(func() error {
		if states := f.caches.States(); len(states) != 1 || states[0].Objects != 20 {
			return fmt.Errorf("the states are %+v", states)
		}
		return nil
	})
}

func TestStores_DeleteWhatIsNotSelectedAnyMore(t *testing.T) {
	f, s := newFleet(t, "m1", "m2"), newServer(t)
	f.credentials(s, "username", "")
	for _, cluster := range []string{"m1", "m2"} {
		f.put(cluster, "x", "a")
		f.put(cluster, "y", "b")
	}
	f.run()
	f.follow(registry("r", []string{s.URL}, nil, configMaps("")))
	f.has(s, configMapIndex, "m1/a", "m1/b", "m2/a", "m2/b")
	// The objects stay in the cache for another registry.
	other := registry("cached", nil, nil, configMaps(""))
	f.follow(registry("r", []string{s.URL}, []string{"m2"}, configMaps("")), other)
	f.has(s, configMapIndex, "m2/a", "m2/b")
	f.follow(registry("r", []string{s.URL}, []string{"m2"}, configMaps("x")), other)
	f.has(s, configMapIndex, "m2/a")
	f.follow(registry("r", []string{s.URL}, nil, configMaps("x")), other)
	f.has(s, configMapIndex, "m1/a", "m2/a")
	delete(f.clusters, "m2")
	f.follow(f.registries...)
	f.has(s, configMapIndex, "m1/a")
	f.follow(other)
	f.has(s, configMapIndex)
}

func TestStores_DeleteWhatLeftWhileNoReplicaRan(t *testing.T) {
	f, s := newFleet(t, "m1", "m2"), newServer(t)
	f.credentials(s, "username", "")
	f.put("m1", "x", "a")
	f.put("m1", "x", "b")
	f.put("m2", "x", "a")
	end := f.run()
	all := registry("r", []string{s.URL}, nil, configMaps(""))
	f.follow(all)
	f.has(s, configMapIndex, "m1/a", "m1/b", "m2/a")
	end()
	s.mu.Lock()
	stranger := map[string]any{"cluster": "m2", "controlPlane": "another", "metadata": map[string]any{"name": "stranger"}}
	s.indices[configMapIndex].docs["1"] = stranger
	s.mu.Unlock()
	f.servers["m1"].Remove("/api/v1/namespaces/x/configmaps/b")
	delete(f.clusters, "m2")
	end = f.run()
	f.follow(all)
	f.has(s, configMapIndex, "m1/a", "m2/stranger")
	end()
	f.run()
	f.follow(registry("r", []string{s.URL}, nil, searchv1alpha1.ResourceSelector{APIVersion: "v1", Kind: "Pod"}))
	f.has(s, configMapIndex, "m2/stranger")
}

func TestStores_ChangeOfSettingsTakesEffect(t *testing.T) {
	f, s, another := newFleet(t, "m1"), newServer(t), newServer(t)
	s.user = "me:old"
	f.credentials(s, "username", "me:wrong")
	f.put("m1", "x", "a")
	f.run()
	f.follow(registry("r", []string{s.URL}, nil, configMaps("")))
	f.fails("security_exception")
	f.credentials(s, "username", "me:old")
	f.has(s, configMapIndex, "m1/a")
	f.credentials(another, "username", "")
	f.follow(registry("r", []string{another.URL}, nil, configMaps("")))
	f.has(another, configMapIndex, "m1/a")
	f.credentials(s, "username", "me:old")
	f.has(s, configMapIndex)
}

// A replica that was paused, or cannot renew its Lease, writes nothing: another one may be the writer.
func TestStores_WritesEndWithTheLease(t *testing.T) {
	f, s := newFleet(t, "m1"), newServer(t)
	f.credentials(s, "username", "")
	f.fence = controllers.NewFence(f.clock, 10*time.Second, 15*time.Second)
	renew := func() {
		leases := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
		defer leases.Close()
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPut, leases.URL+"/apis/coordination.k8s.io/v1/leases/x", nil)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := f.fence.Election("")(http.DefaultTransport).RoundTrip(req)
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
	}
	renew()
	f.put("m1", "default", "a")
	f.run()
	f.follow(registry("r", []string{s.URL}, nil, configMaps("")))
	accesstest.Eventually(t, func() error {
		if got := s.ids(configMapIndex); !slices.Equal(got, []string{"m1/a"}) {
			return fmt.Errorf("the index has %q", got)
		}
		f.clock.Step(pendingInterval)
		renew()
		return nil
	})
	f.clock.Step(10 * time.Second)
	f.put("m1", "default", "b")
	f.fails("lease of the leader was not renewed")
	if got := s.ids(configMapIndex); !slices.Equal(got, []string{"m1/a"}) {
		t.Errorf("the index has %q after the lease", got)
	}
}

func TestConnect_RefusesSettings(t *testing.T) {
	secret := func(key string) *corev1.Secret {
		return &corev1.Secret{Data: map[string][]byte{key: []byte("nothing")}}
	}
	config := &searchv1alpha1.OpenSearchConfig{Addresses: []string{"https://a"}}
	for want, err := range map[string]error{
		"not found opensearch address": func() error { _, err := connect(&searchv1alpha1.OpenSearchConfig{}, nil, nil); return err }(),
		"has no certificate":           func() error { _, err := connect(config, secret("ca.crt"), nil); return err }(),
		"reading tls.crt and tls.key":  func() error { _, err := connect(config, secret("tls.crt"), nil); return err }(),
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}

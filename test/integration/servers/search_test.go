//go:build integration

// Covers pkg/controlplane/search.

package servers_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	clientv3 "go.etcd.io/etcd/client/v3"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/features"
	"k8s.io/client-go/rest"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/karmada-toolkit/karmada/internal/kube"
	"github.com/karmada-toolkit/karmada/internal/testenv"
	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
	searchv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/search/v1alpha1"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/search"
	"github.com/karmada-toolkit/karmada/pkg/generated/clientset/versioned"
)

// searchServe runs the role behind a control plane.
func searchServe(t *testing.T, home *testenv.Cluster, gates ...string) *searchReplicas {
	t.Helper()
	admin, err := client.New(home.Config, client.Options{Scheme: kube.NewScheme()})
	if err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	r := &searchReplicas{T: t, home: home, connections: map[net.Conn]bool{}}
	var first string
	first, r.stop = r.start(gates...)
	r.use(first)
	go r.forward(listener)
	t.Cleanup(func() { _ = listener.Close(); r.use("") })
	expose(t, admin, int32(listener.Addr().(*net.TCPAddr).Port))
	return r
}

// searchReplicas stands before replicas of the role, and forwards connections to one of them.
type searchReplicas struct {
	*testing.T
	home *testenv.Cluster
	// stop ends the replica that is used.
	stop func()

	mu          sync.Mutex
	to          string
	connections map[net.Conn]bool
}

func (r *searchReplicas) forward(listener net.Listener) {
	for {
		from, err := listener.Accept()
		if err != nil {
			return
		}
		r.mu.Lock()
		to, err := net.Dial("tcp", r.to)
		if err != nil {
			_ = from.Close()
		} else {
			r.connections[from], r.connections[to] = true, true
			go func() { _, _ = io.Copy(from, to); _ = from.Close() }()
			go func() { _, _ = io.Copy(to, from); _ = to.Close() }()
		}
		r.mu.Unlock()
	}
}

// use forwards new connections to an address, and closes the others, as when a process is killed.
func (r *searchReplicas) use(address string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.to = address
	for c := range r.connections {
		_ = c.Close()
	}
	clear(r.connections)
}

// readyz returns what the replica in use says of its readiness.
func (r *searchReplicas) readyz() string {
	r.Helper()
	r.mu.Lock()
	url := "https://" + r.to + "/readyz"
	r.mu.Unlock()
	c := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
	answer, err := c.Get(url)
	if err != nil {
		r.Fatal(err)
	}
	defer answer.Body.Close() //nolint:errcheck // it was read
	data, err := io.ReadAll(answer.Body)
	if err != nil {
		r.Fatal(err)
	}
	return string(data)
}

// start runs another replica, and returns its address and what ends it as a signal does.
func (r *searchReplicas) start(gates ...string) (address string, stop func()) {
	t := r.T
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	o := search.NewOptions()
	for _, text := range gates {
		if err := o.Gates.Set(text); err != nil {
			t.Fatal(err)
		}
	}
	o.SecureServing.Listener = listener
	o.Etcd.StorageConfig.Transport.ServerList = []string{r.home.Info.Etcd}
	if err := o.Validate(); err != nil {
		t.Fatal(err)
	}
	mgr, err := ctrl.NewManager(r.home.Config, manager.Options{Scheme: kube.NewScheme(), Metrics: metricsserver.Options{BindAddress: "0"}})
	if err != nil {
		t.Fatal(err)
	}
	if err := search.Setup(t.Context(), mgr, o); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- mgr.Start(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("running the server: %v", err)
		}
	})
	t.Cleanup(stop)
	return listener.Addr().String(), stop
}

// expose registers the server at a port of this machine, and waits until the control plane serves its API.
func expose(t testing.TB, admin client.Client, port int32) {
	t.Helper()
	for _, object := range []client.Object{
		&corev1.Service{
			ObjectMeta: metav1.ObjectMeta{Name: "search", Namespace: "default"},
			Spec:       corev1.ServiceSpec{Type: corev1.ServiceTypeExternalName, ExternalName: "localhost"},
		},
		&apiregistrationv1.APIService{
			ObjectMeta: metav1.ObjectMeta{Name: "v1alpha1.search.karmada.io"},
			Spec: apiregistrationv1.APIServiceSpec{
				Group: searchv1alpha1.GroupName, Version: "v1alpha1", GroupPriorityMinimum: 2000, VersionPriority: 10, InsecureSkipTLSVerify: true,
				Service: &apiregistrationv1.ServiceReference{Namespace: "default", Name: "search", Port: &port},
			},
		},
	} {
		if err := admin.Create(t.Context(), object); err != nil {
			t.Fatal(err)
		}
	}
	testenv.Eventually(t, time.Minute, func(ctx context.Context) error {
		return admin.List(ctx, &searchv1alpha1.ResourceRegistryList{})
	})
}

func searchClient(t testing.TB, config *rest.Config, user string) *versioned.Clientset {
	t.Helper()
	config = rest.CopyConfig(config)
	if user != "" {
		config.Impersonate = rest.ImpersonationConfig{UserName: user}
	}
	c, err := versioned.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func podRegistry() *searchv1alpha1.ResourceRegistry {
	return &searchv1alpha1.ResourceRegistry{
		ObjectMeta: metav1.ObjectMeta{Name: "pods"},
		Spec:       searchv1alpha1.ResourceRegistrySpec{ResourceSelectors: []searchv1alpha1.ResourceSelector{{APIVersion: "v1", Kind: "Pod"}}},
	}
}

// getRaw is a GET as an administrator.
func getRaw(t *testing.T, c *versioned.Clientset, path, accept string) (int, string) {
	t.Helper()
	path, query, _ := strings.Cut(path, "?")
	request := c.SearchV1alpha1().RESTClient().Get().AbsPath("/apis/search.karmada.io/v1alpha1/" + path)
	for pair := range strings.SplitSeq(query, "&") {
		if key, value, ok := strings.Cut(pair, "="); ok {
			request.Param(key, value)
		}
	}
	result := request.SetHeader("Accept", accept).MaxRetries(0).Do(t.Context())
	var code int
	data, _ := result.StatusCode(&code).Raw()
	return code, string(data)
}

// The columns of native kinds link Kubernetes' gates, which join those of client-go with those of the process.
func TestServer_GatesAreNotThoseOfClients(t *testing.T) {
	enabled := func() map[features.Feature]bool {
		out := map[features.Feature]bool{}
		for _, f := range []features.Feature{features.WatchListClient, features.ClientsAllowCBOR, features.ClientsPreferCBOR, features.InformerResourceVersion} {
			out[f] = features.FeatureGates().Enabled(f)
		}
		return out
	}
	before := enabled()
	searchServe(t, testenv.Start(t, testenv.ControlPlane()), "AllAlpha=true,AllBeta=true", "ClientsPreferCBOR=true,WatchListClient=false")
	if diff := cmp.Diff(before, enabled()); diff != "" {
		t.Errorf("gates of clients (-before +after):\n%s", diff)
	}
}

func TestServer_StoresRegistries(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	home := testenv.Start(t, testenv.ControlPlane())
	replica := searchServe(t, home)
	admin := searchClient(t, home.Config, "")
	registries := admin.SearchV1alpha1().ResourceRegistries()

	in := podRegistry()
	in.Status.Conditions = []metav1.Condition{{Type: "Ready", Status: metav1.ConditionTrue, Reason: "Mine"}}
	created, err := registries.Create(ctx, in, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if created.Generation != 1 || len(created.Status.Conditions) != 0 {
		t.Errorf("created %+v", created)
	}
	t.Run("the key and the format in etcd", func(t *testing.T) {
		c, err := clientv3.New(clientv3.Config{Endpoints: []string{home.Info.Etcd}})
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = c.Close() }()
		got, err := c.Get(ctx, "/registry/search.karmada.io/resourceRegistries/pods")
		if err != nil {
			t.Fatal(err)
		}
		const start = `{"kind":"ResourceRegistry","apiVersion":"search.karmada.io/v1alpha1","metadata":{"name":"pods"`
		if len(got.Kvs) != 1 || !strings.HasPrefix(string(got.Kvs[0].Value), start) {
			t.Errorf("got %v", got.Kvs)
		}
	})
	t.Run("an invalid one is refused", func(t *testing.T) {
		bad := podRegistry()
		bad.Name = "bad"
		bad.Spec.ResourceSelectors[0].APIVersion = "a/b/c"
		bad.Spec.BackendStore = &searchv1alpha1.BackendStoreConfig{OpenSearch: &searchv1alpha1.OpenSearchConfig{Addresses: []string{"a:9200"}}}
		_, err := registries.Create(ctx, bad, metav1.CreateOptions{})
		if !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), "must be a valid http or https URL with non-empty scheme and host") ||
			!strings.Contains(err.Error(), "spec.resourceSelectors[0].apiVersion") {
			t.Errorf("got %v", err)
		}
		if _, err := registries.Update(ctx, bad, metav1.UpdateOptions{}); !apierrors.IsNotFound(err) {
			t.Errorf("an update created it: %v", err)
		}
	})
	t.Run("a status write changes nothing but the status", func(t *testing.T) {
		r := created.DeepCopy()
		r.Spec.ResourceSelectors, r.Labels = nil, map[string]string{"a": "b"}
		r.Status = searchv1alpha1.ResourceRegistryStatus{
			Conditions: []metav1.Condition{{Type: searchv1alpha1.RegistryReady, Status: metav1.ConditionTrue, Reason: searchv1alpha1.ReasonCached, LastTransitionTime: metav1.Now()}},
			Clusters:   []searchv1alpha1.ClusterCache{{Cluster: "m1", APIVersion: "v1", Kind: "Pod", Objects: 7}},
		}
		got, err := registries.UpdateStatus(ctx, r, metav1.UpdateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(created.Spec, got.Spec); diff != "" || got.Labels != nil || got.Generation != 1 || len(got.Status.Clusters) != 1 {
			t.Errorf("changed: %s, %+v", diff, got)
		}
		r = created.DeepCopy()
		if _, err := registries.UpdateStatus(ctx, r, metav1.UpdateOptions{}); !apierrors.IsConflict(err) {
			t.Errorf("a status of an old version: %v", err)
		}
	})
	t.Run("a spec write counts and keeps the status", func(t *testing.T) {
		patch := []byte(`{"spec":{"targetCluster":{"clusterNames":["m1"]}},"status":{"clusters":null}}`)
		got, err := registries.Patch(ctx, "pods", types.MergePatchType, patch, metav1.PatchOptions{})
		if err != nil || got.Generation != 2 || len(got.Status.Clusters) != 1 {
			t.Errorf("got %+v, %v", got, err)
		}
		apply := []byte(`{"apiVersion":"search.karmada.io/v1alpha1","kind":"ResourceRegistry","metadata":{"name":"pods","labels":{"x":"y"}}}`)
		got, err = registries.Patch(ctx, "pods", types.ApplyPatchType, apply, metav1.PatchOptions{FieldManager: "test"})
		if err != nil || got.Labels["x"] != "y" || got.Generation != 2 {
			t.Errorf("got %+v, %v", got, err)
		}
	})
	t.Run("the table", func(t *testing.T) {
		_, data := getRaw(t, admin, "resourceregistries", "application/json;as=Table;v=v1;g=meta.k8s.io")
		var table metav1.Table
		if err := json.Unmarshal([]byte(data), &table); err != nil || len(table.Rows) != 1 {
			t.Fatalf("%v: %s", err, data)
		}
		columns := make([]string, 0, len(table.ColumnDefinitions))
		for _, c := range table.ColumnDefinitions {
			columns = append(columns, c.Name)
		}
		cells := slices.Delete(table.Rows[0].Cells, 3, 4)
		if diff := cmp.Diff([]string{"Name", "Kinds", "Ready", "Age", "Degraded", "Backend"}, columns); diff != "" {
			t.Error(diff)
		}
		if diff := cmp.Diff([]any{"pods", "Pod", "True", "<none>", "<none>"}, cells); diff != "" {
			t.Error(diff)
		}
	})
	t.Run("a protected one is not deleted", func(t *testing.T) {
		protect := []byte(`{"metadata":{"labels":{"resourcetemplate.karmada.io/deletion-protected":"Always"}}}`)
		_, err := registries.Patch(ctx, "pods", types.MergePatchType, protect, metav1.PatchOptions{})
		one := registries.Delete(ctx, "pods", metav1.DeleteOptions{})
		all := registries.DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{})
		if err != nil || !apierrors.IsForbidden(one) || !apierrors.IsForbidden(all) {
			t.Errorf("got %v, %v, %v", err, one, all)
		}
	})
	t.Run("a backend store needs the right to read its Secret", func(t *testing.T) { testSecret(t, home) })
	t.Run("the resource search, while the API of clusters is not served", func(t *testing.T) {
		if text := replica.readyz(); !strings.Contains(text, "[-]poststarthook/search-storage-cache-readiness failed") || !strings.Contains(text, "[-]poststarthook/start-karmada-search-controller failed") {
			t.Errorf("the server is ready: %s", text)
		}
		for path, want := range map[string]struct {
			code int
			text string
		}{
			"search/opensearch/api/v1/pods":             {http.StatusOK, ""},
			"search/nonsense/api/v1/pods":               {http.StatusNotFound, "connect with unrecognized search category nonsense"},
			"search/cache/version":                      {http.StatusNotFound, "k8s native Request URL(/version) is not a resource request"},
			"search/cache":                              {http.StatusNotFound, "is not a resource request"},
			"search/cache/api/v1/namespaces/a/pods/b/c": {http.StatusNotFound, "invalid request parts([pods b c]) for k8s native request URL"},
			"search/cache/api/v1/namespaces/a/pods/b":   {http.StatusServiceUnavailable, "the objects of the clusters are not listed yet"},
			"search/cache/apis/x.io/v1/nonsense":        {http.StatusInternalServerError, `{"error":"neither a registry nor the control plane has the resource x.io/v1, Resource=nonsense`},
			"search/cache/api/v1/pods?limit=1&continue=" + strings.Repeat("x", 300_000): {http.StatusBadRequest, "longer than"},
			"search/cache/api/v1/pods?limit=x":                                          {http.StatusBadRequest, `{"error":`},
			"search/cache/api/v1/pods?fieldSelector=a=b":                                {http.StatusBadRequest, `{"error":"objects of kind Pod cannot be selected by the field`},
		} {
			if code, data := getRaw(t, admin, path, "application/json"); code != want.code || !strings.Contains(data, want.text) || want.text == "" && data != "" {
				t.Errorf("%s: %d %s", path, code, data)
			}
		}
	})
}

// testSecret sets backend stores as a user who may write registries and read one of two Secrets.
func testSecret(t *testing.T, home *testenv.Cluster) {
	ctx := t.Context()
	c, err := client.New(home.Config, client.Options{Scheme: kube.NewScheme()})
	if err != nil {
		t.Fatal(err)
	}
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "alice"}, Rules: []rbacv1.PolicyRule{
		{Verbs: []string{"*"}, APIGroups: []string{searchv1alpha1.GroupName}, Resources: []string{"resourceregistries"}},
		{Verbs: []string{"get"}, APIGroups: []string{""}, Resources: []string{"secrets"}, ResourceNames: []string{"mine"}},
		{Verbs: []string{"list"}, APIGroups: []string{""}, Resources: []string{"pods"}},
	}}
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "alice"}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "alice"},
		Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "User", Name: "alice"}},
	}
	if err := errors.Join(c.Create(ctx, role), c.Create(ctx, binding)); err != nil {
		t.Fatal(err)
	}
	alice := searchClient(t, home.Config, "alice").SearchV1alpha1().ResourceRegistries()
	r := podRegistry()
	r.Name = "stored"
	secret := func(name, address string) {
		r.Spec.BackendStore = &searchv1alpha1.BackendStoreConfig{OpenSearch: &searchv1alpha1.OpenSearchConfig{
			Addresses: []string{address}, SecretRef: clusterv1alpha1.LocalSecretReference{Namespace: "default", Name: name},
		}}
	}
	secret("mine", "https://store")
	testenv.Eventually(t, time.Minute, func(ctx context.Context) error {
		_, err := alice.Create(ctx, r, metav1.CreateOptions{})
		return err
	})
	secrets := r.DeepCopy()
	secrets.Spec.ResourceSelectors = []searchv1alpha1.ResourceSelector{{APIVersion: "v1", Kind: "Secret"}}
	if _, err := alice.Update(ctx, secrets, metav1.UpdateOptions{}); !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "cannot list secrets in all namespaces") {
		t.Errorf("objects that she may not list: %v", err)
	}
	secret("other", "https://store")
	if _, err := alice.Update(ctx, r, metav1.UpdateOptions{}); !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), `user "alice" cannot get Secret default/other`) {
		t.Errorf("another's Secret: %v", err)
	}
	another := r.DeepCopy()
	another.Name = "new"
	if _, err := alice.Create(ctx, another, metav1.CreateOptions{}); !apierrors.IsForbidden(err) {
		t.Errorf("another's Secret at once: %v", err)
	}
	apply := []byte(`{"apiVersion":"search.karmada.io/v1alpha1","kind":"ResourceRegistry","metadata":{"name":"applied"},"spec":{"targetCluster":{},
		"resourceSelectors":[{"apiVersion":"v1","kind":"Pod"}],"backendStore":{"openSearch":{"addresses":["https://a"],"secretRef":{"namespace":"default","name":"other"}}}}}`)
	if _, err := alice.Patch(ctx, "applied", types.ApplyPatchType, apply, metav1.PatchOptions{FieldManager: "test"}); !apierrors.IsForbidden(err) {
		t.Errorf("another's Secret by apply: %v", err)
	}
	apply = bytes.Replace(apply, []byte("other"), []byte("mine"), 1)
	if _, err := alice.Patch(ctx, "applied", types.ApplyPatchType, apply, metav1.PatchOptions{FieldManager: "test"}); err != nil {
		t.Errorf("her own Secret by apply: %v", err)
	}
	admin := searchClient(t, home.Config, "").SearchV1alpha1().ResourceRegistries()
	if _, err := admin.Update(ctx, r, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	secret("other", "https://mine")
	if _, err := alice.Update(ctx, r, metav1.UpdateOptions{}); !apierrors.IsForbidden(err) {
		t.Errorf("another's Secret to an address of her own: %v", err)
	}
	patch := []byte(`{"metadata":{"labels":{"a":"b"}},"spec":{"targetCluster":{"clusterNames":["m1"]}}}`)
	if _, err := alice.Patch(ctx, "stored", types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
		t.Errorf("a change of something else: %v", err)
	}
}

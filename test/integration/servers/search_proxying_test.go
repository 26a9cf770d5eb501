//go:build integration

// Covers pkg/controlplane/search.

package servers_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/karmada-toolkit/karmada/internal/kube"
	"github.com/karmada-toolkit/karmada/internal/testenv"
	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
	"github.com/karmada-toolkit/karmada/pkg/apis/names"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/planetest"
	"github.com/karmada-toolkit/karmada/pkg/domain/search"
	"github.com/karmada-toolkit/karmada/pkg/init/components"
	"github.com/karmada-toolkit/karmada/pkg/member/access/accesstest"
)

// fleet is a control plane with the role search, and two members.
type fleet struct {
	*testing.T
	config   *rest.Config
	members  map[string]*accesstest.Server
	replicas *searchReplicas
}

func newFleet(t *testing.T) *fleet {
	t.Helper()
	home := testenv.Start(t, testenv.ControlPlane())
	c, err := client.New(home.Config, client.Options{Scheme: kube.NewScheme()})
	if err != nil {
		t.Fatal(err)
	}
	planetest.InstallClusters(t, c)
	if err := c.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: clusterv1alpha1.NamespaceKarmadaSystem}}); err != nil {
		t.Fatal(err)
	}
	for _, object := range components.RBACOf("", components.Search) {
		if object.GetName() == names.ReadersGroup {
			if err := c.Create(t.Context(), object); err != nil {
				t.Fatal(err)
			}
		}
	}
	f := &fleet{T: t, config: rest.CopyConfig(home.Config), members: map[string]*accesstest.Server{}, replicas: searchServe(t, home)}
	f.config.Host += "/apis/search.karmada.io/v1alpha1/proxying/karmada/proxy"
	for _, name := range []string{"m1", "m2"} {
		f.members[name] = searchJoin(t, c, name)
		putConfigMap(f.members[name], "team", "shared")
		putConfigMap(f.members[name], "other", "only-in-"+name)
	}
	grant(t, c, "alice", "team")
	registry := podRegistry()
	registry.Spec.ResourceSelectors[0].Kind = "ConfigMap"
	if _, err := searchClient(t, home.Config, "").SearchV1alpha1().ResourceRegistries().Create(t.Context(), registry, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	testenv.Eventually(t, time.Minute, func(context.Context) error {
		if code, data := f.call("", http.MethodGet, "configmaps", "", ""); code != http.StatusOK || strings.Count(data, `"uid"`) != 4 {
			return fmt.Errorf("%d %s", code, data)
		}
		if code, data := f.call("alice", http.MethodGet, "namespaces/team/configmaps", "", ""); code != http.StatusOK {
			return fmt.Errorf("%d %s", code, data)
		}
		return nil
	})
	return f
}

// call makes a request of a user, the administrator's if the name is empty, below /api/v1.
func (f *fleet) call(as, method, path, contentType, body string) (code int, data string) {
	f.Helper()
	config := rest.CopyConfig(f.config)
	config.Impersonate.UserName = as
	c, err := rest.HTTPClientFor(config)
	if err != nil {
		f.Fatal(err)
	}
	if !strings.HasPrefix(path, "/") {
		path = "/api/v1/" + path
	}
	req, err := http.NewRequestWithContext(f.Context(), method, f.config.Host+path, strings.NewReader(body))
	if err != nil {
		f.Fatal(err)
	}
	if contentType != "" {
		req.Header.Set("Content-Type", contentType)
	}
	answer, err := c.Do(req)
	if err != nil {
		f.Fatal(err)
	}
	defer answer.Body.Close() //nolint:errcheck // it was read
	all, err := io.ReadAll(answer.Body)
	if err != nil {
		f.Fatal(err)
	}
	return answer.StatusCode, string(all)
}

// Who may use the proxy reads and writes with it what this user may in the control plane, and nothing else.
func TestProxy_Rights(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	for _, tc := range []struct {
		user, method, path string
		code               int
		text               string
	}{
		{"nobody", "GET", "namespaces/team/configmaps", http.StatusForbidden, "proxying"},
		{"alice", "GET", "configmaps", http.StatusForbidden, `user \"alice\" cannot list this in the control plane`},
		{"alice", "GET", "namespaces/other/configmaps", http.StatusForbidden, `in namespace \"other\"`},
		{"alice", "GET", "namespaces/other/configmaps/only-in-m1", http.StatusForbidden, "cannot get"},
		{"alice", "GET", "namespaces/other/configmaps?watch=true", http.StatusForbidden, "cannot watch"},
		{"alice", "GET", "watch/namespaces/other/configmaps", http.StatusForbidden, "cannot watch"},
		{"alice", "GET", "namespaces/team/secrets", http.StatusForbidden, "cannot list"},
		{"alice", "DELETE", "namespaces/team/configmaps/shared", http.StatusForbidden, "cannot delete"},
		{"alice", "DELETE", "namespaces/team/configmaps", http.StatusForbidden, "cannot deletecollection"},
		{"alice", "PATCH", "namespaces/team/configmaps/shared", http.StatusForbidden, "cannot patch"},
		{"alice", "PUT", "namespaces/team/configmaps/shared", http.StatusForbidden, "cannot update"},
		{"alice", "POST", "namespaces/team/configmaps", http.StatusForbidden, "cannot create"},
		{"alice", "GET", "namespaces/team/pods/web/log", http.StatusForbidden, "cannot get"},
		{"alice", "GET", "namespaces/team/pods/web/exec?command=sh", http.StatusForbidden, "cannot create"},
		{"alice", "GET", "namespaces/team/pods/web/attach", http.StatusForbidden, "cannot get"},
		{"alice", "GET", "namespaces/team/configmaps", http.StatusOK, `"ConfigMapList"`},
		{"alice", "GET", "namespaces/team/configmaps/shared", http.StatusConflict, "ambiguous objects in clusters [m1, m2]"},
		{"alice", "GET", "namespaces/team/configmaps/none", http.StatusNotFound, "not found"},
		{"alice", "GET", "namespaces/team/services/none", http.StatusNotFound, `services \"none\" not found`}, // of the control plane
		{"", "GET", "namespaces", http.StatusOK, `"NamespaceList"`},                                           // of the control plane
		{"", "GET", "namespaces/default/services/kubernetes", http.StatusOK, `"clusterIP"`},
		{"", "POST", "/apis/authentication.k8s.io/v1/selfsubjectreviews", http.StatusCreated, `"system:masters"`},
		{"", "POST", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", http.StatusCreated, `"allowed":true`},
		{"", "POST", "namespaces", http.StatusForbidden, "the control plane's own address"},
		{"", "GET", "namespaces/default/services/kubernetes/proxy/x", http.StatusForbidden, "the control plane's own address"},
		{"", "POST", "namespaces/team/configmaps", http.StatusMethodNotAllowed, "create"},
		{"", "DELETE", "namespaces/team", http.StatusForbidden, "the control plane's own address"},
		{"", "GET", "configmaps?continue=nonsense", http.StatusGone, "not valid"},
		{"", "GET", "configmaps?watch=true&resourceVersion=7", http.StatusGone, "list again"},
		{"", "GET", "configmaps?fieldSelector=spec.x=y", http.StatusBadRequest, "spec.x"},
		{"", "GET", "configmaps?strict=perhaps", http.StatusBadRequest, "strict"},
		{"", "GET", "configmaps?strict=1", http.StatusOK, "only-in-m2"},
		{"", "GET", "configmaps?resourceVersion=x&resourceVersionMatch=Exact", http.StatusGone, "exact"},
		{"alice", "GET", "namespaces/team/../other/configmaps", http.StatusForbidden, "other"},
		{"alice", "GET", "namespaces/team/namespaces/other", http.StatusForbidden, "cannot get"},
		{"", "GET", "configmaps?consistent=perhaps", http.StatusBadRequest, "consistent"},
		{"", "GET", "configmaps?consistent=true&watch=true", http.StatusBadRequest, "always answered from the caches"},
		{"", "GET", "configmaps?consistent=true&continue=x", http.StatusBadRequest, "whole"},
		{"", "GET", "configmaps?consistent=true", http.StatusOK, "only-in-m2"},
		{"alice", "GET", "namespaces/other/configmaps?consistent=true", http.StatusForbidden, "cannot list"},
		{"alice", "GET", "namespaces/team/configmaps/shared?consistent=true", http.StatusConflict, "ambiguous objects in clusters [m1, m2]"},
		{"", "GET", "namespaces/other/configmaps/only-in-m2?consistent=true", http.StatusOK, `"resource.karmada.io/cached-from-cluster":"m2"`},
		{"", "GET", "namespaces/other/configmaps/none?consistent=true", http.StatusNotFound, "not found"},
		{"", "GET", "configmaps?fieldSelector=metadata.name=only-in-m2", http.StatusOK, "only-in-m2"},
	} {
		if code, data := f.call(tc.user, tc.method, tc.path, "application/json", ""); code != tc.code || !strings.Contains(data, tc.text) {
			t.Errorf("%s %s %s: %d %s", tc.user, tc.method, tc.path, code, data)
		}
	}
	for name, server := range f.members {
		for _, write := range server.Writes() {
			t.Errorf("%s was written to: %s", name, write)
		}
	}
}

// A write goes to the cluster that holds the object, with the cluster's own version; without one for the cluster it is refused.
func TestProxy_Writes(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	const path, merge = "namespaces/other/configmaps/only-in-m1", "application/merge-patch+json"
	code, data := f.call("", http.MethodGet, path, "", "")
	object := &unstructured.Unstructured{}
	if err := object.UnmarshalJSON([]byte(data)); code != http.StatusOK || err != nil {
		t.Fatal(code, data, err)
	}
	versions, ok := search.DecodeVersions(object.GetResourceVersion())
	if !ok || object.GetAnnotations()[clusterv1alpha1.CacheSourceAnnotation] != "m1" {
		t.Fatalf("%s", data)
	}
	patch := func(version string) string {
		return fmt.Sprintf(`{"metadata":{"resourceVersion":%q},"data":{"k":"v"}}`, version)
	}
	code, data = f.call("", http.MethodPatch, path, merge, patch(object.GetResourceVersion()))
	if code != http.StatusOK || !strings.Contains(data, `"m1"`) {
		t.Errorf("%d %s", code, data)
	}
	stored := f.members["m1"].Get("/api/v1/" + path)
	if value, _, _ := unstructured.NestedString(stored.Object, "data", "k"); value != "v" || stored.GetResourceVersion() == versions.Get("m1") || stored.GetAnnotations() != nil {
		t.Errorf("stored: %v", stored.Object)
	}
	code, data = f.call("", http.MethodPatch, path, merge, patch(search.NewVersions(map[string]string{"m2": "1"}).Encode()))
	if code != http.StatusConflict || !strings.Contains(data, "has no entry for cluster m1") {
		t.Errorf("a version of another cluster: %d %s", code, data)
	}
	// So does an update, of a typed object as clients have it.
	code, data = f.call("", http.MethodGet, path, "", "")
	typed := &corev1.ConfigMap{}
	if err := json.Unmarshal([]byte(data), typed); code != http.StatusOK || err != nil {
		t.Fatal(code, data, err)
	}
	typed.Data = map[string]string{"seen": "yes"}
	body, err := json.Marshal(typed)
	if err != nil {
		t.Fatal(err)
	}
	if code, data = f.call("", http.MethodPut, path, "application/json", string(body)); code != http.StatusOK {
		t.Errorf("update: %d %s", code, data)
	}
	if stored = f.members["m1"].Get("/api/v1/" + path); fmt.Sprint(stored.Object["data"]) != "map[seen:yes]" || stored.GetAnnotations() != nil {
		t.Errorf("stored by an update: %v", stored.Object)
	}
	if code, data = f.call("", http.MethodDelete, "namespaces/other/configmaps/only-in-m2", "", ""); code != http.StatusOK || f.members["m2"].Get("/api/v1/namespaces/other/configmaps/only-in-m2") != nil {
		t.Errorf("delete: %d %s", code, data)
	}
}

// An informer of client-go follows all members by one list and one watch, and goes on when replicas end, are killed and start: only
// what is deleted in a member is deleted in it.
func TestProxy_Informer(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	c, err := dynamic.NewForConfig(f.config)
	if err != nil {
		t.Fatal(err)
	}
	factory := dynamicinformer.NewFilteredDynamicSharedInformerFactory(c, 0, "other", nil)
	informer := factory.ForResource(schema.GroupVersionResource{Version: "v1", Resource: "configmaps"})
	var mu sync.Mutex
	names := map[string]bool{}
	var deleted []string
	note := func(present bool) func(any) {
		return func(obj any) {
			if gone, ok := obj.(toolscache.DeletedFinalStateUnknown); ok {
				obj = gone.Obj
			}
			u := obj.(*unstructured.Unstructured)
			mu.Lock()
			defer mu.Unlock()
			if delete(names, u.GetName()); present {
				names[u.GetName()] = true
			} else {
				deleted = append(deleted, u.GetName())
			}
		}
	}
	if _, err := informer.Informer().AddEventHandler(toolscache.ResourceEventHandlerFuncs{
		AddFunc: note(true), UpdateFunc: func(_, now any) { note(true)(now) }, DeleteFunc: note(false),
	}); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	factory.Start(ctx.Done())
	defer factory.Shutdown()
	defer cancel()
	wants := func(want ...string) {
		t.Helper()
		testenv.Eventually(t, time.Minute, func(context.Context) error {
			mu.Lock()
			defer mu.Unlock()
			var got []string
			for name := range names {
				got = append(got, name)
			}
			slices.Sort(got)
			if !slices.Equal(got, want) {
				return fmt.Errorf("got %v, want %v", got, want)
			}
			return nil
		})
	}
	wants("only-in-m1", "only-in-m2")
	putConfigMap(f.members["m2"], "other", "new")
	wants("new", "only-in-m1", "only-in-m2")
	f.members["m1"].Remove("/api/v1/namespaces/other/configmaps/only-in-m1")
	wants("new", "only-in-m2")
	for i, change := range []func() (name string){
		func() string { // the replica gets a signal, and another one has not begun to list yet
			f.replicas.stop()
			address, stop := f.replicas.start()
			f.replicas.use(address)
			f.replicas.stop = stop
			return "after-a-signal"
		},
		func() string { // one of two replicas is killed
			address, stop := f.replicas.start()
			f.replicas.use(address)
			f.replicas.stop()
			f.replicas.stop = stop
			return "after-a-kill"
		},
	} {
		name := change()
		putConfigMap(f.members["m1"], "other", name)
		wants([][]string{{"after-a-signal", "new", "only-in-m2"}, {"after-a-kill", "after-a-signal", "new", "only-in-m2"}}[i]...)
		if text := f.replicas.readyz(); text != "ok" {
			t.Errorf("the replica that serves is not ready: %s", text)
		}
	}
	mu.Lock()
	defer mu.Unlock()
	if !slices.Equal(deleted, []string{"only-in-m1"}) {
		t.Errorf("deleted: %v", deleted)
	}
}

// table returns the names of the columns of a list, and the first two cells of its rows.
func (f *fleet) table(path string) (columns []string, rows []string) {
	f.Helper()
	req, err := http.NewRequestWithContext(f.Context(), http.MethodGet, f.config.Host+path, nil)
	if err != nil {
		f.Fatal(err)
	}
	req.Header.Set("Accept", "application/json;as=Table;v=v1;g=meta.k8s.io")
	c, err := rest.HTTPClientFor(f.config)
	if err != nil {
		f.Fatal(err)
	}
	answer, err := c.Do(req)
	if err != nil {
		f.Fatal(err)
	}
	defer answer.Body.Close() //nolint:errcheck // it was read
	var out metav1.Table
	if err := json.NewDecoder(answer.Body).Decode(&out); err != nil {
		f.Fatal(err)
	}
	for _, c := range out.ColumnDefinitions {
		columns = append(columns, c.Name)
	}
	for _, r := range out.Rows {
		rows = append(rows, fmt.Sprint(r.Cells[:min(2, len(r.Cells))]...))
	}
	return columns, rows
}

// With consistent=true the members answer at once, as the requester; one that does not is named.
func TestProxy_Consistent(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	requesters := make(chan string, 100)
	f.members["m1"].Fail(func(r *http.Request) int {
		if r.URL.Path == "/api/v1/namespaces/team/configmaps" && r.URL.Query().Get("labelSelector") == "app!=other" {
			requesters <- r.Header.Get("Impersonate-User")
		}
		return 0
	})
	putConfigMap(f.members["m1"], "team", "new")
	const path = "namespaces/team/configmaps?consistent=true&labelSelector=app!%3Dother&limit=1"
	code, data := f.call("alice", http.MethodGet, path, "", "")
	var list struct {
		Metadata metav1.ListMeta
		Items    []unstructured.Unstructured
	}
	if err := json.Unmarshal([]byte(data), &list); err != nil || code != http.StatusOK {
		t.Fatalf("%d %v %s", code, err, data)
	}
	var names []string
	for _, item := range list.Items {
		names = append(names, item.GetAnnotations()[clusterv1alpha1.CacheSourceAnnotation]+"/"+item.GetName())
		if item.GetKind() != "ConfigMap" || item.GetAPIVersion() != "v1" {
			t.Errorf("an item has no kind: %v", item.Object)
		}
	}
	if !slices.Equal(names, []string{"m1/new", "m1/shared", "m2/shared"}) || list.Metadata.Continue != "" {
		t.Errorf("%v, continue %q", names, list.Metadata.Continue)
	}
	if versions, ok := search.DecodeVersions(list.Metadata.ResourceVersion); !ok || !versions.Has("m1") || !versions.Has("m2") {
		t.Errorf("the version is %q", list.Metadata.ResourceVersion)
	}
	if got := <-requesters; got != "alice" {
		t.Errorf("m1 was asked as %q", got)
	}
	f.members["m2"].Fail(func(r *http.Request) int {
		if r.URL.Query().Get("labelSelector") != "" {
			return http.StatusInternalServerError
		}
		return 0
	})
	if code, data = f.call("alice", http.MethodGet, path, "", ""); code != http.StatusOK || strings.Contains(data, `"m2"`) {
		t.Errorf("without m2: %d %s", code, data)
	}
	if code, data = f.call("alice", http.MethodGet, path+"&strict=true", "", ""); code != http.StatusServiceUnavailable || !strings.Contains(data, "cluster m2: it answered 500") {
		t.Errorf("strict without m2: %d %s", code, data)
	}
}

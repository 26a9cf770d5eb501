package cache

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/karmada-toolkit/karmada/internal/build"
	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
	searchv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/search/v1alpha1"
	"github.com/karmada-toolkit/karmada/pkg/domain/search"
	"github.com/karmada-toolkit/karmada/pkg/member/access"
	"github.com/karmada-toolkit/karmada/pkg/member/access/accesstest"
)

// A watch begins while the objects are listed: each is sent once, and the end of the initial objects comes after them.
func TestWatch_DuringTheFirstList(t *testing.T) {
	f := newFederation(t, 0, "m1", "m2")
	for i := range 200 {
		f.put("m1", "a", fmt.Sprintf("x%03d", i), "")
	}
	f.follow(registry("r", nil, configMapsIn("")))
	var watchers []*watcher
	for range 20 {
		watchers = append(watchers, f.watch(Query{Kind: configMaps.GroupVersion().WithKind("ConfigMap")}, Start{}))
	}
	for _, w := range watchers {
		accesstest.Eventually(t, func() error {
			w.mu.Lock()
			defer w.mu.Unlock()
			if len(w.events) != 201 || w.events[200] != "initial" {
				return fmt.Errorf("%d events, the last %q", len(w.events), w.events[max(0, len(w.events)-1):])
			}
			return nil
		})
		sent := map[string]bool{}
		for _, e := range w.events {
			if sent[e] {
				t.Errorf("%s twice", e)
			}
			sent[e] = true
		}
	}
}

func TestSource_Unsent(t *testing.T) {
	object := func(version string) *Object { return &Object{Name: "x", Version: version} }
	for name, tc := range map[string]struct {
		change change
		want   string
	}{
		"the same object":              {change{now: object("5")}, "nothing"},
		"an earlier one":               {change{now: object("4")}, "nothing"},
		"an earlier one that changed":  {change{old: object("3"), now: object("4")}, "nothing"},
		"a later one":                  {change{now: object("10")}, "from 5 to 10"},
		"a later one that was changed": {change{old: object("5"), now: object("10")}, "from 5 to 10"},
		"a deletion":                   {change{old: object("5")}, "from 5 to none"},
	} {
		tc.change.key = object("").key()
		s := source{sent: map[types.NamespacedName]*Object{object("").key(): object("5")}}
		got := "nothing"
		if c, ok := s.unsent(queued{"m1", tc.change}); ok {
			got = "from " + c.old.Version + " to none"
			if c.now != nil {
				got = "from " + c.old.Version + " to " + c.now.Version
			}
		}
		if got != tc.want {
			t.Errorf("%s: %s, want %s", name, got, tc.want)
		}
	}
}

// widgets is a kind whose definition the cluster replaces.
var widgets = schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "widgets"}

// widgetKinds knows the kind with a scope, as the control plane does.
func widgetKinds(scope meta.RESTScope) meta.RESTMapper {
	m := meta.NewDefaultRESTMapper(nil)
	m.Add(widgets.GroupVersion().WithKind("Widget"), scope)
	return m
}

// define makes a cluster serve the kind in a scope; an empty one takes it away.
func (f *federation) define(cluster, scope string) {
	server := f.servers[cluster]
	server.Remove("/apis/example.com/v1")
	if scope == "" {
		server.Fail(func(r *http.Request) int {
			if strings.HasPrefix(r.URL.Path, "/apis/example.com") {
				return http.StatusNotFound
			}
			return 0
		})
		return
	}
	server.Put("/apis/example.com/v1", &unstructured.Unstructured{Object: map[string]any{
		"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": "example.com/v1",
		"resources": []any{map[string]any{"name": "widgets", "kind": "Widget", "namespaced": scope == "namespaced", "verbs": []any{"list", "watch"}}},
	}})
	server.Fail(func(r *http.Request) int {
		if scope == "cluster" && strings.HasPrefix(r.URL.Path, "/apis/example.com/v1/namespaces") {
			return http.StatusNotFound
		}
		return 0
	})
}

func (f *federation) putWidget(cluster, namespace, name string) string {
	path := "/apis/example.com/v1/widgets/" + name
	object := map[string]any{"name": name}
	if namespace != "" {
		path = "/apis/example.com/v1/namespaces/" + namespace + "/widgets/" + name
		object["namespace"] = namespace
	}
	f.servers[cluster].Put(path, &unstructured.Unstructured{Object: map[string]any{"apiVersion": "example.com/v1", "kind": "Widget", "metadata": object}})
	return path
}

// A definition is removed and added again with another scope: the objects are those of the new one, and watches go on.
func TestCaches_ScopeChanges(t *testing.T) {
	for _, namespace := range []string{"", "a"} {
		t.Run("namespace "+namespace, func(t *testing.T) {
			f := newFederation(t, 0, "m1")
			member, err := access.NewSingle("m1", f.servers["m1"].Config(), widgetKinds(meta.RESTScopeNamespace))
			if err != nil {
				t.Fatal(err)
			}
			f.members["m1"] = member
			f.define("m1", "namespaced")
			path := f.putWidget("m1", "a", "x")
			f.putWidget("m1", "b", "hidden")
			kind := widgets.GroupVersion().WithKind("Widget")
			f.follow(registry("r", nil, searchv1alpha1.ResourceSelector{APIVersion: "example.com/v1", Kind: "Widget", Namespace: namespace}))
			has := func(want ...string) {
				t.Helper()
				accesstest.Eventually(t, func() error {
					result, err := f.List(Query{Resource: widgets, Kind: kind})
					if err != nil {
						return err
					}
					var got []string
					for _, item := range result.Items {
						got = append(got, item.Namespace+"/"+item.Name)
					}
					if !slices.Equal(got, want) {
						f.clock.Step(retryInterval)
						return fmt.Errorf("got %q, want %q: %+v", got, want, f.States())
					}
					return nil
				})
			}
			if namespace == "" {
				has("a/x", "b/hidden")
			} else {
				has("a/x")
			}
			// It is removed: the kind is not served, and its objects are gone.
			f.servers["m1"].Remove(path)
			f.servers["m1"].Remove("/apis/example.com/v1/namespaces/b/widgets/hidden")
			f.define("m1", "")
			f.servers["m1"].CloseClientConnections()
			has()
			accesstest.Eventually(t, func() error {
				if states := f.States(); len(states) != 1 || states[0].Failure != search.FailureUnknownKind {
					return fmt.Errorf("the states are %+v", states)
				}
				return nil
			})
			f.define("m1", "cluster")
			cluster := f.putWidget("m1", "", "wide")
			has("/wide")
			// It is replaced while nobody looks.
			f.servers["m1"].Remove(cluster)
			f.define("m1", "namespaced")
			f.putWidget("m1", "a", "y")
			f.servers["m1"].CloseClientConnections()
			has("a/y")
		})
	}
}

// Connections with other credentials: watches get what changed, not all objects.
func TestWatch_OtherConnections(t *testing.T) {
	f := newFederation(t, 0, "m1")
	for _, name := range []string{"x", "y", "z"} {
		f.put("m1", "a", name, "")
	}
	f.follow(registry("r", nil, configMapsIn("")))
	f.has(Query{}, "m1 a/x", "m1 a/y", "m1 a/z")
	w := f.watch(Query{}, Start{})
	w.wants("ADDED m1 a/x", "ADDED m1 a/y", "ADDED m1 a/z", "initial")
	f.ready("m1", false)
	accesstest.Eventually(t, func() error {
		if states := f.States(); !strings.HasPrefix(states[0].Failure, "not Ready since") {
			return fmt.Errorf("the states are %+v", states)
		}
		return nil
	})
	f.put("m1", "a", "y", "app=web")
	f.servers["m1"].Remove("/api/v1/namespaces/a/configmaps/z")
	member, err := access.NewSingle("m1", f.servers["m1"].Config(), kinds())
	if err != nil {
		t.Fatal(err)
	}
	f.mu.Lock()
	f.members["m1"] = member
	f.mu.Unlock()
	f.ready("m1", true)
	w.wants("MODIFIED m1 a/y", "DELETED m1 a/z")
	f.has(Query{}, "m1 a/x", "m1 a/y")
}

// A member restored from a backup ends the watch of its kind also if its connections changed meanwhile.
func TestWatch_RestoredBehindOtherConnections(t *testing.T) {
	f := newFederation(t, 0, "m1")
	f.put("m1", "a", "x", "")
	backup := f.servers["m1"].Backup()
	for i := range 5 {
		f.put("m1", "a", fmt.Sprint("y", i), "")
	}
	f.follow(registry("r", nil, configMapsIn("")))
	w := f.watch(Query{}, Start{})
	f.has(Query{}, "m1 a/x", "m1 a/y0", "m1 a/y1", "m1 a/y2", "m1 a/y3", "m1 a/y4")
	f.ready("m1", false)
	accesstest.Eventually(t, func() error {
		if states := f.States(); !strings.HasPrefix(states[0].Failure, "not Ready since") {
			return fmt.Errorf("the states are %+v", states)
		}
		return nil
	})
	f.servers["m1"].Restore(backup, 0)
	member, err := access.NewSingle("m1", f.servers["m1"].Config(), kinds())
	if err != nil {
		t.Fatal(err)
	}
	f.mu.Lock()
	f.members["m1"] = member
	f.mu.Unlock()
	f.ready("m1", true)
	if err := <-w.err; !errors.Is(err, ErrExpired) {
		t.Errorf("the watch ends with %v", err)
	}
	w.err <- nil
	f.has(Query{}, "m1 a/x")
}

// The member has forgotten the changes since the version of the cache's watch.
func TestCaches_WatchExpired(t *testing.T) {
	f := newFederation(t, 0, "m1")
	f.put("m1", "a", "x", "")
	var watches atomic.Int32
	f.servers["m1"].Fail(func(r *http.Request) int {
		if r.URL.Query().Get("watch") == "" {
			return 0
		}
		switch watches.Add(1) {
		case 1: // the changes are while nothing is watched
			f.put("m1", "a", "y", "")
			f.servers["m1"].Remove("/api/v1/namespaces/a/configmaps/x")
			return http.StatusGone
		case 2:
			return http.StatusGone
		}
		return 0
	})
	w := f.watch(Query{Kind: configMaps.GroupVersion().WithKind("ConfigMap")}, Start{})
	if err := <-w.err; !errors.Is(err, ErrExpired) {
		t.Errorf("the watch of a kind that no registry selects ends with %v", err)
	}
	w.err <- nil
	f.follow(registry("r", nil, configMapsIn("")))
	f.has(Query{}, "m1 a/y")
	if n := watches.Load(); n == 0 {
		t.Error("no watch expired")
	}
	f.put("m1", "a", "z", "")
	f.has(Query{}, "m1 a/y", "m1 a/z")
}

func TestWatch_FiveClustersJoinAtOnce(t *testing.T) {
	f := newFederation(t, 0, "m0", "m1", "m2", "m3", "m4", "m5")
	for name := range f.clusters {
		f.put(name, "a", "x", "")
	}
	joining := f.clusters
	f.clusters = map[string]*clusterv1alpha1.Cluster{"m0": joining["m0"]}
	f.follow(registry("r", nil, configMapsIn("")))
	f.has(Query{}, "m0 a/x")
	w := f.watch(Query{}, Start{})
	w.wants("ADDED m0 a/x", "initial")
	f.clusters = joining
	f.follow(f.registries...)
	want := []string{"ADDED m1 a/x", "ADDED m2 a/x", "ADDED m3 a/x", "ADDED m4 a/x", "ADDED m5 a/x"}
	accesstest.Eventually(t, func() error {
		w.mu.Lock()
		defer w.mu.Unlock()
		if got := slices.Sorted(slices.Values(w.events)); !slices.Equal(got, want) {
			return fmt.Errorf("events %q", got)
		}
		return nil
	})
}

// 100 watches of which one is not read: it ends, and holds no other up.
func TestWatch_OneOfManyIsNotRead(t *testing.T) {
	f := newFederation(t, 0, "m1")
	f.follow(registry("r", nil, configMapsIn("")))
	accesstest.Eventually(t, func() error {
		if states := f.States(); len(states) != 1 || states[0].Failure != "" {
			return fmt.Errorf("the states are %+v", states)
		}
		return nil
	})
	release, stuck, blocked := make(chan struct{}), make(chan error, 1), make(chan struct{}, 1)
	go func() {
		stuck <- f.Watch(t.Context(), Query{Resource: configMaps}, Start{}, func(e Event) error {
			if e.Object != nil {
				select {
				case blocked <- struct{}{}:
				default:
				}
				<-release
			}
			return nil
		})
	}()
	var sent [99]atomic.Int64
	for i := range sent {
		go func() {
			_ = f.Watch(t.Context(), Query{Resource: configMaps}, Start{}, func(e Event) error {
				if e.Object != nil {
					sent[i].Add(1)
				}
				return nil
			})
		}()
	}
	var feed *feed
	for _, k := range f.all() {
		for _, s := range k.stores {
			feed = &s.feed
		}
	}
	accesstest.Eventually(t, func() error {
		feed.mu.Lock()
		defer feed.mu.Unlock()
		if n := len(feed.readers); n != 100 {
			return fmt.Errorf("%d watches", n)
		}
		return nil
	})
	const changes = queueLength + 2
	for i := range changes {
		feed.add(change{now: &Object{Name: "x", Version: fmt.Sprint(1000 + i)}, version: fmt.Sprint(1000 + i)})
		if i == 0 {
			<-blocked
		}
		for j := range sent { // as fast as those that read
			for int64(i)-sent[j].Load() > queueLength/2 {
				time.Sleep(time.Millisecond)
			}
		}
	}
	for i := range sent {
		accesstest.Eventually(t, func() error {
			if n := sent[i].Load(); n != changes {
				return fmt.Errorf("watch %d has %d of %d changes", i, n, changes)
			}
			return nil
		})
	}
	close(release)
	if err := <-stuck; !errors.Is(err, ErrExpired) {
		t.Errorf("the watch that was not read ends with %v", err)
	}
}

// Pages and versions of one replica are good on another.
func TestCaches_TwoReplicas(t *testing.T) {
	f := newFederation(t, 0, "m1", "m2")
	var want []string
	for _, cluster := range []string{"m1", "m2"} {
		for i := range 5 {
			f.put(cluster, "a", fmt.Sprint("x", i), "")
			want = append(want, fmt.Sprintf("%s a/x%d", cluster, i))
		}
	}
	second := New(f.deps)
	t.Cleanup(second.End)
	f.follow(registry("r", nil, configMapsIn("")))
	second.Follow(t.Context(), f.registries, f.current())
	replicas := []*federation{f, {T: t, Caches: second}}
	for _, r := range replicas {
		r.has(Query{}, want...)
	}
	var got []string
	token := ""
	var versions map[string]string
	for page := 0; page == 0 || token != ""; page++ {
		items, result := replicas[page%2].list(Query{Limit: 3, Continue: token})
		got, token, versions = append(got, items...), result.Continue, result.Versions
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %q", got)
	}
	first := replicas[0].watch(Query{}, Start{Versions: search.NewVersions(versions)})
	first.wants("initial")
	f.put("m2", "a", "y", "")
	first.wants("ADDED m2 a/y")
	seen := first.seen()
	f.put("m1", "a", "z", "")
	next := replicas[1].watch(Query{}, Start{Versions: seen})
	accesstest.Eventually(t, func() error {
		next.mu.Lock()
		defer next.mu.Unlock()
		if got := slices.DeleteFunc(slices.Clone(next.events), func(e string) bool { return e == "initial" }); !slices.Equal(got, []string{"ADDED m1 a/z"}) {
			return fmt.Errorf("events %q", got)
		}
		return nil
	})
}

// lying is a member whose answers a test chooses.
func lying(t *testing.T, f *federation, name string, serve http.HandlerFunc) {
	t.Helper()
	server := httptest.NewServer(serve)
	t.Cleanup(func() {
		server.CloseClientConnections()
		server.Close()
	})
	member, err := access.NewSingle(name, &rest.Config{Host: server.URL, QPS: -1}, kinds())
	if err != nil {
		t.Fatal(err)
	}
	f.members[name] = member
}

// A member lies about versions: its objects are cached nevertheless, and another's watch goes on.
func TestCaches_VersionsThatAreNone(t *testing.T) {
	f := newFederation(t, 0, "liar", "m1")
	f.put("m1", "a", "x", "")
	event := func(kind, name, version string) string {
		return fmt.Sprintf(`{"type":%q,"object":{"apiVersion":"v1","kind":"ConfigMap","metadata":{"namespace":"a","name":%q,"resourceVersion":%q}}}`+"\n", kind, name, version)
	}
	lying(t, f, "liar", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if r.URL.Query().Get("watch") == "" {
			_, _ = io.WriteString(w, `{"apiVersion":"v1","kind":"ConfigMapList","metadata":{"resourceVersion":"not a number"},"items":[]}`)
			return
		}
		_, _ = io.WriteString(w, event("ADDED", "one", "99999999999999999999999999")+event("ADDED", "two", "-7")+event("ADDED", "three", "x")+event("MODIFIED", "one", "3"))
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	})
	f.follow(registry("r", nil, configMapsIn("")))
	f.has(Query{}, "liar a/one", "liar a/three", "liar a/two", "m1 a/x")
	w := f.watch(Query{Namespace: "b"}, Start{})
	w.wants("initial")
	f.put("m1", "b", "y", "")
	w.wants("ADDED m1 b/y")
}

// A number that Kubernetes' types would decode for minutes is not cached: neither a list nor a watch has it.
func TestCaches_CostlyQuantities(t *testing.T) {
	f := newFederation(t, 0, "hostile", "m1")
	deployment := func(cluster, cpu string) {
		f.servers[cluster].Put("/apis/apps/v1/namespaces/a/deployments/x", &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "apps/v1", "kind": "Deployment", "metadata": map[string]any{"namespace": "a", "name": "x"},
			"spec": map[string]any{"template": map[string]any{"spec": map[string]any{"containers": []any{map[string]any{
				"name": "x", "image": "1e300000000", "resources": map[string]any{"requests": map[string]any{"cpu": cpu}},
			}}}}},
		}})
	}
	deployment("hostile", "1e-300000000")
	deployment("m1", "100m")
	build.Bounded(t, time.Minute, 256<<20, func() {
		f.follow(registry("r", nil, searchv1alpha1.ResourceSelector{APIVersion: "apps/v1", Kind: "Deployment"}))
		accesstest.Eventually(t, func() error {
			result, err := f.List(Query{Resource: schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}})
			if err != nil || len(result.Items) != 1 || result.Items[0].Cluster != "m1" || len(result.Missing) != 1 || !strings.Contains(result.Missing[0].Reason, "out of range") {
				return fmt.Errorf("%+v, %w", result, err)
			}
			return nil
		})
	})
}

// An answer without an end is cut off, and the member's failure says so; another's objects are cached.
func TestCaches_AnswerWithoutEnd(t *testing.T) {
	f := newFederation(t, 0, "endless", "m1")
	f.put("m1", "a", "x", "")
	var written atomic.Int64
	item := `{"metadata":{"namespace":"a","name":"x","annotations":{"a":"` + strings.Repeat("z", 1<<20) + `"}}},`
	lying(t, f, "endless", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, err := io.WriteString(w, `{"apiVersion":"v1","kind":"ConfigMapList","metadata":{"resourceVersion":"1"},"items":[`)
		sent := int64(0)
		for err == nil && r.Context().Err() == nil && sent < 1<<30 {
			var n int
			n, err = io.WriteString(w, item)
			sent += int64(n)
		}
		written.Store(max(written.Load(), sent))
	})
	f.follow(registry("r", nil, configMapsIn("")))
	f.has(Query{}, "m1 a/x")
	accesstest.Eventually(t, func() error {
		_, result := f.list(Query{})
		if len(result.Missing) != 1 || result.Missing[0].Cluster != "endless" || result.Missing[0].Reason == search.FailureListing || written.Load() == 0 {
			return fmt.Errorf("missing %v, written %d", result.Missing, written.Load())
		}
		return nil
	})
	if n := written.Load(); n > 4*access.MaxAnswer {
		t.Errorf("%d bytes were read", n)
	}
}

// A member whose watch sends nothing is not given up: each watch has a time limit after which another one begins.
func TestCaches_WatchesEnd(t *testing.T) {
	f := newFederation(t, 0, "m1")
	limits := make(chan string, 100)
	f.servers["m1"].Fail(func(r *http.Request) int {
		if r.URL.Query().Get("watch") != "" {
			limits <- r.URL.Query().Get("timeoutSeconds")
		}
		return 0
	})
	f.follow(registry("r", nil, configMapsIn("")))
	seconds, err := time.ParseDuration(<-limits + "s")
	if err != nil || seconds <= 0 || seconds > 10*time.Minute {
		t.Errorf("a watch ends after %s, %v", seconds, err)
	}
	f.has(Query{})
	f.servers["m1"].CloseClientConnections() // as when the time is over
	<-limits
	f.put("m1", "a", "x", "")
	f.has(Query{}, "m1 a/x")
	if _, result := f.list(Query{}); len(result.Missing) != 0 {
		t.Errorf("missing: %v", result.Missing)
	}
}

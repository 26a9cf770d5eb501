package cache

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"

	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
	policyv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/policy/v1alpha1"
	searchv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/search/v1alpha1"
	"github.com/karmada-toolkit/karmada/pkg/domain/search"
	"github.com/karmada-toolkit/karmada/pkg/member/access"
	"github.com/karmada-toolkit/karmada/pkg/member/access/accesstest"
)

var configMaps = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}

func kinds() meta.RESTMapper {
	m := meta.NewDefaultRESTMapper(nil)
	m.Add(schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}, meta.RESTScopeNamespace)
	m.Add(schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}, meta.RESTScopeNamespace)
	return m
}

// federation is caches of some members.
type federation struct {
	*testing.T
	*Caches
	clock   *clocktesting.FakeClock
	servers map[string]*accesstest.Server

	mu      sync.Mutex
	members map[string]*access.Single
	// refused are the members that cannot be opened.
	refused map[string]bool

	registries []*searchv1alpha1.ResourceRegistry
	clusters   map[string]*clusterv1alpha1.Cluster
}

func newFederation(t *testing.T, memory int64, names ...string) *federation {
	t.Helper()
	f := &federation{
		T: t, clock: clocktesting.NewFakeClock(time.Unix(1000, 0)), servers: map[string]*accesstest.Server{},
		members: map[string]*access.Single{}, refused: map[string]bool{}, clusters: map[string]*clusterv1alpha1.Cluster{},
	}
	f.Caches = New(Deps{Members: f.member, Clock: f.clock, MemoryLimit: memory})
	t.Cleanup(f.End)
	for _, name := range names {
		f.servers[name] = accesstest.New(t)
		member, err := access.NewSingle(name, f.servers[name].Config(), kinds())
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

func (f *federation) member(ctx context.Context, c *clusterv1alpha1.Cluster) (*access.Member, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.refused[c.Name] {
		return nil, &url.Error{Op: "Get", URL: "https://10.0.0.1:6443/api", Err: errors.New("no credentials")}
	}
	return f.members[c.Name].Member(ctx, c)
}

func (f *federation) put(cluster, namespace, name, labels string) {
	u := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{
		"namespace": namespace, "name": name, "managedFields": []any{map[string]any{"manager": "someone"}},
		"annotations": map[string]any{clusterv1alpha1.CacheSourceAnnotation: "a lie"},
	}}}
	if key, value, ok := strings.Cut(labels, "="); ok {
		u.SetLabels(map[string]string{key: value})
	}
	f.servers[cluster].Put("/api/v1/namespaces/"+namespace+"/configmaps/"+name, u)
}

func registry(name string, clusters []string, selectors ...searchv1alpha1.ResourceSelector) *searchv1alpha1.ResourceRegistry {
	return &searchv1alpha1.ResourceRegistry{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: searchv1alpha1.ResourceRegistrySpec{
			TargetCluster: policyv1alpha1.ClusterAffinity{ClusterNames: clusters}, ResourceSelectors: selectors,
		},
	}
}

func configMapsIn(namespace string) searchv1alpha1.ResourceSelector {
	return searchv1alpha1.ResourceSelector{APIVersion: "v1", Kind: "ConfigMap", Namespace: namespace}
}

// follow applies the registries and clusters.
func (f *federation) follow(registries ...*searchv1alpha1.ResourceRegistry) {
	f.registries = registries
	f.Follow(f.Context(), registries, f.current())
}

func (f *federation) current() []*clusterv1alpha1.Cluster {
	out := make([]*clusterv1alpha1.Cluster, 0, len(f.clusters))
	for _, c := range f.clusters {
		out = append(out, c.DeepCopy())
	}
	return out
}

// ready sets the condition Ready of a cluster.
func (f *federation) ready(cluster string, ready bool) {
	status := metav1.ConditionFalse
	if ready {
		status = metav1.ConditionTrue
	}
	f.clusters[cluster].Status.Conditions[0].Status = status
	f.follow(f.registries...)
}

func (f *federation) list(q Query) ([]string, Result) {
	f.Helper()
	q.Resource = configMaps
	result, err := f.List(q)
	if err != nil {
		f.Fatal(err)
	}
	out := make([]string, 0, len(result.Items))
	for _, item := range result.Items {
		out = append(out, item.Cluster+" "+item.Namespace+"/"+item.Name)
	}
	return out, result
}

// has waits until a list has these objects.
func (f *federation) has(q Query, want ...string) {
	f.Helper()
	accesstest.Eventually(f, func() error {
		if got, _ := f.list(q); !slices.Equal(got, want) {
			return fmt.Errorf("got %q, want %q, states %+v", got, want, f.States())
		}
		return nil
	})
}

func TestCaches_FollowObjects(t *testing.T) {
	f := newFederation(t, 0, "m1", "m2")
	f.put("m1", "a", "x", "app=web")
	f.put("m2", "a", "x", "")
	f.put("m2", "b", "y", "app=web")
	f.follow(registry("r", nil, configMapsIn("")))
	f.has(Query{}, "m1 a/x", "m2 a/x", "m2 b/y")
	f.has(Query{Namespace: "b"}, "m2 b/y")
	f.has(Query{Namespace: "a", Name: "x"}, "m1 a/x", "m2 a/x")
	f.has(Query{Labels: labels.SelectorFromSet(labels.Set{"app": "web"})}, "m1 a/x", "m2 b/y")
	f.put("m1", "a", "z", "")
	f.servers["m2"].Remove("/api/v1/namespaces/a/configmaps/x")
	f.has(Query{}, "m1 a/x", "m1 a/z", "m2 b/y")
	_, result := f.list(Query{Namespace: "a", Name: "z"})
	object, err := result.Items[0].Decode()
	if err != nil || object.GetKind() != "ConfigMap" || object.GetResourceVersion() != result.Items[0].Version || object.GetManagedFields() != nil ||
		object.GetAnnotations()[clusterv1alpha1.CacheSourceAnnotation] != "m1" {
		t.Errorf("got %v, %v", object, err)
	}
	want := []search.Observation{{Objects: 2, Since: f.clock.Now()}, {Objects: 1, Since: f.clock.Now()}}
	want[0].Cluster, want[1].Cluster = "m1", "m2"
	want[0].Kind.Version, want[0].Kind.Kind = "v1", "ConfigMap"
	want[1].Kind = want[0].Kind
	if diff := cmp.Diff(want, f.States()); diff != "" {
		t.Error(diff)
	}
}

func TestCaches_Pages(t *testing.T) {
	f := newFederation(t, 0, "m1", "m2", "m3")
	var want []string
	for _, cluster := range []string{"m1", "m2", "m3"} {
		for i := range 3 {
			f.put(cluster, "a", fmt.Sprint("x", i), "")
			want = append(want, fmt.Sprintf("%s a/x%d", cluster, i))
		}
	}
	f.follow(registry("r", nil, configMapsIn("")))
	f.has(Query{}, want...)
	for limit := int64(1); limit <= 10; limit++ {
		var got []string
		for token, pages := "", 0; ; pages++ {
			page, result := f.list(Query{Limit: limit, Continue: token})
			if got = append(got, page...); int64(len(page)) > limit || pages > 9 {
				t.Fatalf("limit %d: page %d has %d", limit, pages, len(page))
			}
			if token = result.Continue; token == "" {
				break
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("limit %d: %q", limit, got)
		}
	}
	_, first := f.list(Query{Limit: 4})
	f.follow(registry("r", []string{"m1", "m3"}, configMapsIn("")))
	f.has(Query{Limit: 4, Continue: first.Continue}, "m3 a/x0", "m3 a/x1", "m3 a/x2") // the cluster of the token left
	for _, bad := range []string{"!", "bm8", "e30"} {
		if _, err := f.List(Query{Resource: configMaps, Continue: bad}); !errors.As(err, new(TokenError)) {
			t.Errorf("token %q: %v", bad, err)
		}
	}
}

func TestCaches_Namespaces(t *testing.T) {
	f := newFederation(t, 0, "m1")
	for _, namespace := range []string{"a", "b", "c"} {
		f.put("m1", namespace, "x", "")
	}
	f.follow(registry("r", nil, configMapsIn("a")), registry("s", nil, configMapsIn("b")))
	f.has(Query{}, "m1 a/x", "m1 b/x")
	f.follow(registry("r", nil, configMapsIn("b"), configMapsIn("c")))
	if got, _ := f.list(Query{}); slices.Contains(got, "m1 a/x") {
		t.Errorf("an object of a namespace that is not selected any more is listed: %q", got)
	}
	f.has(Query{}, "m1 b/x", "m1 c/x")
	f.follow(registry("r", nil, configMapsIn("")))
	f.has(Query{}, "m1 a/x", "m1 b/x", "m1 c/x")
	f.follow()
	if got, result := f.list(Query{}); len(got)+len(result.Missing) > 0 {
		t.Errorf("without a registry: %q, %v", got, result.Missing)
	}
	if _, ok := f.Kind(configMaps); ok {
		t.Error("the kind is still known")
	}
}

func TestCaches_LostClusters(t *testing.T) {
	f := newFederation(t, 0, "m1", "m2")
	f.put("m1", "a", "x", "")
	f.put("m2", "a", "x", "")
	f.follow(registry("r", nil, configMapsIn("")))
	f.has(Query{}, "m1 a/x", "m2 a/x")
	f.ready("m1", false)
	accesstest.Eventually(t, func() error {
		if _, result := f.list(Query{}); len(result.Missing) != 1 || result.Missing[0] != (Missing{"m1", "not Ready since 1970-01-01T00:16:40Z"}) {
			return fmt.Errorf("got %v", result.Missing)
		}
		return nil
	})
	f.has(Query{}, "m1 a/x", "m2 a/x")
	f.put("m1", "a", "y", "")
	f.ready("m1", true)
	f.has(Query{}, "m1 a/x", "m1 a/y", "m2 a/x")
	missing := func(want int) {
		t.Helper()
		accesstest.Eventually(t, func() error {
			if _, result := f.list(Query{}); len(result.Missing) != want {
				return fmt.Errorf("missing: %v", result.Missing)
			}
			return nil
		})
	}
	missing(0)
	f.ready("m1", false)
	missing(1)
	f.clock.Step(defaultLostGrace)
	f.has(Query{}, "m2 a/x")
	if _, result := f.list(Query{}); len(result.Missing) != 1 || result.Missing[0].Reason != search.FailureNotReady {
		t.Errorf("missing: %v", result.Missing)
	}
	f.ready("m1", true)
	f.has(Query{}, "m1 a/x", "m1 a/y", "m2 a/x")
	delete(f.clusters, "m1")
	f.follow(f.registries...)
	if got, _ := f.list(Query{}); !slices.Equal(got, []string{"m2 a/x"}) {
		t.Errorf("objects of a cluster that left: %q", got)
	}
}

// A member that hangs, one that cannot be opened and one that does not answer delay and hide nothing of another. Reasons have no URLs.
func TestCaches_FailingMembers(t *testing.T) {
	f := newFederation(t, 0, "down", "good", "hangs", "refused")
	f.servers["down"].Close()
	release := make(chan struct{})
	f.servers["hangs"].Fail(func(r *http.Request) int {
		select {
		case <-release:
		case <-r.Context().Done():
		}
		return http.StatusServiceUnavailable
	})
	t.Cleanup(func() { close(release) })
	f.refused["refused"] = true
	f.put("good", "a", "x", "")
	f.follow(registry("r", nil, configMapsIn("")))
	f.has(Query{}, "good a/x")
	accesstest.Eventually(t, func() error {
		_, result := f.list(Query{})
		if down := &result.Missing[0]; !strings.Contains(down.Reason, "://") && strings.HasSuffix(down.Reason, "connect: connection refused") {
			down.Reason = "refused"
		}
		want := []Missing{{"down", "refused"}, {"hangs", search.FailureListing}, {"refused", "no credentials"}}
		if diff := cmp.Diff(want, result.Missing); diff != "" {
			return errors.New(diff)
		}
		return nil
	})
}

func TestCaches_MemoryLimit(t *testing.T) {
	f := newFederation(t, 3000, "m1", "m2")
	f.put("m1", "a", "x", "")
	for i := range 50 {
		f.put("m2", "a", fmt.Sprint("x", i), "")
	}
	f.follow(registry("r", nil, configMapsIn("")))
	f.has(Query{}, "m1 a/x")
	accesstest.Eventually(t, func() error {
		if _, result := f.list(Query{}); len(result.Missing) != 1 || !strings.Contains(result.Missing[0].Reason, "more objects than can be kept") {
			return fmt.Errorf("missing: %v", result.Missing)
		}
		return nil
	})
	f.follow()
	accesstest.Eventually(t, func() error {
		if used := f.budget.Used(); used != 0 {
			return fmt.Errorf("%d bytes are not given back", used)
		}
		return nil
	})
}

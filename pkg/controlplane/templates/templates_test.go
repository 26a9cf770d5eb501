package templates

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/discovery/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/karmada-toolkit/karmada/internal/build"
)

func TestParseAPIs(t *testing.T) {
	for name, tc := range map[string]struct {
		tokens  string
		skipped []schema.GroupVersionKind
		kept    []schema.GroupVersionKind
		fails   bool
	}{
		"built in": {
			skipped: []schema.GroupVersionKind{
				{Group: "work.karmada.io", Version: "v1alpha1", Kind: "Work"}, {Version: "v1", Kind: "Event"},
				{Group: "events.k8s.io", Version: "v1", Kind: "Event"}, {Group: "coordination.k8s.io", Version: "v1", Kind: "Lease"},
			},
			kept: []schema.GroupVersionKind{
				{Group: "search.karmada.io", Version: "v1alpha1", Kind: "ResourceRegistry"}, {Version: "v1", Kind: "Pod"},
				{Group: "coordination.k8s.io", Version: "v1beta1", Kind: "LeaseCandidate"},
			},
		},
		"a group": {tokens: "apps", skipped: []schema.GroupVersionKind{{Group: "apps", Version: "v1", Kind: "Deployment"}}},
		"a version": {
			tokens:  "networking.k8s.io/v1beta1",
			skipped: []schema.GroupVersionKind{{Group: "networking.k8s.io", Version: "v1beta1", Kind: "Ingress"}},
			kept:    []schema.GroupVersionKind{{Group: "networking.k8s.io", Version: "v1", Kind: "Ingress"}},
		},
		"kinds": {
			tokens:  "apps/v1/Deployment,DaemonSet; v1/Pod",
			skipped: []schema.GroupVersionKind{{Group: "apps", Version: "v1", Kind: "DaemonSet"}, {Version: "v1", Kind: "Pod"}},
			kept:    []schema.GroupVersionKind{{Group: "apps", Version: "v1", Kind: "StatefulSet"}, {Version: "v1", Kind: "Service"}},
		},
		"kinds in any case": {tokens: "apps/v1/deployment", skipped: []schema.GroupVersionKind{{Group: "apps", Version: "v1", Kind: "Deployment"}}},
		"empty tokens":      {tokens: ";; apps ;"},
		"too many slashes":  {tokens: "a/b/c/d", fails: true},
		"an empty part":     {tokens: "apps//Deployment", fails: true},
	} {
		t.Run(name, func(t *testing.T) {
			apis, err := ParseAPIs(tc.tokens)
			if (err != nil) != tc.fails {
				t.Fatalf("got error %v", err)
			}
			for _, gvk := range tc.skipped {
				if !apis.Contains(gvk) {
					t.Errorf("%s is not skipped", gvk)
				}
			}
			for _, gvk := range tc.kept {
				if apis.Contains(gvk) {
					t.Errorf("%s is skipped", gvk)
				}
			}
		})
	}
}

func FuzzParseAPIs(f *testing.F) {
	for _, seed := range []string{"", "apps", "apps/v1", "apps/v1/Deployment,DaemonSet;v1/Pod", "a/b/c/d", ";/;", "v1/"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, tokens string) {
		build.Bounded(t, time.Minute, 64<<20+uint64(65536*len(tokens)), func() {
			apis, err := ParseAPIs(tokens)
			if err != nil {
				if !strings.HasPrefix(err.Error(), "Invalid API string") {
					t.Errorf("error %q", err)
				}
				return
			}
			if !apis.Contains(schema.GroupVersionKind{Group: "policy.karmada.io", Version: "v1alpha1", Kind: "PropagationPolicy"}) {
				t.Error("policies are propagated")
			}
		})
	})
}

func object(change func(map[string]any)) *unstructured.Unstructured {
	obj := map[string]any{
		"apiVersion": "apps/v1", "kind": "Deployment",
		"metadata": map[string]any{
			"name": "nginx", "namespace": "default", "resourceVersion": "1", "generation": int64(1),
			"labels": map[string]any{"app": "nginx"}, "managedFields": []any{"x"},
		},
		"spec":   map[string]any{"replicas": int64(2)},
		"status": map[string]any{"replicas": int64(0)},
	}
	if change != nil {
		change(obj)
	}
	return &unstructured.Unstructured{Object: obj}
}

func TestSameContent_AgreesWithHash(t *testing.T) {
	metadata := func(obj map[string]any) map[string]any { return obj["metadata"].(map[string]any) }
	for name, tc := range map[string]struct {
		change func(map[string]any)
		same   bool
	}{
		"nothing":            {nil, true},
		"status":             {func(o map[string]any) { o["status"] = map[string]any{"replicas": int64(2)} }, true},
		"no status":          {func(o map[string]any) { delete(o, "status") }, true},
		"resource version":   {func(o map[string]any) { metadata(o)["resourceVersion"] = "2" }, true},
		"managed fields":     {func(o map[string]any) { delete(metadata(o), "managedFields") }, true},
		"spec":               {func(o map[string]any) { o["spec"].(map[string]any)["replicas"] = int64(3) }, false},
		"no spec":            {func(o map[string]any) { delete(o, "spec") }, false},
		"a field more":       {func(o map[string]any) { o["data"] = map[string]any{} }, false},
		"a label":            {func(o map[string]any) { metadata(o)["labels"].(map[string]any)["a"] = "b" }, false},
		"an annotation":      {func(o map[string]any) { metadata(o)["annotations"] = map[string]any{"a": "b"} }, false},
		"generation":         {func(o map[string]any) { metadata(o)["generation"] = int64(2) }, false},
		"deletion timestamp": {func(o map[string]any) { metadata(o)["deletionTimestamp"] = "2024-01-01T00:00:00Z" }, false},
	} {
		t.Run(name, func(t *testing.T) {
			a, b := object(nil), object(tc.change)
			if got := SameContent(a, b); got != tc.same {
				t.Errorf("same: got %v", got)
			}
			if got := SameContent(b, a); got != tc.same {
				t.Errorf("same, the other way: got %v", got)
			}
			ah, err := Hash(a)
			if err != nil {
				t.Fatal(err)
			}
			bh, err := Hash(b)
			if err != nil {
				t.Fatal(err)
			}
			if got := ah == bh; got != tc.same {
				t.Errorf("same hash: got %v", got)
			}
		})
	}
}

func TestWatchable(t *testing.T) {
	all := metav1.Verbs{"create", "delete", "get", "list", "watch"}
	apis, err := ParseAPIs("")
	if err != nil {
		t.Fatal(err)
	}
	got := watchable([]*metav1.APIResourceList{
		{GroupVersion: "v1", APIResources: []metav1.APIResource{
			{Name: "pods", Kind: "Pod", Namespaced: true, Verbs: all}, {Name: "events", Kind: "Event", Namespaced: true, Verbs: all},
			{Name: "componentstatuses", Kind: "ComponentStatus", Verbs: metav1.Verbs{"get", "list"}},
		}},
		{GroupVersion: "work.karmada.io/v1alpha1", APIResources: []metav1.APIResource{{Name: "works", Kind: "Work", Verbs: all}}},
		{GroupVersion: "not/a/version", APIResources: []metav1.APIResource{{Name: "x", Kind: "X", Verbs: all}}},
	}, apis)
	want := []apiType{{
		gvk: schema.GroupVersionKind{Version: "v1", Kind: "Pod"}, gvr: schema.GroupVersionResource{Version: "v1", Resource: "pods"}, namespaced: true,
	}}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(apiType{})); diff != "" {
		t.Error(diff)
	}
}

// An API server that has just started lists fewer types than it serves.
func TestDiscover_TypesThatAreServedButNotListedStay(t *testing.T) {
	list := func(gv, name, kind string) *metav1.APIResourceList {
		return &metav1.APIResourceList{GroupVersion: gv, APIResources: []metav1.APIResource{{Name: name, Kind: kind, Verbs: metav1.Verbs{"delete", "list", "watch"}}}}
	}
	maps, foos, bars := list("v1", "configmaps", "ConfigMap"), list("example.com/v1", "foos", "Foo"), list("example.com/v2", "foos", "Foo")
	server := &fake.FakeDiscovery{Fake: &clienttesting.Fake{}}
	apis, err := ParseAPIs("")
	if err != nil {
		t.Fatal(err)
	}
	d := &discoverer{client: server, skipped: apis}
	unavailable := func(code int) func() {
		return func() {
			server.PrependReactor("get", "resource", func(clienttesting.Action) (bool, runtime.Object, error) {
				return true, nil, apierrors.NewGenericServerResponse(code, "get", schema.GroupResource{}, "", "", 0, true)
			})
		}
	}
	for _, step := range []struct {
		name           string
		served, listed []*metav1.APIResourceList
		before         func()
		failed         []string
	}{
		{name: "all", served: []*metav1.APIResourceList{maps, foos}, listed: []*metav1.APIResourceList{maps, foos}},
		{name: "after a restart", served: []*metav1.APIResourceList{maps, foos}, listed: []*metav1.APIResourceList{maps}, failed: []string{"example.com"}},
		{name: "still", served: []*metav1.APIResourceList{maps, foos}, listed: []*metav1.APIResourceList{maps}, failed: []string{"example.com"}},
		{name: "another version", served: []*metav1.APIResourceList{maps, foos, bars}, listed: []*metav1.APIResourceList{maps, bars}},
		{name: "not known yet", listed: []*metav1.APIResourceList{maps}, served: []*metav1.APIResourceList{maps}, before: unavailable(http.StatusServiceUnavailable), failed: []string{"example.com"}},
		{name: "deleted", listed: []*metav1.APIResourceList{maps}, served: []*metav1.APIResourceList{maps}, before: unavailable(http.StatusNotFound)},
	} {
		t.Run(step.name, func(t *testing.T) {
			if step.before != nil {
				step.before()
				defer func() { server.ReactionChain = nil }()
			}
			server.Resources = step.served
			found := discovered{failed: sets.New[string](), types: watchable(step.listed, apis)}
			d.confirm(found)
			if diff := cmp.Diff(step.failed, sets.List(found.failed), cmpopts.EquateEmpty()); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestDiff(t *testing.T) {
	gvr := func(group, version string) schema.GroupVersionResource {
		return schema.GroupVersionResource{Group: group, Version: version, Resource: "foos"}
	}
	watched := map[schema.GroupVersionResource]*watchedType{gvr("a", "v1"): {}, gvr("b", "v1"): {}}
	for name, tc := range map[string]struct {
		found []schema.GroupVersionResource
		lost  []string
		start []schema.GroupVersionResource
		stop  []schema.GroupVersionResource
	}{
		"as before":                 {found: []schema.GroupVersionResource{gvr("a", "v1"), gvr("b", "v1")}},
		"a type more":               {found: []schema.GroupVersionResource{gvr("a", "v1"), gvr("b", "v1"), gvr("c", "v1")}, start: []schema.GroupVersionResource{gvr("c", "v1")}},
		"a type less":               {found: []schema.GroupVersionResource{gvr("a", "v1")}, stop: []schema.GroupVersionResource{gvr("b", "v1")}},
		"a group that failed stays": {found: []schema.GroupVersionResource{gvr("a", "v1")}, lost: []string{"b"}},
		"another version of a group that failed is no reason to watch twice": {
			found: []schema.GroupVersionResource{gvr("a", "v1"), gvr("b", "v1beta1")}, lost: []string{"b"}},
		"another version is preferred": {
			found: []schema.GroupVersionResource{gvr("a", "v1"), gvr("b", "v2")},
			start: []schema.GroupVersionResource{gvr("b", "v2")}, stop: []schema.GroupVersionResource{gvr("b", "v1")}},
	} {
		t.Run(name, func(t *testing.T) {
			found := discovered{failed: sets.New(tc.lost...)}
			for _, g := range tc.found {
				found.types = append(found.types, apiType{gvr: g})
			}
			start, stop := found.diff(watched)
			var started []schema.GroupVersionResource
			for _, s := range start {
				started = append(started, s.gvr)
			}
			if diff := cmp.Diff(tc.start, started); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff(tc.stop, stop); diff != "" {
				t.Error(diff)
			}
		})
	}
}

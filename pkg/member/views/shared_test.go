package views_test

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/karmada-toolkit/karmada/pkg/member/access"
	"github.com/karmada-toolkit/karmada/pkg/member/access/accesstest"
	"github.com/karmada-toolkit/karmada/pkg/member/access/informer"
	"github.com/karmada-toolkit/karmada/pkg/member/views"
)

// member is a cluster whose watches of pods are counted.
type member struct {
	*accesstest.Server
	*access.Member
	watches atomic.Int32
}

func newMember(t *testing.T) *member {
	t.Helper()
	out := &member{Server: accesstest.New(t)}
	out.Fail(func(r *http.Request) int {
		if strings.HasSuffix(r.URL.Path, "/pods") && r.URL.Query().Get("watch") != "" {
			out.watches.Add(1)
			context.AfterFunc(r.Context(), func() { out.watches.Add(-1) })
		}
		return 0
	})
	var err error
	if out.Member, err = access.NewMember("m1", out.Server.Config(), nil); err != nil {
		t.Fatal(err)
	}
	return out
}

func (m *member) put(namespace, name, phase string) {
	m.Put("/api/v1/namespaces/"+namespace+"/pods/"+name, &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "Pod", "status": map[string]any{"phase": phase},
		"metadata": map[string]any{"namespace": namespace, "name": name, "labels": map[string]any{"app": name}},
	}})
}

// follow keeps the names of the objects of a source until stop is called or the test ends.
func follow(t *testing.T, from informer.Source) (p *informer.Projection[string], stop func()) {
	t.Helper()
	p = informer.New(informer.Config[string]{Name: "test", Source: from, Project: func(obj runtime.Object, _ *string) (string, error) {
		return obj.(interface{ GetName() string }).GetName(), nil
	}})
	ctx, cancel := context.WithCancel(t.Context())
	var done sync.WaitGroup
	done.Go(func() { p.Run(ctx) })
	stop = func() {
		cancel()
		done.Wait()
	}
	t.Cleanup(stop)
	return p, stop
}

// has waits until a projection has these objects.
func has(t *testing.T, p *informer.Projection[string], want ...string) {
	t.Helper()
	accesstest.Eventually(t, func() error {
		got := []string{}
		p.Each(func(key types.NamespacedName, _ *string) { got = append(got, key.String()) })
		slices.Sort(got)
		if !p.HasSynced() || !slices.Equal(got, want) {
			return fmt.Errorf("got %v, want %v", got, want)
		}
		return nil
	})
}

func (m *member) hasWatches(t *testing.T, want int32) {
	t.Helper()
	accesstest.Eventually(t, func() error {
		if n := m.watches.Load(); n != want {
			return fmt.Errorf("%d watches, want %d", n, want)
		}
		return nil
	})
}

func TestWatch_IsSharedByAllThatRead(t *testing.T) {
	m := newMember(t)
	m.put("a", "one", "Running")
	m.put("b", "two", "Pending")
	running, stopRunning := follow(t, views.Pods(m.Member, views.Selection{Phases: views.Running}))
	has(t, running, "a/one", "b/two")
	m.hasWatches(t, 1)
	inA, stopA := follow(t, views.Pods(m.Member, views.Selection{Namespace: "a"}))
	has(t, inA, "a/one")
	labeled, stopLabeled := follow(t, views.Pods(m.Member, views.Selection{Labels: "app=two"}))
	has(t, labeled, "b/two")

	m.put("a", "two", "Running")
	m.put("b", "two", "Running")
	has(t, running, "a/one", "a/two", "b/two")
	has(t, inA, "a/one", "a/two")
	has(t, labeled, "a/two", "b/two")
	m.hasWatches(t, 1)

	m.put("a", "two", "Succeeded")
	has(t, running, "a/one", "b/two")
	has(t, inA, "a/one", "a/two")

	m.Remove("/api/v1/namespaces/a/pods/two")
	m.CloseClientConnections()
	m.put("a", "three", "Running")
	has(t, running, "a/one", "a/three", "b/two")
	has(t, inA, "a/one", "a/three")
	stopA()
	stopLabeled()
	m.hasWatches(t, 1)

	complete, stopComplete := follow(t, views.Objects(m.Member, schema.GroupVersionResource{Version: "v1", Resource: "pods"}, views.Selection{}))
	has(t, complete, "a/one", "a/three", "b/two")
	m.put("b", "four", "Running")
	for _, p := range []*informer.Projection[string]{running, complete} {
		accesstest.Eventually(t, func() error {
			if p.Get(types.NamespacedName{Namespace: "b", Name: "four"}) == nil {
				return fmt.Errorf("b/four is missing")
			}
			return nil
		})
	}
	m.CloseClientConnections()
	m.hasWatches(t, 1)
	m.Remove("/api/v1/namespaces/b/pods/four")
	has(t, running, "a/one", "a/three", "b/two")
	has(t, complete, "a/one", "a/three", "b/two")

	for _, stop := range []func(){stopRunning, stopComplete} {
		stop()
	}
	m.hasWatches(t, 0)
}

// TestWatch_OfOneNamespaceIsItsOwn reads one namespace where nothing reads all.
func TestWatch_OfOneNamespaceIsItsOwn(t *testing.T) {
	m := newMember(t)
	m.put("a", "one", "Running")
	for range 2 {
		p, _ := follow(t, views.Pods(m.Member, views.Selection{Namespace: "a"}))
		has(t, p, "a/one")
	}
	m.hasWatches(t, 2)
}

package follow_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
	"github.com/karmada-toolkit/karmada/pkg/member/access"
	"github.com/karmada-toolkit/karmada/pkg/member/access/accesstest"
	"github.com/karmada-toolkit/karmada/pkg/member/follow"
)

// member is a cluster whose watches of pods are counted.
type member struct {
	*accesstest.Server
	*access.Member
	watches atomic.Int32
	// opened counts the watches that were ever opened.
	opened atomic.Int32
}

func newMember(t *testing.T) *member {
	t.Helper()
	out := &member{Server: accesstest.New(t)}
	out.Fail(func(r *http.Request) int {
		if strings.HasSuffix(r.URL.Path, "/pods") && r.URL.Query().Get("watch") != "" {
			out.watches.Add(1)
			out.opened.Add(1)
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

// start keeps the names of the objects of a source until it is stopped or the test ends.
func start(t *testing.T, from follow.Source) *follow.Projection[string] {
	t.Helper()
	p := follow.Start(t.Context(), follow.Config[string]{Name: "test", Source: from, Project: func(obj runtime.Object, _ *string) (string, error) {
		return obj.(interface{ GetName() string }).GetName(), nil
	}})
	t.Cleanup(p.Stop)
	return p
}

// has waits until a projection has these objects.
func has(t *testing.T, p *follow.Projection[string], want ...string) {
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
	running := start(t, follow.Pods(m.Member, follow.Selection{Phases: follow.Running}))
	has(t, running, "a/one", "b/two")
	m.hasWatches(t, 1)
	inA := start(t, follow.Pods(m.Member, follow.Selection{Namespace: "a"}))
	has(t, inA, "a/one")
	labeled := start(t, follow.Pods(m.Member, follow.Selection{Labels: "app=two"}))
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
	inA.Stop()
	labeled.Stop()
	m.hasWatches(t, 1)

	complete := start(t, follow.Objects(m.Member, schema.GroupVersionResource{Version: "v1", Resource: "pods"}, follow.Selection{}))
	has(t, complete, "a/one", "a/three", "b/two")
	m.put("b", "four", "Running")
	for _, p := range []*follow.Projection[string]{running, complete} {
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

	running.Stop()
	complete.Stop()
	m.hasWatches(t, 0)
}

// TestWatch_OfLessIsItsOwn reads namespaces where nothing reads all, and then all for a time.
func TestWatch_OfLessIsItsOwn(t *testing.T) {
	m := newMember(t)
	m.put("a", "one", "Running")
	m.put("b", "two", "Running")
	inA := start(t, follow.Pods(m.Member, follow.Selection{Namespace: "a"}))
	inB := start(t, follow.Pods(m.Member, follow.Selection{Namespace: "b"}))
	check := func(watches int32) {
		t.Helper()
		has(t, inA, "a/one")
		has(t, inB, "b/two")
		m.hasWatches(t, watches)
	}
	check(2)
	all := start(t, follow.Pods(m.Member, follow.Selection{Phases: follow.Running}))
	has(t, all, "a/one", "b/two")
	check(1)
	all.Stop()
	check(2)
}

// TestProjection_AloneWithWhatItCannotKeep reads with another one what is too large for one of them.
func TestProjection_AloneWithWhatItCannotKeep(t *testing.T) {
	m := newMember(t)
	m.put("a", "one", "Running")
	m.put("a", "two", "Running")
	other := start(t, follow.Pods(m.Member, follow.Selection{}))
	has(t, other, "a/one", "a/two")
	limit := atomic.Int64{}
	limit.Store(100)
	small := follow.Start(t.Context(), follow.Config[string]{
		Name: "small", Source: follow.Pods(m.Member, follow.Selection{}), MaxSize: func() int { return int(limit.Load()) },
		Project: follow.From(func(p *follow.Pod, _ *string) (string, error) { return p.Name, nil }),
	})
	t.Cleanup(small.Stop)
	if err := small.Await(t.Context()); err == nil || !strings.Contains(err.Error(), "more objects than can be kept") || small.Len() > 0 {
		t.Fatalf("%d objects, %v", small.Len(), err)
	}
	m.put("a", "three", "Running")
	has(t, other, "a/one", "a/three", "a/two")
	limit.Store(1000)
	accesstest.Eventually(t, func() error {
		small.Retry()
		return small.Ready()
	})
	has(t, small, "a/one", "a/three", "a/two")
}

// TestProjection_ThroughAnotherMember closes the Member through which a watch is open that those read who have another one.
func TestProjection_ThroughAnotherMember(t *testing.T) {
	m := newMember(t)
	m.put("a", "one", "Running")
	open := func() (*access.Pool, *access.Member) {
		pool := access.NewPool(access.Options{Secrets: func(context.Context, string, string) (*corev1.Secret, error) {
			return &corev1.Secret{Data: map[string][]byte{"token": []byte("t"), "caBundle": m.CA()}}, nil
		}})
		member, err := pool.Member(t.Context(), &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "m1"}, Spec: clusterv1alpha1.ClusterSpec{
			APIEndpoint: m.Server.URL, SecretRef: &clusterv1alpha1.LocalSecretReference{Namespace: "ns", Name: "m1"},
		}})
		if err != nil {
			t.Fatal(err)
		}
		return pool, member
	}
	pool, first := open()
	_, second := open()
	one, other := start(t, follow.Pods(first, follow.Selection{})), start(t, follow.Pods(second, follow.Selection{}))
	has(t, one, "a/one")
	has(t, other, "a/one")
	m.hasWatches(t, 1)
	before := m.opened.Load()
	pool.Keep(func(string) bool { return false })
	accesstest.Eventually(t, func() error {
		if err := one.Failure(); err == nil || !strings.Contains(err.Error(), "closed") {
			return fmt.Errorf("the failure of one whose Member is closed is %w", err)
		}
		return nil
	})
	m.put("a", "two", "Running")
	has(t, other, "a/one", "a/two")
	has(t, one, "a/one")
	accesstest.Eventually(t, func() error {
		if m.opened.Load() == before || m.watches.Load() != 1 {
			return errors.New("the watch goes on through the Member that was closed")
		}
		return nil
	})
}

// TestStreams_AnyOrder starts and stops projections at random while objects come, change and go. Each has what it selects at the end, and
// nothing calls one that was stopped.
func TestStreams_AnyOrder(t *testing.T) {
	m := newMember(t)
	random := rand.New(rand.NewPCG(1, 2))
	type running struct {
		*follow.Projection[string]
		selects func(namespace, name, phase string) bool
		stopped *atomic.Bool
	}
	names, phases := []string{"one", "two", "three", "four"}, []string{"Running", "Pending", "Succeeded"}
	pods := map[string]string{}
	var all []*running
	begin := func() {
		r := &running{selects: func(string, string, string) bool { return true }, stopped: &atomic.Bool{}}
		var from follow.Source
		switch random.IntN(5) {
		case 0:
			from = follow.Pods(m.Member, follow.Selection{Phases: follow.Running})
			r.selects = func(_, _, phase string) bool { return phase != "Succeeded" }
		case 1:
			from = follow.Objects(m.Member, corev1.SchemeGroupVersion.WithResource("pods"), follow.Selection{})
		case 2:
			from = follow.Metadata(m.Member, corev1.SchemeGroupVersion.WithResource("pods"))
		case 3:
			from = follow.Pods(m.Member, follow.Selection{Namespace: "a"})
			r.selects = func(namespace, _, _ string) bool { return namespace == "a" }
		default:
			from = follow.Objects(m.Member, corev1.SchemeGroupVersion.WithResource("pods"), follow.Selection{Labels: "app=two"})
			r.selects = func(_, name, _ string) bool { return name == "two" }
		}
		r.Projection = follow.Start(t.Context(), follow.Config[string]{
			Name: "test", Source: from, Project: func(obj runtime.Object, _ *string) (string, error) { return obj.(metav1.Object).GetName(), nil },
			Changed: func(types.NamespacedName, *string, *string) {
				if r.stopped.Load() {
					t.Error("called after it was stopped")
				}
			},
		})
		t.Cleanup(r.Stop)
		all = append(all, r)
	}
	check := func() {
		for _, r := range all {
			want := []string{}
			for key, phase := range pods {
				if namespace, name, _ := strings.Cut(key, "/"); r.selects(namespace, name, phase) {
					want = append(want, key)
				}
			}
			slices.Sort(want)
			has(t, r.Projection, want...)
		}
	}
	for range 600 {
		switch random.IntN(5) {
		case 0:
			begin()
		case 1:
			if n := len(all); n > 0 {
				i := random.IntN(n)
				all[i].Stop()
				all[i].stopped.Store(true)
				all = slices.Delete(all, i, i+1)
			}
		case 2:
			check()
		default:
			namespace, name := []string{"a", "b"}[random.IntN(2)], names[random.IntN(len(names))]
			key := namespace + "/" + name
			if _, exists := pods[key]; exists && random.IntN(3) == 0 {
				delete(pods, key)
				m.Remove("/api/v1/namespaces/" + namespace + "/pods/" + name)
				continue
			}
			pods[key] = phases[random.IntN(len(phases))]
			m.put(namespace, name, pods[key])
		}
	}
	begin()
	check()
}

// TestWatch_OfOneNamespaceIsShared reads one namespace where nothing reads all.
func TestWatch_OfOneNamespaceIsShared(t *testing.T) {
	m := newMember(t)
	m.put("a", "one", "Running")
	for range 2 {
		p := start(t, follow.Pods(m.Member, follow.Selection{Namespace: "a"}))
		has(t, p, "a/one")
	}
	m.hasWatches(t, 1)
}

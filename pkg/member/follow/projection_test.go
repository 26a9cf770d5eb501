package follow_test

import (
	"errors"
	"fmt"
	"net/http"
	"sync"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/karmada-toolkit/karmada/pkg/member/access"
	"github.com/karmada-toolkit/karmada/pkg/member/access/accesstest"
	"github.com/karmada-toolkit/karmada/pkg/member/follow"
)

const path = "/api/v1/namespaces/ns/configmaps/"

func configMap(name, value string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap",
		"metadata": map[string]any{"namespace": "ns", "name": name}, "data": map[string]any{"v": value},
	}}
}

// seen collects the callbacks of a projection.
type seen struct {
	mu   sync.Mutex
	list []string
}

func (s *seen) add(text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.list = append(s.list, text)
}

func (s *seen) want(t *testing.T, want ...string) {
	t.Helper()
	accesstest.Eventually(t, func() error {
		s.mu.Lock()
		defer s.mu.Unlock()
		if fmt.Sprint(s.list) != fmt.Sprint(want) {
			return fmt.Errorf("got %v, want %v", s.list, want)
		}
		return nil
	})
	s.mu.Lock()
	defer s.mu.Unlock()
	s.list = nil
}

func observe(t *testing.T, server *accesstest.Server, s *seen) *follow.Projection[string] {
	t.Helper()
	member, err := access.NewMember("m1", server.Config(), nil)
	if err != nil {
		t.Fatal(err)
	}
	text := func(v *string) string {
		if v == nil {
			return "-"
		}
		return *v
	}
	m := follow.Start(t.Context(), follow.Config[string]{
		Name:   "test",
		Source: follow.Objects(member, schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}, follow.Selection{}),
		Project: func(obj runtime.Object, _ *string) (string, error) {
			u, ok := obj.(*unstructured.Unstructured)
			if !ok {
				return "", errors.New("unexpected")
			}
			v, _, err := unstructured.NestedString(u.Object, "data", "v")
			return v, err
		},
		Changed: func(key types.NamespacedName, old, now *string) { s.add(key.Name + " " + text(old) + ">" + text(now)) },
		Synced:  func() { s.add("synced") },
		Failed:  func(error) { s.add("failed") },
	})
	t.Cleanup(m.Stop)
	return m
}

func TestProjection_FollowsChanges(t *testing.T) {
	server, s := accesstest.New(t), &seen{}
	server.Put(path+"a", configMap("a", "1"))
	m := observe(t, server, s)
	s.want(t, "a ->1", "synced")
	server.Put(path+"b", configMap("b", "1"))
	server.Put(path+"a", configMap("a", "2"))
	server.Remove(path + "b")
	s.want(t, "b ->1", "a 1>2", "b 1>-")
	if got := m.Get(types.NamespacedName{Namespace: "ns", Name: "a"}); got == nil || *got != "2" || m.Len() != 1 || !m.HasSynced() {
		t.Errorf("got %v of %d", got, m.Len())
	}
	m.Each(func(key types.NamespacedName, v *string) {
		if key.Name != "a" || *v != "2" {
			t.Errorf("%s %s", key, *v)
		}
	})
}

func TestProjection_ObservesChangesMadeWhileDisconnected(t *testing.T) {
	server, s := accesstest.New(t), &seen{}
	server.Put(path+"a", configMap("a", "1"))
	server.Put(path+"b", configMap("b", "1"))
	var down sync.Map
	server.Fail(func(*http.Request) int {
		if _, ok := down.Load("down"); ok {
			return http.StatusServiceUnavailable
		}
		return 0
	})
	m := observe(t, server, s)
	s.want(t, "a ->1", "b ->1", "synced")
	down.Store("down", true)
	server.CloseClientConnections()
	accesstest.Eventually(t, func() error {
		if m.Failure() == nil {
			return errors.New("did not fail")
		}
		return nil
	})
	server.Remove(path + "b")
	server.Put(path+"a", configMap("a", "2"))
	down.Delete("down")
	m.Retry()
	accesstest.Eventually(t, func() error {
		if v := m.Get(types.NamespacedName{Namespace: "ns", Name: "a"}); m.Len() != 1 || *v != "2" || m.Failure() != nil {
			return fmt.Errorf("%d objects, %w", m.Len(), m.Failure())
		}
		return nil
	})
}

func TestProjection_RetriesAFailedList(t *testing.T) {
	server, s := accesstest.New(t), &seen{}
	var refusals int
	server.Fail(func(*http.Request) int {
		if refusals++; refusals < 2 {
			return http.StatusNotFound
		}
		return 0
	})
	observe(t, server, s)
	s.want(t, "failed", "synced")
}

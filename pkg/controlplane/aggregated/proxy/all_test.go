package proxy

import (
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// having is a member that has pods by name, in the namespace default.
func having(names ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, req *http.Request) {
		const list = "/api/v1/namespaces/default/pods"
		name, isOne := strings.CutPrefix(req.URL.Path, list+"/")
		name, subresource, _ := strings.Cut(name, "/")
		if req.URL.Path == list && strings.Contains(req.Header.Get("Accept"), "as=Table") {
			rows := []any{}
			for _, n := range names {
				rows = append(rows, map[string]any{"cells": []any{n}})
			}
			reply200(w, 200, map[string]any{"kind": "Table", "apiVersion": "meta.k8s.io/v1", "columnDefinitions": []any{}, "rows": rows})
			return
		}
		if req.URL.Path == list {
			items := []any{}
			for _, n := range names {
				items = append(items, map[string]any{"metadata": map[string]any{"name": n}})
			}
			reply200(w, 200, map[string]any{
				"kind": "PodList", "apiVersion": "v1", "metadata": map[string]any{"resourceVersion": "5", "continue": "x"},
				"items": items, "query": req.URL.RawQuery,
			})
			return
		}
		for _, n := range names {
			if isOne && n == name {
				reply200(w, 200, map[string]any{"found": name, "subresource": subresource, "method": req.Method, "user": req.Header.Get("Impersonate-User")})
				return
			}
		}
		reply200(w, 404, metav1.Status{Code: 404})
	}
}

const pods = "*/proxy/api/v1/namespaces/default/pods"

func TestAll_Lists(t *testing.T) {
	f := newFederation(t, http.NotFoundHandler())
	f.add(t, "m2", having("b"))
	f.add(t, "m1", having("a1", "a2"))
	var asked atomic.Bool
	sleepy := f.add(t, "m3", func(http.ResponseWriter, *http.Request) { asked.Store(true) })
	sleepy.Status.Conditions = []metav1.Condition{{Type: "Ready", Status: metav1.ConditionFalse, Reason: "ClusterNotReachable"}}
	f.add(t, "m4", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusForbidden) })
	f.add(t, "m5", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("<html>")) })
	f.add(t, "m7", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNotFound) })

	code, got, header := f.do(t, http.MethodGet, pods+"?limit=1", nil)
	if code != http.StatusOK {
		t.Fatalf("got %d %v", code, got)
	}
	item := func(name string) any { return map[string]any{"metadata": map[string]any{"name": name}} }
	want := map[string]any{
		"kind": "PodList", "apiVersion": "v1", "metadata": map[string]any{}, "items": []any{item("a1"), item("a2"), item("b")},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if asked.Load() {
		t.Error("a cluster that is not ready was asked")
	}
	warnings := header.Values("Warning")
	for i, part := range []string{"cluster m3: the cluster is not ready (ClusterNotReachable)", "cluster m4: answered 403 Forbidden", "cluster m5: reading the list"} {
		if i >= len(warnings) || !strings.Contains(warnings[i], part) {
			t.Errorf("warning %d of %q is not about %q", i, warnings, part)
		}
	}
	if len(warnings) != 3 {
		t.Errorf("%d warnings", len(warnings))
	}

	t.Run("tables are merged too", func(t *testing.T) {
		accept := http.Header{"Accept": {"application/json;as=Table;v=v1;g=meta.k8s.io,application/json"}}
		_, got, _ := f.do(t, http.MethodGet, pods, accept)
		if rows, _ := got["rows"].([]any); got["kind"] != "Table" || len(rows) != 3 {
			t.Errorf("got %v", got)
		}
	})
}

func TestAll_ASilentMemberDelaysNobody(t *testing.T) {
	f := newFederation(t, http.NotFoundHandler())
	f.proxy.all.timeout = 5 * time.Second
	f.add(t, "m1", having("a"))
	f.add(t, "m2", func(_ http.ResponseWriter, req *http.Request) { <-req.Context().Done() })
	code, got, header := f.do(t, http.MethodGet, pods, nil)
	if items, _ := got["items"].([]any); code != http.StatusOK || len(items) != 1 {
		t.Errorf("got %d %v", code, got)
	}
	if w := header.Get("Warning"); !strings.Contains(w, "cluster m2: context deadline exceeded") {
		t.Errorf("got %q", w)
	}
}

func TestAll_ListOfNothing(t *testing.T) {
	f := newFederation(t, http.NotFoundHandler())
	f.add(t, "m1", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNotFound) })
	code, got, _ := f.do(t, http.MethodGet, pods, nil)
	if code != http.StatusNotFound || got["message"] != "not found" {
		t.Errorf("got %d %v", code, got)
	}
}

func TestAll_NamedObjects(t *testing.T) {
	f := newFederation(t, http.NotFoundHandler())
	f.add(t, "m2", having("both", "two"))
	f.add(t, "m1", having("both", "one"))
	cases := []struct {
		name, method, path string
		code               int
		want               map[string]any
	}{
		{"in one cluster", "GET", "/one", 200, map[string]any{"found": "one", "subresource": "", "method": "GET", "user": "alice"}},
		{"any method", "DELETE", "/two", 200, map[string]any{"found": "two", "subresource": "", "method": "DELETE", "user": "alice"}},
		{"logs", "GET", "/two/log", 200, map[string]any{"found": "two", "subresource": "log", "method": "GET", "user": "alice"}},
		{"nowhere", "GET", "/three", 404, map[string]any{"message": "resource not found or don't have permission to get it", "reason": "NotFound"}},
		{"in several", "GET", "/both", 409, map[string]any{"message": "conflict resource, exist in more than one cluster: m1,m2", "reason": "Conflict"}},
		{"creation", "POST", "", 405, map[string]any{"message": "Request verb create is not support", "reason": "MethodNotAllowed"}},
		{"watch", "GET", "?watch=true", 405, map[string]any{"message": "Request verb watch is not support", "reason": "MethodNotAllowed"}},
		{"deletion of all", "DELETE", "", 405, map[string]any{"message": "Request verb deletecollection is not support", "reason": "MethodNotAllowed"}},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			code, got, _ := f.do(t, tc.method, pods+tc.path, nil)
			for key, want := range tc.want {
				if got[key] != want {
					t.Errorf("%s: got %v, want %v", key, got[key], want)
				}
			}
			if code != tc.code {
				t.Errorf("code %d", code)
			}
		})
	}
}

func TestAll_UpgradesWhereTheObjectIs(t *testing.T) {
	f := newFederation(t, http.NotFoundHandler())
	f.add(t, "m1", having())
	shell := switching(http.StatusSwitchingProtocols)
	f.add(t, "m2", func(w http.ResponseWriter, req *http.Request) {
		if req.Header.Get("Upgrade") == "" {
			having("p")(w, req)
			return
		}
		shell(w, req)
	})
	if code, _, line := f.upgrade(t, pods+"/p/exec"); code != 101 || line != "echo hello\n" {
		t.Errorf("got %d %q", code, line)
	}
}

func TestAll_PathsThatAreNoResource(t *testing.T) {
	f := newFederation(t, http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		reply200(w, 200, map[string]any{
			"path": req.URL.Path, "user": req.Header.Get("Impersonate-User"), "groups": strings.Join(req.Header.Values("Impersonate-Group"), ","),
			"auth": req.Header.Get("Authorization"),
		})
	}))
	_, got, _ := f.do(t, http.MethodGet, "*/proxy/metrics", http.Header{"Authorization": {"Bearer alice"}})
	want := map[string]any{"path": "/metrics", "user": "alice", "groups": "dev,ops", "auth": "Bearer own"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

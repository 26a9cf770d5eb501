// Package accesstest provides a member cluster for tests: an API server in memory that
// stores objects of a few types, assigns resource versions and UIDs, streams changes,
// checks preconditions, and fails requests on demand.
package accesstest

import (
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	jsonpatch "github.com/evanphx/json-patch/v5"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
)

// Server is a member cluster.
type Server struct {
	*httptest.Server

	storage *storage

	mu       sync.Mutex
	requests []string
	fail     func(r *http.Request) int
	token    string
}

// New starts a server that ends with the test.
func New(t testing.TB) *Server {
	t.Helper()
	s := &Server{storage: newStorage()}
	s.Server = httptest.NewUnstartedServer(http.HandlerFunc(s.serve))
	s.Server.StartTLS()
	t.Cleanup(func() {
		s.CloseClientConnections()
		s.Close()
	})
	return s
}

// Config returns the settings of a client.
func (s *Server) Config() *rest.Config {
	return &rest.Config{Host: s.URL, QPS: -1, TLSClientConfig: rest.TLSClientConfig{CAData: s.CA()}}
}

// CA returns the certificate of the server.
func (s *Server) CA() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})
}

// Require makes the server reject requests with another token.
func (s *Server) Require(token string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.token = token
}

// Fail calls fn for every request; it returns the code of the failure, or 0.
func (s *Server) Fail(fn func(r *http.Request) int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fail = fn
}

// Writes returns the requests that were not reads, as "VERB path", since the
// last call.
func (s *Server) Writes() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := slices.DeleteFunc(s.requests, func(r string) bool { return strings.HasPrefix(r, http.MethodGet) })
	s.requests = nil
	return out
}

// Get returns the object at a path, or nil.
func (s *Server) Get(path string) *unstructured.Unstructured {
	s.storage.mu.Lock()
	defer s.storage.mu.Unlock()
	return s.storage.objects[path].DeepCopy()
}

// Put stores an object at a path as a controller of the cluster does: UID and
// versions are assigned.
func (s *Server) Put(path string, obj *unstructured.Unstructured) *unstructured.Unstructured {
	s.storage.mu.Lock()
	defer s.storage.mu.Unlock()
	return s.storage.putLocked(path, obj.DeepCopy()).DeepCopy()
}

// Remove deletes the object at a path.
func (s *Server) Remove(path string) {
	s.storage.mu.Lock()
	defer s.storage.mu.Unlock()
	s.storage.removeLocked(path)
}

func (s *Server) serve(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	s.requests = append(s.requests, r.Method+" "+r.URL.Path)
	fail, token := s.fail, s.token
	s.mu.Unlock()
	if token != "" && !strings.EqualFold(r.Header.Get("Authorization"), "Bearer "+token) {
		refuse(w, http.StatusUnauthorized, metav1.StatusReasonUnauthorized, "wrong token")
		return
	}
	if fail != nil {
		if code := fail(r); code != 0 {
			refuse(w, code, metav1.StatusReasonUnknown, "injected failure")
			return
		}
	}
	switch {
	case r.URL.Path == "/readyz", r.URL.Path == "/healthz":
		_, _ = io.WriteString(w, "ok")
	case r.URL.Path == "/version":
		_, _ = io.WriteString(w, `{"gitVersion":"v1.36.0"}`)
	case r.URL.Query().Get("watch") != "":
		s.watch(w, r)
	case r.Method == http.MethodGet:
		s.read(w, r)
	default:
		s.write(w, r)
	}
}

func (s *Server) read(w http.ResponseWriter, r *http.Request) {
	if obj := s.Get(r.URL.Path); obj != nil {
		answer(w, http.StatusOK, obj)
		return
	}
	if !collection(r.URL.Path) {
		refuse(w, http.StatusNotFound, metav1.StatusReasonNotFound, "not found")
		return
	}
	list := s.storage.list(r.URL.Path, func(obj *unstructured.Unstructured) bool { return selected(r, obj) })
	answer(w, http.StatusOK, list)
}

// collection reports whether a path is that of a list: /api/v1/x or /apis/g/v/x,
// with or without a namespace.
func collection(path string) bool {
	parts := strings.Split(strings.Trim(path, "/"), "/")
	n := 3
	if parts[0] == "apis" {
		n = 4
	}
	return len(parts) == n || len(parts) == n+2 && slices.Contains(parts, "namespaces")
}

func selected(r *http.Request, obj *unstructured.Unstructured) bool {
	selector, err := labels.Parse(r.URL.Query().Get("labelSelector"))
	return err == nil && selector.Matches(labels.Set(obj.GetLabels()))
}

func (s *Server) watch(w http.ResponseWriter, r *http.Request) {
	if r.URL.Query().Get("sendInitialEvents") != "" {
		refuse(w, http.StatusForbidden, metav1.StatusReasonForbidden, "sendInitialEvents is forbidden")
		return
	}
	since, _ := strconv.Atoi(r.URL.Query().Get("resourceVersion"))
	ch, stop := s.storage.watch(r.URL.Path, since)
	defer stop()
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusOK)
	flush(w)
	seen := map[string]bool{}
	for {
		select {
		case <-r.Context().Done():
			return
		case e := <-ch:
			match := selected(r, e.obj)
			switch {
			case !match && !seen[e.path] && e.kind != "MODIFIED":
				continue
			case !match:
				e.kind = "DELETED" // it is no longer selected
			}
			seen[e.path] = match && e.kind != "DELETED"
			_ = json.NewEncoder(w).Encode(map[string]any{"type": e.kind, "object": e.obj.Object})
			flush(w)
		}
	}
}

func (s *Server) write(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	if r.Method == http.MethodPatch {
		s.patch(w, r, body)
		return
	}
	obj := &unstructured.Unstructured{}
	if r.Method != http.MethodDelete {
		if err := obj.UnmarshalJSON(body); err != nil {
			refuse(w, http.StatusBadRequest, metav1.StatusReasonBadRequest, err.Error())
			return
		}
	}
	s.storage.mu.Lock()
	defer s.storage.mu.Unlock()
	path := r.URL.Path
	if r.Method == http.MethodPost {
		path += "/" + obj.GetName()
	}
	old := s.storage.objects[path]
	switch {
	case r.Method == http.MethodPost && old != nil:
		refuse(w, http.StatusConflict, metav1.StatusReasonAlreadyExists, fmt.Sprintf("%q already exists", obj.GetName()))
	case r.Method == http.MethodPost:
		answer(w, http.StatusCreated, s.storage.putLocked(path, obj))
	case old == nil:
		refuse(w, http.StatusNotFound, metav1.StatusReasonNotFound, "not found")
	case r.Method == http.MethodPut && obj.GetResourceVersion() != "" && obj.GetResourceVersion() != old.GetResourceVersion():
		refuse(w, http.StatusConflict, metav1.StatusReasonConflict, "the object has been modified")
	case r.Method == http.MethodPut:
		if status, ok := old.Object["status"]; ok {
			obj.Object["status"] = status
		}
		answer(w, http.StatusOK, s.storage.putLocked(path, obj))
	case r.Method == http.MethodDelete:
		if !deletable(old, body) {
			refuse(w, http.StatusConflict, metav1.StatusReasonConflict, "the UID in the precondition does not match")
			return
		}
		s.storage.removeLocked(path)
		answer(w, http.StatusOK, metav1.Status{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: metav1.StatusSuccess})
	default:
		refuse(w, http.StatusMethodNotAllowed, metav1.StatusReasonMethodNotAllowed, r.Method)
	}
}

// patch applies a merge patch to an object or its status.
func (s *Server) patch(w http.ResponseWriter, r *http.Request, body []byte) {
	s.storage.mu.Lock()
	defer s.storage.mu.Unlock()
	path := strings.TrimSuffix(r.URL.Path, "/status")
	old := s.storage.objects[path]
	if old == nil {
		refuse(w, http.StatusNotFound, metav1.StatusReasonNotFound, "not found")
		return
	}
	obj := &unstructured.Unstructured{}
	stored, err := old.MarshalJSON()
	if err == nil {
		stored, err = jsonpatch.MergePatch(stored, body)
	}
	if err == nil {
		err = obj.UnmarshalJSON(stored)
	}
	if err != nil || r.Header.Get("Content-Type") != string(types.MergePatchType) {
		refuse(w, http.StatusBadRequest, metav1.StatusReasonBadRequest, fmt.Sprintf("not a merge patch: %v", err))
		return
	}
	answer(w, http.StatusOK, s.storage.putLocked(path, obj))
}

// deletable reports whether the preconditions of a deletion hold.
func deletable(obj *unstructured.Unstructured, body []byte) bool {
	var options metav1.DeleteOptions
	_ = json.Unmarshal(body, &options)
	p := options.Preconditions
	return p == nil || (p.UID == nil || *p.UID == obj.GetUID()) && (p.ResourceVersion == nil || *p.ResourceVersion == obj.GetResourceVersion())
}

func answer(w http.ResponseWriter, code int, obj any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(obj)
}

func refuse(w http.ResponseWriter, code int, reason metav1.StatusReason, message string) {
	answer(w, code, metav1.Status{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"},
		Status:   metav1.StatusFailure, Reason: reason, Message: message, Code: int32(code),
	})
}

func flush(w http.ResponseWriter) {
	if f, ok := w.(http.Flusher); ok {
		f.Flush()
	}
}

// Eventually fails the test if check does not return nil within ten seconds.
func Eventually(t testing.TB, check func() error) {
	t.Helper()
	deadline := time.After(2 * time.Minute)
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for {
		err := check()
		if err == nil {
			return
		}
		select {
		case <-deadline:
			t.Fatal(err)
		case <-tick.C:
		}
	}
}

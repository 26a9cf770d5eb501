// Package accesstest is a member cluster for tests: an API server in memory that
// keeps objects of a few types, hands out resource versions and UIDs, streams
// changes, honours preconditions, and fails when it is told to.
package accesstest

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/client-go/rest"
)

// Server is a member cluster.
type Server struct {
	*httptest.Server

	mu       sync.Mutex
	version  int
	objects  map[string]*unstructured.Unstructured // by path
	watchers map[chan event]string                 // prefix of the paths
	history  []event
	requests []string
	fail     func(r *http.Request) int
	token    string
}

type event struct {
	kind string
	path string
	obj  *unstructured.Unstructured
}

// New starts a server that ends with the test.
func New(t testing.TB) *Server {
	t.Helper()
	s := &Server{objects: map[string]*unstructured.Unstructured{}, watchers: map[chan event]string{}, version: 100}
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
func (s *Server) CA() []byte { return certificatePEM(s.Certificate().Raw) }

// Require has the server refuse other tokens than this one.
func (s *Server) Require(token string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.token = token
}

// Fail has fn asked about every request; it returns the code of the failure, or
// 0.
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
	s.mu.Lock()
	defer s.mu.Unlock()
	if obj := s.objects[path]; obj != nil {
		return obj.DeepCopy()
	}
	return nil
}

// Put stores an object at a path as a controller of the cluster would: UID and
// versions are set.
func (s *Server) Put(path string, obj *unstructured.Unstructured) *unstructured.Unstructured {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.storeLocked(path, obj.DeepCopy()).DeepCopy()
}

// Remove deletes the object at a path.
func (s *Server) Remove(path string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.removeLocked(path)
}

func (s *Server) storeLocked(path string, obj *unstructured.Unstructured) *unstructured.Unstructured {
	old := s.objects[path]
	s.version++
	obj.SetResourceVersion(strconv.Itoa(s.version))
	kind := "MODIFIED"
	if old == nil {
		kind = "ADDED"
		obj.SetUID(uuid.NewUUID())
		obj.SetGeneration(1)
		obj.SetCreationTimestamp(metav1.Unix(1, 0))
	} else {
		obj.SetUID(old.GetUID())
		obj.SetCreationTimestamp(old.GetCreationTimestamp())
		obj.SetGeneration(old.GetGeneration())
		if !equal(old.Object["spec"], obj.Object["spec"]) {
			obj.SetGeneration(old.GetGeneration() + 1)
		}
	}
	s.objects[path] = obj
	s.tellLocked(event{kind, path, obj.DeepCopy()})
	return obj
}

func (s *Server) removeLocked(path string) {
	obj := s.objects[path]
	if obj == nil {
		return
	}
	delete(s.objects, path)
	s.version++
	obj.SetResourceVersion(strconv.Itoa(s.version))
	s.tellLocked(event{"DELETED", path, obj})
}

func (s *Server) tellLocked(e event) {
	s.history = append(s.history, e)
	for ch, prefix := range s.watchers {
		if matches(e.path, prefix) {
			ch <- e
		}
	}
}

// matches says whether an object's path is in a collection; that of all
// namespaces has the path without them.
func matches(path, collection string) bool {
	if parts := strings.Split(path, "/namespaces/"); len(parts) == 2 && !strings.Contains(collection, "/namespaces/") {
		if _, rest, ok := strings.Cut(parts[1], "/"); ok {
			path = parts[0] + "/" + rest
		}
	}
	rest, ok := strings.CutPrefix(path, collection+"/")
	return ok && !strings.Contains(rest, "/")
}

func (s *Server) serve(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	s.requests = append(s.requests, r.Method+" "+r.URL.Path)
	fail, token := s.fail, s.token
	s.mu.Unlock()
	if token != "" && r.Header.Get("Authorization") != "Bearer "+token {
		refuse(w, http.StatusUnauthorized, metav1.StatusReasonUnauthorized, "wrong token")
		return
	}
	if fail != nil {
		if code := fail(r); code != 0 {
			refuse(w, code, metav1.StatusReasonUnknown, "told to fail")
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
	s.mu.Lock()
	defer s.mu.Unlock()
	if obj := s.objects[r.URL.Path]; obj != nil {
		answer(w, http.StatusOK, obj)
		return
	}
	if !collection(r.URL.Path) {
		refuse(w, http.StatusNotFound, metav1.StatusReasonNotFound, "not found")
		return
	}
	list := &unstructured.UnstructuredList{Object: map[string]any{"apiVersion": "v1", "kind": "List"}}
	list.SetResourceVersion(strconv.Itoa(s.version))
	for _, path := range slices.Sorted(maps.Keys(s.objects)) {
		if matches(path, r.URL.Path) && selected(r, s.objects[path]) {
			list.Items = append(list.Items, *s.objects[path])
		}
	}
	if len(list.Items) > 0 {
		list.SetAPIVersion(list.Items[0].GetAPIVersion())
		list.SetKind(list.Items[0].GetKind() + "List")
	}
	answer(w, http.StatusOK, list)
}

// collection says whether a path is that of a list: /api/v1/x or /apis/g/v/x,
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
	ch := make(chan event, 1000)
	s.mu.Lock()
	since, _ := strconv.Atoi(r.URL.Query().Get("resourceVersion"))
	for _, e := range s.history {
		if v, _ := strconv.Atoi(e.obj.GetResourceVersion()); matches(e.path, r.URL.Path) && v > since {
			ch <- e
		}
	}
	s.watchers[ch] = r.URL.Path
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		delete(s.watchers, ch)
		s.mu.Unlock()
	}()
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusOK)
	flush(w)
	seen := map[string]bool{}
	for {
		select {
		case <-r.Context().Done():
			return
		case e := <-ch:
			in := selected(r, e.obj)
			switch {
			case !in && !seen[e.path] && e.kind != "MODIFIED":
				continue
			case !in:
				e.kind = "DELETED" // it is no longer selected
			}
			seen[e.path] = in && e.kind != "DELETED"
			_ = json.NewEncoder(w).Encode(map[string]any{"type": e.kind, "object": e.obj.Object})
			flush(w)
		}
	}
}

func (s *Server) write(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	obj := &unstructured.Unstructured{}
	if r.Method != http.MethodDelete {
		if err := obj.UnmarshalJSON(body); err != nil {
			refuse(w, http.StatusBadRequest, metav1.StatusReasonBadRequest, err.Error())
			return
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	path := r.URL.Path
	if r.Method == http.MethodPost {
		path += "/" + obj.GetName()
	}
	old := s.objects[path]
	switch {
	case r.Method == http.MethodPost && old != nil:
		refuse(w, http.StatusConflict, metav1.StatusReasonAlreadyExists, fmt.Sprintf("%q already exists", obj.GetName()))
	case r.Method == http.MethodPost:
		answer(w, http.StatusCreated, s.storeLocked(path, obj))
	case old == nil:
		refuse(w, http.StatusNotFound, metav1.StatusReasonNotFound, "not found")
	case r.Method == http.MethodPut && obj.GetResourceVersion() != "" && obj.GetResourceVersion() != old.GetResourceVersion():
		refuse(w, http.StatusConflict, metav1.StatusReasonConflict, "the object has been modified")
	case r.Method == http.MethodPut:
		if status, ok := old.Object["status"]; ok {
			obj.Object["status"] = status
		}
		answer(w, http.StatusOK, s.storeLocked(path, obj))
	case r.Method == http.MethodDelete:
		s.deleteLocked(w, path, body)
	default:
		refuse(w, http.StatusMethodNotAllowed, metav1.StatusReasonMethodNotAllowed, r.Method)
	}
}

func (s *Server) deleteLocked(w http.ResponseWriter, path string, body []byte) {
	var options metav1.DeleteOptions
	_ = json.Unmarshal(body, &options)
	if p := options.Preconditions; p != nil && p.UID != nil && *p.UID != s.objects[path].GetUID() {
		refuse(w, http.StatusConflict, metav1.StatusReasonConflict, "the UID in the precondition does not match")
		return
	}
	s.removeLocked(path)
	answer(w, http.StatusOK, metav1.Status{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: metav1.StatusSuccess})
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

func equal(a, b any) bool {
	x, err1 := json.Marshal(a)
	y, err2 := json.Marshal(b)
	return err1 == nil && err2 == nil && string(x) == string(y)
}

// Eventually fails the test if check does not return nil within ten seconds.
func Eventually(t testing.TB, check func() error) {
	t.Helper()
	deadline := time.After(10 * time.Second)
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

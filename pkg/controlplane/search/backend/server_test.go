package backend

import (
	"bufio"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
)

// server has the API of OpenSearch that is used: indices with mappings, bulk requests, refreshes, and deletion by queries, which
// find only what was refreshed, and only by fields with the type keyword.
type server struct {
	*httptest.Server

	mu      sync.Mutex
	indices map[string]*index
	// fail returns the code of a request, or 0; failItem that of a document.
	fail     func(r *http.Request) int
	failItem func(id string) int
	user     string
	requests int
}

type index struct {
	mapping map[string]any
	// docs are the documents, found those that queries find.
	docs, found map[string]map[string]any
}

func newServer(t *testing.T) *server {
	t.Helper()
	s := &server{indices: map[string]*index{}}
	s.Server = httptest.NewTLSServer(http.HandlerFunc(s.serve))
	t.Cleanup(func() {
		s.CloseClientConnections()
		s.Close()
	})
	return s
}

func (s *server) ca() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})
}

func (s *server) set(fail func(r *http.Request) int, failItem func(id string) int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fail, s.failItem = fail, failItem
}

// ids returns the documents of an index as CLUSTER/NAME.
func (s *server) ids(name string) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := []string{}
	if i := s.indices[name]; i != nil {
		for _, d := range i.docs {
			out = append(out, fmt.Sprintf("%s/%s", d["cluster"], d["metadata"].(map[string]any)["name"]))
		}
	}
	slices.Sort(out)
	return out
}

func reply(w http.ResponseWriter, code int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(body)
}

func refuse(w http.ResponseWriter, code int, kind string) {
	reply(w, code, map[string]any{"status": code, "error": map[string]any{"type": kind, "reason": "of the test", "root_cause": []any{}}})
}

func (s *server) serve(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests++
	if user, password, _ := r.BasicAuth(); s.user != "" && user+":"+password != s.user {
		refuse(w, http.StatusUnauthorized, "security_exception")
		return
	}
	if s.fail != nil {
		if code := s.fail(r); code != 0 {
			refuse(w, code, "of_the_test")
			return
		}
	}
	name, action, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	switch {
	case r.Method == http.MethodPut && action == "":
		s.create(w, r, name)
	case r.Method == http.MethodPut && action == "_mapping":
		var in map[string]any
		_ = json.NewDecoder(r.Body).Decode(&in)
		maps.Copy(s.indices[name].mapping, in["properties"].(map[string]any))
		reply(w, http.StatusOK, map[string]any{"acknowledged": true})
	case r.Method == http.MethodPost && action == "_bulk":
		s.bulk(w, r, name)
	case r.Method == http.MethodPost && action == "_refresh":
		for _, i := range s.matching(name) {
			s.indices[i].found = maps.Clone(s.indices[i].docs)
		}
		reply(w, http.StatusOK, map[string]any{"_shards": map[string]int{"total": 1, "successful": 1}})
	case r.Method == http.MethodPost && action == "_delete_by_query":
		s.deleteByQuery(w, r, name)
	default:
		refuse(w, http.StatusBadRequest, "unknown "+r.Method+" "+r.URL.Path)
	}
}

func (s *server) matching(pattern string) []string {
	var out []string
	for name := range s.indices {
		if prefix, ok := strings.CutSuffix(pattern, "*"); name == pattern || ok && strings.HasPrefix(name, prefix) {
			out = append(out, name)
		}
	}
	return out
}

func (s *server) create(w http.ResponseWriter, r *http.Request, name string) {
	if s.indices[name] != nil {
		refuse(w, http.StatusBadRequest, "resource_already_exists_exception")
		return
	}
	var in map[string]map[string]any
	if err := json.NewDecoder(r.Body).Decode(&in); err != nil || name != strings.ToLower(name) {
		refuse(w, http.StatusBadRequest, "parse_exception")
		return
	}
	s.indices[name] = &index{mapping: in["mappings"]["properties"].(map[string]any), docs: map[string]map[string]any{}, found: map[string]map[string]any{}}
	reply(w, http.StatusOK, map[string]any{"acknowledged": true, "shards_acknowledged": true, "index": name})
}

func (s *server) bulk(w http.ResponseWriter, r *http.Request, name string) {
	lines := bufio.NewScanner(r.Body)
	lines.Buffer(nil, 8<<20)
	var items []map[string]any
	for lines.Scan() {
		var action map[string]map[string]string
		if err := json.Unmarshal(lines.Bytes(), &action); err != nil {
			refuse(w, http.StatusBadRequest, "parse_exception")
			return
		}
		for verb, of := range action {
			var document map[string]any
			if verb == "index" {
				lines.Scan()
				_ = json.Unmarshal(lines.Bytes(), &document)
			}
			items = append(items, map[string]any{verb: s.write(name, of["_id"], document)})
		}
	}
	reply(w, http.StatusOK, map[string]any{"took": 1, "errors": false, "items": items})
}

func (s *server) write(name, id string, document map[string]any) map[string]any {
	out := map[string]any{"_index": name, "_id": id, "status": http.StatusOK}
	if s.failItem != nil {
		if code := s.failItem(id); code != 0 {
			out["status"] = code
			out["error"] = map[string]any{"type": "item_exception", "reason": "of the test"}
			return out
		}
	}
	i := s.indices[name]
	if document == nil {
		if i.docs[id] == nil {
			out["status"] = http.StatusNotFound
		}
		delete(i.docs, id)
		return out
	}
	i.docs[id] = document
	return out
}

func (s *server) deleteByQuery(w http.ResponseWriter, r *http.Request, pattern string) {
	var in struct {
		Query struct {
			Bool struct {
				Filter []struct {
					Term map[string]string `json:"term"`
				} `json:"filter"`
				MustNot []struct {
					Terms map[string][]string `json:"terms"`
				} `json:"must_not"`
			} `json:"bool"`
		} `json:"query"`
	}
	if err := json.NewDecoder(r.Body).Decode(&in); err != nil {
		refuse(w, http.StatusBadRequest, "parse_exception")
		return
	}
	deleted := 0
	for _, name := range s.matching(pattern) {
		i := s.indices[name]
		value := func(d map[string]any, field string) any {
			if field == "_index" {
				return name
			}
			if mapped, ok := i.mapping[field].(map[string]any); !ok || mapped["type"] != "keyword" {
				return nil // a text is not found whole
			}
			return d[field]
		}
	documents:
		for id, d := range i.found {
			for _, f := range in.Query.Bool.Filter {
				for field, want := range f.Term {
					if value(d, field) != want {
						continue documents
					}
				}
			}
			for _, f := range in.Query.Bool.MustNot {
				for field, not := range f.Terms {
					if v, ok := value(d, field).(string); ok && slices.Contains(not, v) {
						continue documents
					}
				}
			}
			if fmt.Sprint(i.docs[id]) == fmt.Sprint(d) { // otherwise a version conflict
				delete(i.docs, id)
				deleted++
			}
		}
	}
	reply(w, http.StatusOK, map[string]any{"deleted": deleted, "failures": []any{}})
}

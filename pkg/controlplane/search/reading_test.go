package search

import (
	"net/http"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	genericrequest "k8s.io/apiserver/pkg/endpoints/request"

	"github.com/karmada-toolkit/karmada/pkg/controlplane/search/columns"
)

func TestFormOf(t *testing.T) {
	for accept, want := range map[string]form{
		"application/json":                                                 formObjects,
		"application/vnd.kubernetes.protobuf, */*":                         formObjects,
		"application/json;as=Table;v=v1;g=meta.k8s.io":                     formTable,
		"application/json;as=Table;v=v1;g=meta.k8s.io, application/json":   formTable,
		"application/json, application/json;as=Table;v=v1;g=meta.k8s.io":   formObjects,
		"application/json;as=Table;v=v1beta1;g=meta.k8s.io":                formNone,
		"application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io,*/*": formObjects,
		"application/yaml": formNone,
	} {
		if got := formOf([]string{accept}); got != want {
			t.Errorf("%s: %d", accept, got)
		}
	}
	if formOf(nil) != formObjects {
		t.Error("no header accepts everything")
	}
}

// A row names the cluster, has the columns of the kind, and what the request wants of the object.
func TestTables(t *testing.T) {
	const object = `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"web","resourceVersion":"v"},"data":{"a":"b"}}`
	const bad = `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"bad"},"data":"no map"}`
	g := &global{layouts: columns.New(nil)}
	newTables := func(include string) (*tables, error) {
		req := &http.Request{Header: http.Header{"Accept": {"application/json;as=Table;v=v1;g=meta.k8s.io"}}}
		return g.tables(req, include, schema.GroupResource{Resource: "configmaps"}, schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"})
	}
	for include, want := range map[string]string{
		"":       `{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1","metadata":{"name":"web","resourceVersion":"v"}}`,
		"Object": object, "None": "null",
	} {
		tables, err := newTables(include)
		if err != nil {
			t.Fatal(err)
		}
		for i, tc := range []struct {
			kind  watch.EventType
			of    string
			cells string
		}{
			{watch.Added, object, `["m1","web",1,"\u003cunknown\u003e"],"object":` + want},
			{watch.Modified, object, `["m1","web",1,"\u003cunknown\u003e"],"object":` + want},
			{watch.Modified, bad, `["m1","bad","\u003cunknown\u003e","\u003cunknown\u003e"],"object":`},
			{watch.Bookmark, object, `[null,null,null,null],"object":`},
		} {
			data, err := tables.event(tc.kind, "m1", []byte(tc.of))
			if err != nil {
				t.Fatal(err)
			}
			if !strings.Contains(string(data), `"rows":[{"cells":`+tc.cells) || strings.Contains(string(data), `"Cluster"`) != (i == 0) {
				t.Errorf("include %q, %d: %s", include, i, data)
			}
		}
	}
	if _, err := newTables("Everything"); err == nil {
		t.Error("a policy that does not exist is accepted")
	}
}

// A Namespace is found by the path that names it, and no other object by a path that only looks like it.
func TestNamespaceOf(t *testing.T) {
	for name, tc := range map[string]struct {
		info genericrequest.RequestInfo
		want string
	}{
		"a Namespace":            {genericrequest.RequestInfo{Resource: "namespaces", Namespace: "team", Name: "team"}, ""},
		"a Namespace in another": {genericrequest.RequestInfo{Resource: "namespaces", Namespace: "team", Name: "other"}, "team"},
		"of another group":       {genericrequest.RequestInfo{APIGroup: "example.com", Resource: "namespaces", Namespace: "team", Name: "team"}, "team"},
		"an object":              {genericrequest.RequestInfo{Resource: "pods", Namespace: "team", Name: "team"}, "team"},
	} {
		if got := namespaceOf(&tc.info); got != tc.want {
			t.Errorf("%s: %q", name, got)
		}
	}
}

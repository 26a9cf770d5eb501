package search

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/watch"
	genericrequest "k8s.io/apiserver/pkg/endpoints/request"
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

// A row names the cluster, and its age is that of the answer.
func TestTables(t *testing.T) {
	const object = `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"web","resourceVersion":"v","creationTimestamp":"2026-01-01T00:00:00Z"},"spec":{"nodeName":"n"}}`
	now := time.Date(2026, 1, 1, 0, 1, 0, 0, time.UTC)
	for include, want := range map[string]string{
		"":       `{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1","metadata":{"name":"web","resourceVersion":"v","creationTimestamp":"2026-01-01T00:00:00Z"}}`,
		"Object": object, "None": "null",
	} {
		req := &http.Request{Header: http.Header{"Accept": {"application/json;as=Table;v=v1;g=meta.k8s.io"}}}
		tables, err := newTables(req, include, func() time.Time { return now })
		if err != nil {
			t.Fatal(err)
		}
		for _, age := range []string{"60s", "2m"} {
			data, err := tables.event(watch.Added, "m1", []byte(object))
			if err != nil {
				t.Fatal(err)
			}
			cells := `"rows":[{"cells":["m1","web","` + age + `"],"object":` + want + `}]`
			if !strings.Contains(string(data), cells) || strings.Contains(string(data), `"Cluster"`) != (age == "60s") {
				t.Errorf("include %q: %s", include, data)
			}
			now = now.Add(time.Minute)
		}
		now = now.Add(-2 * time.Minute)
	}
	req := &http.Request{Header: http.Header{"Accept": {"application/json;as=Table;v=v1;g=meta.k8s.io"}}}
	if _, err := newTables(req, "Everything", nil); err == nil {
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

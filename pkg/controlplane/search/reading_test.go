package search

import (
	"testing"

	genericrequest "k8s.io/apiserver/pkg/endpoints/request"
)

func TestAcceptsJSON(t *testing.T) {
	for accept, want := range map[string]bool{
		"application/json":                                 true,
		"application/vnd.kubernetes.protobuf, */*":         true,
		"application/json;as=Table;v=v1;g=meta.k8s.io":     false,
		"application/json;as=Table;v=v1, application/json": true,
		"application/yaml":                                 false,
	} {
		if acceptsJSON([]string{accept}) != want {
			t.Errorf("%s: not %v", accept, want)
		}
	}
	if !acceptsJSON(nil) {
		t.Error("no header accepts everything")
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

package proxy

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"k8s.io/apimachinery/pkg/util/sets"
	genericrequest "k8s.io/apiserver/pkg/endpoints/request"
)

func TestLongRunning(t *testing.T) {
	check := LongRunning(func(_ *http.Request, info *genericrequest.RequestInfo) bool { return info.Verb == "watch" })
	resolver := genericrequest.RequestInfoFactory{APIPrefixes: sets.NewString("apis")}
	cases := map[string]bool{
		base + "?watch=true":                                         true,
		base + "m1":                                                  false,
		base + "m1/proxy/api/v1":                                     false,
		base + "m1/proxy/api/v1/pods?watch=true":                     true,
		base + "m1/proxy/api/v1/watch/pods":                          true,
		base + "m1/proxy/api/v1/namespaces/n/pods/p":                 false,
		base + "m1/proxy/api/v1/namespaces/n/pods/p/log?follow=true": true,
		base + "m1/proxy/api/v1/namespaces/n/pods/p/exec":            true,
		base + "m1/proxy/api/v1/namespaces/n/pods/p/attach":          true,
		base + "m1/proxy/api/v1/namespaces/n/pods/p/portforward":     true,
		base + "m1/proxy/api/v1/namespaces/n/services/s/proxy/x":     true,
		base + "m1/proxy/log":                                        false,
		base + "m1/proxy/api/v1/namespaces/n/pods/p/status":          false,
	}
	for path, want := range cases {
		t.Run(path, func(t *testing.T) {
			req := httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, nil)
			info, err := resolver.NewRequestInfo(req)
			if err != nil {
				t.Fatal(err)
			}
			if got := check(req, info); got != want {
				t.Errorf("got %t", got)
			}
		})
	}
}

package kube

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
)

var clusterGroup = schema.GroupVersion{Group: "cluster.karmada.io", Version: "v1alpha1"}

func TestCheckServed(t *testing.T) {
	for name, tc := range map[string]struct {
		code int
		want func(error) bool
	}{
		"served":            {http.StatusOK, func(err error) bool { return err == nil }},
		"not registered":    {http.StatusNotFound, apierrors.IsNotFound},
		"no answer from it": {http.StatusServiceUnavailable, apierrors.IsServiceUnavailable},
	} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path != "/apis/cluster.karmada.io/v1alpha1" {
					t.Errorf("a request for %s", r.URL)
				}
				w.Header().Set("Retry-After", "1")
				w.WriteHeader(tc.code)
			}))
			defer server.Close()
			if err := CheckServed(t.Context(), &rest.Config{Host: server.URL}, clusterGroup); !tc.want(err) {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestCheckDiscovered(t *testing.T) {
	for name, tc := range map[string]struct {
		apis string
		ok   bool
	}{
		"listed":              {`{"items":[{"metadata":{"name":"apps"},"versions":[{"version":"v1"}]},{"metadata":{"name":"cluster.karmada.io"},"versions":[{"version":"v1alpha1","freshness":"Current"}]}]}`, true},
		"stale":               {`{"items":[{"metadata":{"name":"cluster.karmada.io"},"versions":[{"version":"v1alpha1","freshness":"Stale"}]}]}`, false},
		"not listed":          {`{"items":[{"metadata":{"name":"apps"},"versions":[{"version":"v1alpha1"}]}]}`, false},
		"another version":     {`{"items":[{"metadata":{"name":"cluster.karmada.io"},"versions":[{"version":"v1"}]}]}`, false},
		"older server":        {`{"groups":[{"name":"cluster.karmada.io","versions":[{"groupVersion":"cluster.karmada.io/v1alpha1","version":"v1alpha1"}]}]}`, true},
		"older server, not":   {`{"groups":[{"name":"apps","versions":[{"groupVersion":"apps/v1","version":"v1"}]}]}`, false},
		"nothing of the kind": {`{}`, false},
	} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", "application/json")
				_, _ = w.Write([]byte(tc.apis))
			}))
			defer server.Close()
			err := CheckDiscovered(t.Context(), &rest.Config{Host: server.URL}, clusterGroup)
			if tc.ok != (err == nil) || !tc.ok && !errors.Is(err, ErrUndiscovered) {
				t.Errorf("got %v", err)
			}
		})
	}
}

package search

import (
	"context"
	"fmt"
	"net/http"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/sets"
	genericrequest "k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"

	searchv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/search/v1alpha1"
)

// The categories of the resource search, which are its names.
const (
	categoryCache      = "cache"
	categoryOpenSearch = "opensearch"
)

// searching is the resource search: a GET of search/CATEGORY/PATH, in which PATH is that of objects in a cluster.
type searching struct{ cached *cached }

var (
	_ rest.Connecter            = (*searching)(nil)
	_ rest.Scoper               = (*searching)(nil)
	_ rest.SingularNameProvider = (*searching)(nil)
)

// New implements rest.Storage.
func (*searching) New() runtime.Object { return &searchv1alpha1.Search{} }

// Destroy implements rest.Storage.
func (*searching) Destroy() {}

// NamespaceScoped implements rest.Scoper.
func (*searching) NamespaceScoped() bool { return false }

// GetSingularName implements rest.SingularNameProvider.
func (*searching) GetSingularName() string { return "search" }

// ConnectMethods implements rest.Connecter.
func (*searching) ConnectMethods() []string { return []string{http.MethodGet} }

// NewConnectOptions implements rest.Connecter. The path comes from the request.
func (*searching) NewConnectOptions() (runtime.Object, bool, string) { return nil, true, "" }

// Connect implements rest.Connecter.
func (s *searching) Connect(_ context.Context, category string, _ runtime.Object, responder rest.Responder) (http.Handler, error) {
	switch category {
	case categoryOpenSearch:
		return http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}), nil
	case categoryCache:
		return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
			info, err := parseNative(req, category)
			if err != nil {
				responder.Error(failure(http.StatusNotFound, metav1.StatusReasonNotFound, err.Error()))
				return
			}
			s.cached.serve(w, req, info, responder)
		}), nil
	}
	return nil, failure(http.StatusNotFound, metav1.StatusReasonNotFound, "connect with unrecognized search category "+category)
}

// maxNativeParts is the number of parts of a path below the namespace: resource and name.
const maxNativeParts = 2

// parseNative returns the request for objects of a cluster that a request for a category contains.
func parseNative(req *http.Request, category string) (*genericrequest.RequestInfo, error) {
	prefix := "/apis/" + searchv1alpha1.GroupVersion.String() + "/search/" + category
	native := strings.TrimPrefix(req.URL.Path, prefix)
	inner := &http.Request{Method: http.MethodGet, URL: req.URL.JoinPath()}
	inner.URL.Path, inner.URL.RawPath, inner.URL.RawQuery = native, "", ""
	resolver := genericrequest.RequestInfoFactory{APIPrefixes: sets.NewString("api", "apis"), GrouplessAPIPrefixes: sets.NewString("api")}
	info, err := resolver.NewRequestInfo(inner)
	if err != nil {
		return nil, fmt.Errorf("reading the path %s: %w", native, err)
	}
	if !info.IsResourceRequest {
		return nil, fmt.Errorf("k8s native Request URL(%s) is not a resource request", native)
	}
	if len(info.Parts) > maxNativeParts {
		return nil, fmt.Errorf("invalid request parts(%s) for k8s native request URL", info.Parts)
	}
	return info, nil
}

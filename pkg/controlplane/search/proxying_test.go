package search

import (
	"context"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"

	"github.com/karmada-toolkit/karmada/pkg/controlplane/aggregated/proxy"
)

// rights reports whether one of the users of the test may do something.
func rights(attributes authorizer.Attributes) bool {
	resource := attributes.GetResource()
	if attributes.GetSubresource() != "" {
		resource += "/" + attributes.GetSubresource()
	}
	switch attributes.GetUser().GetName() {
	case "one-namespace":
		return attributes.GetNamespace() == "team"
	case "no-logs":
		return resource == "pods" && slices.Contains([]string{"get", "list", "watch"}, attributes.GetVerb())
	case "streams-by-get":
		return resource != "pods" && attributes.GetVerb() == "get"
	case "one-pod":
		return attributes.GetVerb() == "list" && attributes.GetName() == "mine"
	case "admin":
		return true
	}
	return false
}

// What a user may do through the proxy follows from the rights for the inner request: verb by verb, subresource by subresource.
func TestGlobal_Authorize(t *testing.T) {
	g := &global{cached: &cached{
		authorizer: authorizer.AuthorizerFunc(func(_ context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
			if rights(a) {
				return authorizer.DecisionAllow, "", nil
			}
			return authorizer.DecisionNoOpinion, "", nil
		}),
	}}
	const pods, all = "/api/v1/namespaces/team/pods", "/api/v1/pods"
	const no, ok = false, true
	users := []string{"one-namespace", "no-logs", "streams-by-get", "one-pod", "nobody", "admin"}
	for _, tc := range []struct {
		method, path string
		may          [6]bool
	}{
		{"GET", pods, [6]bool{ok, ok, no, no, no, ok}},
		{"HEAD", pods, [6]bool{ok, ok, no, no, no, ok}},
		{"GET", pods + "/a", [6]bool{ok, ok, no, no, no, ok}},
		{"GET", pods + "?watch=true", [6]bool{ok, ok, no, no, no, ok}},
		{"GET", "/api/v1/watch/namespaces/team/pods", [6]bool{ok, ok, no, no, no, ok}},
		{"GET", pods + "?fieldSelector=metadata.name%3Dmine", [6]bool{ok, ok, no, ok, no, ok}}, // the selector leaves out all others
		{"GET", pods + "?fieldSelector=metadata.name!%3Dmine", [6]bool{ok, ok, no, no, no, ok}},
		{"GET", pods + "/a/log", [6]bool{ok, no, ok, no, no, ok}},
		{"GET", pods + "/a/status", [6]bool{ok, no, ok, no, no, ok}},
		{"GET", pods + "/a/exec?command=sh", [6]bool{ok, no, no, no, no, ok}},
		{"GET", pods + "/a/attach", [6]bool{ok, no, no, no, no, ok}},
		{"GET", pods + "/a/portforward", [6]bool{ok, no, no, no, no, ok}},
		{"GET", pods + "/a/proxy/path", [6]bool{ok, no, no, no, no, ok}},
		{"POST", pods + "/a/exec", [6]bool{ok, no, no, no, no, ok}},
		{"POST", pods + "/a/eviction", [6]bool{ok, no, no, no, no, ok}},
		{"POST", pods, [6]bool{ok, no, no, no, no, ok}},
		{"PUT", pods + "/a", [6]bool{ok, no, no, no, no, ok}},
		{"PATCH", pods + "/a", [6]bool{ok, no, no, no, no, ok}},
		{"DELETE", pods + "/a", [6]bool{ok, no, no, no, no, ok}},
		{"DELETE", pods, [6]bool{ok, no, no, no, no, ok}},
		{"OPTIONS", pods, [6]bool{ok, no, no, no, no, ok}},
		{"GET", all, [6]bool{no, ok, no, no, no, ok}},
		{"GET", "/api/v1/namespaces/other/pods", [6]bool{no, ok, no, no, no, ok}},
		{"GET", "/api/v1/namespaces/team/secrets/a", [6]bool{ok, no, ok, no, no, ok}},
		{"GET", "/api/v1/namespaces/other", [6]bool{no, no, ok, no, no, ok}},
	} {
		for i, name := range users {
			path, query, _ := strings.Cut(tc.path, "?")
			req := httptest.NewRequest(tc.method, "/?"+query, nil)
			info, err := proxy.NewInner(path).Info(req)
			if err != nil {
				t.Fatal(err)
			}
			err = g.authorize(req, info, &user.DefaultInfo{Name: name})
			if err != nil && !apierrors.IsForbidden(err) {
				t.Errorf("%s %s as %s: %v", tc.method, tc.path, name, err)
			}
			if (err == nil) != tc.may[i] {
				t.Errorf("%s %s as %s: %v", tc.method, tc.path, name, err)
			}
		}
	}
}

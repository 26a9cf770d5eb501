package e2e

import (
	"context"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
)

// refusal matches what the API server answers to a component without the right, in
// plain text or quoted once more by a structured log. The name precedes the user for
// requests that name an object.
var refusal = regexp.MustCompile(`(?:\\*"([^"\\ ]+)\\*" is forbidden: )?User \\*"(system:karmada:[a-z-]+)\\*" cannot ([a-z]+) resource \\*"([^"\\]+)\\*" in API group \\*"([^"\\]*)\\*"(?: in the namespace \\*"([^"\\]+)\\*")?`)

// refused returns the distinct requests that logs say were refused, by their text.
func refused(logs string) map[string]authorizationv1.SubjectAccessReviewSpec {
	requests := map[string]authorizationv1.SubjectAccessReviewSpec{}
	for _, m := range refusal.FindAllStringSubmatch(logs, -1) {
		resource, subresource, _ := strings.Cut(m[4], "/")
		requests[m[0]] = authorizationv1.SubjectAccessReviewSpec{
			User: m[2],
			ResourceAttributes: &authorizationv1.ResourceAttributes{
				Name: m[1], Verb: m[3], Resource: resource, Subresource: subresource, Group: m[5], Namespace: m[6],
			},
		}
	}
	return requests
}

// missingRights returns what the components of the control plane were refused, by
// their logs, and still are. An API server that starts refuses requests until it
// has read the roles; those do not count.
func missingRights(ctx context.Context, logs string) ([]string, error) {
	var out []string
	for line := range strings.Lines(logs) {
		if strings.Contains(line, "attempting to grant RBAC permissions") {
			out = append(out, strings.TrimSpace(line))
		}
	}
	requests := refused(logs)
	if len(requests) == 0 {
		return out, nil
	}
	cfg, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return nil, err
	}
	c, err := kubernetes.NewForConfig(cfg)
	if err != nil {
		return nil, err
	}
	for text, spec := range requests {
		review := &authorizationv1.SubjectAccessReview{Spec: spec}
		answer, err := c.AuthorizationV1().SubjectAccessReviews().Create(ctx, review, metav1.CreateOptions{})
		if err != nil {
			return nil, fmt.Errorf("reviewing %s: %w", text, err)
		}
		if !answer.Status.Allowed {
			out = append(out, text)
		}
	}
	slices.Sort(out)
	return slices.Compact(out), nil
}

func TestRefused_ReadsRequestsFromLogs(t *testing.T) {
	attributes := func(a authorizationv1.ResourceAttributes) *authorizationv1.ResourceAttributes { return &a }
	for _, c := range []struct {
		name, line string
		want       authorizationv1.SubjectAccessReviewSpec
	}{
		{
			name: "get of one object",
			line: `configmaps "extension-apiserver-authentication" is forbidden: User "system:karmada:aggregated-apiserver" cannot get resource "configmaps" in API group "" in the namespace "kube-system"`,
			want: authorizationv1.SubjectAccessReviewSpec{
				User: "system:karmada:aggregated-apiserver",
				ResourceAttributes: attributes(authorizationv1.ResourceAttributes{
					Name: "extension-apiserver-authentication", Verb: "get", Resource: "configmaps", Namespace: "kube-system",
				}),
			},
		},
		{
			name: "the same in a structured log",
			line: `err="configmaps \"extension-apiserver-authentication\" is forbidden: User \"system:karmada:aggregated-apiserver\" cannot get resource \"configmaps\" in API group \"\" in the namespace \"kube-system\""`,
			want: authorizationv1.SubjectAccessReviewSpec{
				User: "system:karmada:aggregated-apiserver",
				ResourceAttributes: attributes(authorizationv1.ResourceAttributes{
					Name: "extension-apiserver-authentication", Verb: "get", Resource: "configmaps", Namespace: "kube-system",
				}),
			},
		},
		{
			name: "list in every namespace",
			line: `works.work.karmada.io is forbidden: User "system:karmada:scheduler" cannot list resource "works/status" in API group "work.karmada.io" at the cluster scope`,
			want: authorizationv1.SubjectAccessReviewSpec{
				User: "system:karmada:scheduler",
				ResourceAttributes: attributes(authorizationv1.ResourceAttributes{
					Verb: "list", Resource: "works", Subresource: "status", Group: "work.karmada.io",
				}),
			},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := slices.Collect(maps.Values(refused(c.line)))
			if diff := cmp.Diff([]authorizationv1.SubjectAccessReviewSpec{c.want}, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

package e2e

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"

	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
)

// refusal matches what the API server answers to a component without the right.
var refusal = regexp.MustCompile(`User \\*"(system:karmada:[a-z-]+)\\*" cannot ([a-z]+) resource \\*"([^"\\]+)\\*" in API group \\*"([^"\\]*)\\*"(?: in the namespace \\*"([^"\\]+)\\*")?`)

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
	asked := map[string][]string{}
	for _, m := range refusal.FindAllStringSubmatch(logs, -1) {
		asked[m[0]] = m[1:]
	}
	if len(asked) == 0 {
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
	for text, m := range asked {
		resource, subresource, _ := strings.Cut(m[2], "/")
		review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
			User: m[0], ResourceAttributes: &authorizationv1.ResourceAttributes{Verb: m[1], Resource: resource, Subresource: subresource, Group: m[3], Namespace: m[4]},
		}}
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

package preflight

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/karmada-toolkit/karmada/pkg/init/hostcluster"
)

// permission is something that an installation does in the host cluster.
type permission struct {
	group, resource string
	verbs           []string
	clusterWide     bool
	name            string
}

// permissions are what an installation may have to do in the host cluster.
type permissions struct{ Deps }

func (p permissions) wanted() []permission {
	write := []string{"get", "create", "patch"}
	out := []permission{
		{resource: "namespaces", verbs: write, clusterWide: true, name: p.Config.APIServer.Namespace},
		{resource: "secrets", verbs: write},
		{resource: "services", verbs: write},
		{group: "apps", resource: "deployments", verbs: append([]string{"list"}, write...)},
		{resource: "pods", verbs: []string{"list"}},
	}
	if len(p.Facts.Obsolete(p.Config)) > 0 {
		out = append(out, permission{group: "apps", resource: "deployments", verbs: []string{"delete"}})
	}
	if !p.Config.Etcd.External.Used() {
		out = append(out, permission{group: "apps", resource: "statefulsets", verbs: append([]string{"list"}, write...)})
		if p.Config.Etcd.OnNode() && len(p.Config.Etcd.NodeLabels) == 0 {
			out = append(out, permission{resource: "nodes", verbs: []string{"list", "patch"}, clusterWide: true})
		}
	}
	return out
}

// check reviews in the host cluster what the user may do.
func (p permissions) check(ctx context.Context) ([]string, error) {
	var mu sync.Mutex
	missing := map[string][]string{}
	g, ctx := errgroup.WithContext(ctx)
	for _, w := range p.wanted() {
		for _, verb := range w.verbs {
			g.Go(func() error {
				attributes := &authorizationv1.ResourceAttributes{Verb: verb, Group: w.group, Resource: w.resource, Name: w.name, Namespace: p.Config.APIServer.Namespace}
				if w.clusterWide {
					attributes.Namespace = ""
				}
				review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: attributes}}
				answer, err := p.Host.AuthorizationV1().SelfSubjectAccessReviews().Create(ctx, review, metav1.CreateOptions{})
				if err != nil {
					return hostcluster.ConnectionError(err)
				}
				if !answer.Status.Allowed {
					mu.Lock()
					missing[w.resource] = append(missing[w.resource], verb)
					mu.Unlock()
				}
				return nil
			})
		}
	}
	if err := g.Wait(); err != nil {
		return nil, fmt.Errorf("asking the host cluster what is allowed: %w", err)
	}
	var out []string
	for resource, verbs := range missing {
		slices.Sort(verbs)
		out = append(out, fmt.Sprintf("the user of the host cluster may not %s %s: use another --context, or have it allowed", strings.Join(verbs, ", "), resource))
	}
	return out, nil
}

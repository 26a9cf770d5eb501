package webhook

import (
	"context"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	policyv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/policy/v1alpha1"
)

const (
	// reviewTimeout bounds the reviews of one policy; API servers wait 3 s for the webhook.
	reviewTimeout = 2 * time.Second
	// reviewedKinds limits the kinds that an OverridePolicy selects, for each is a review, and parallelReviews how many
	// of them are sent at the same time.
	reviewedKinds, parallelReviews = 64, 8
)

// Access reviews what the users may do who write policies.
type Access struct {
	// Review returns whether a user may do something. It changes nothing, so that dry runs are reviewed as well.
	Review func(ctx context.Context, spec *authorizationv1.SubjectAccessReviewSpec) (bool, error)
	// Resource returns the resource of a kind.
	Resource func(kind schema.GroupVersionKind) (schema.GroupResource, error)
}

// newAccess returns the reviews of an API server.
func newAccess(c client.Writer, mapper meta.RESTMapper) *Access {
	return &Access{
		Review: func(ctx context.Context, spec *authorizationv1.SubjectAccessReviewSpec) (bool, error) {
			review := &authorizationv1.SubjectAccessReview{Spec: *spec}
			if err := c.Create(ctx, review); err != nil {
				return false, err
			}
			return review.Status.Allowed, nil
		},
		Resource: func(kind schema.GroupVersionKind) (schema.GroupResource, error) {
			mapping, err := mapper.RESTMapping(kind.GroupKind(), kind.Version)
			if meta.IsNoMatchError(err) {
				// It may be served later, most probably under this name.
				guess, _ := meta.UnsafeGuessKindToResource(kind)
				return guess.GroupResource(), nil
			}
			if err != nil {
				return schema.GroupResource{}, fmt.Errorf("looking up the resource of %s: %w", kind, err)
			}
			return mapping.Resource.GroupResource(), nil
		},
	}
}

// overridden returns why the author of a request may not have objects of its namespace overridden by a policy, or nil: who
// may not update objects of a kind in the control plane must not change them on their way to members either. A policy
// without selectors changes every kind. Only specs that are new or changed are reviewed.
func (a *Access) overridden(ctx context.Context, req *admission.Request, p *policyv1alpha1.OverridePolicy) error {
	if a == nil || !specChanged(req) {
		return nil
	}
	path := field.NewPath("spec", "resourceSelectors")
	kinds, err := a.kinds(p.Spec.ResourceSelectors, path)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, reviewTimeout)
	defer cancel()
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(parallelReviews)
	refusals := make([]*field.Error, len(kinds))
	for i, k := range kinds {
		g.Go(func() error {
			allowed, err := a.Review(ctx, reviewOf(&req.UserInfo, req.Namespace, k.resource))
			if err != nil {
				return failure{fmt.Errorf("reviewing whether user %q may update %s in namespace %q, which an OverridePolicy for them needs; try it again: %w",
					req.UserInfo.Username, k.resource, req.Namespace, err)}
			}
			if !allowed {
				refusals[i] = k.refusal(req)
			}
			return nil
		})
	}
	if err := g.Wait(); err != nil {
		return err
	}
	var refused field.ErrorList
	for _, r := range refusals {
		if r != nil {
			refused = append(refused, r)
		}
	}
	return refused.ToAggregate()
}

// selectedKind is a kind that a policy selects, and where.
type selectedKind struct {
	path     *field.Path
	resource schema.GroupResource
}

// kinds returns the kinds of selectors, each once.
func (a *Access) kinds(selectors []policyv1alpha1.ResourceSelector, path *field.Path) ([]selectedKind, error) {
	if len(selectors) == 0 {
		return []selectedKind{{path, schema.GroupResource{Group: "*", Resource: "*"}}}, nil
	}
	var out []selectedKind
	known := map[schema.GroupVersionKind]bool{}
	for i := range selectors {
		kind := schema.FromAPIVersionAndKind(selectors[i].APIVersion, selectors[i].Kind)
		if known[kind] {
			continue
		}
		known[kind] = true
		if len(out) == reviewedKinds {
			return nil, field.TooMany(path, len(out)+1, reviewedKinds)
		}
		resource, err := a.Resource(kind)
		if err != nil {
			return nil, failure{err}
		}
		out = append(out, selectedKind{path.Index(i), resource})
	}
	return out, nil
}

// refusal returns the error of a kind that the author may not update.
func (k *selectedKind) refusal(req *admission.Request) *field.Error {
	if k.resource.Resource == "*" {
		return field.Forbidden(k.path, fmt.Sprintf("a policy without selectors changes objects of every kind, and user %q may not update all of them in namespace %q: select the kinds",
			req.UserInfo.Username, req.Namespace))
	}
	return field.Forbidden(k.path, fmt.Sprintf("user %q may not update %s in namespace %q, so no OverridePolicy of this user changes them in clusters",
		req.UserInfo.Username, k.resource, req.Namespace))
}

// reviewOf returns the review whether a user may update the objects of a resource in a namespace.
func reviewOf(user *authenticationv1.UserInfo, namespace string, resource schema.GroupResource) *authorizationv1.SubjectAccessReviewSpec {
	extra := make(map[string]authorizationv1.ExtraValue, len(user.Extra))
	for key, value := range user.Extra {
		extra[key] = authorizationv1.ExtraValue(value)
	}
	return &authorizationv1.SubjectAccessReviewSpec{
		User: user.Username, Groups: user.Groups, UID: user.UID, Extra: extra,
		ResourceAttributes: &authorizationv1.ResourceAttributes{
			Namespace: namespace, Verb: "update", Group: resource.Group, Version: "*", Resource: resource.Resource,
		},
	}
}

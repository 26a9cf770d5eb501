package webhook

import (
	"context"
	"errors"
	"fmt"
	"slices"
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
	"github.com/karmada-toolkit/karmada/pkg/domain/manifest"
)

const (
	// reviewTimeout bounds the reviews of one policy; API servers wait 3 s for the webhook.
	reviewTimeout = 2 * time.Second
	// reviewedKinds limits the kinds that an OverridePolicy selects, and the objects that a ClusterPropagationPolicy deactivates, for each is a review, and parallelReviews how many
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
	kinds := []selectedKind{{field.NewPath("spec", "resourceSelectors"), schema.GroupResource{Group: "*", Resource: "*"}, ""}}
	if len(p.Spec.ResourceSelectors) > 0 {
		var err error
		if kinds, err = a.kinds(p.Spec.ResourceSelectors, false, func(schema.GroupKind) bool { return true }); err != nil {
			return err
		}
	}
	ctx, cancel := context.WithTimeout(ctx, reviewTimeout)
	defer cancel()
	denied, err := a.denied(ctx, req, kinds)
	return errors.Join(err, refused(denied, func(k selectedKind) string {
		if k.resource.Resource == "*" {
			return fmt.Sprintf("a policy without selectors changes objects of every kind, and user %q may not update all of them in namespace %q: select the kinds",
				req.UserInfo.Username, req.Namespace)
		}
		return k.may(req, "may not") + ", so no OverridePolicy of this user changes them in clusters"
	}))
}

// deactivated returns why the author of a request may not have objects deactivated in the control plane by a policy that selects
// them, or nil: a template that acts there, such as a webhook configuration, does not while a policy claims it. That takes the
// right to update the object, or all of the kind for a selector without a name, also of objects that do not exist yet. Only specs
// that are new or changed are reviewed.
func (a *Access) deactivated(ctx context.Context, req *admission.Request, p *policyv1alpha1.ClusterPropagationPolicy) error {
	if a == nil || !specChanged(req) {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, reviewTimeout)
	defer cancel()
	kinds, err := a.kinds(p.Spec.ResourceSelectors, false, manifest.MayAct)
	if err != nil {
		return err
	}
	denied, err := a.denied(ctx, req, kinds)
	if err != nil || len(denied) == 0 {
		return err
	}
	// Who may not update all of a kind may update objects by name.
	if kinds, err = a.kinds(p.Spec.ResourceSelectors, true, manifest.MayAct); err != nil {
		return err
	}
	denied, err = a.denied(ctx, req, slices.DeleteFunc(kinds, func(k selectedKind) bool {
		return !slices.ContainsFunc(denied, func(all selectedKind) bool { return all.resource == k.resource })
	}))
	return errors.Join(err, refused(denied, func(k selectedKind) string {
		return k.may(req, "may not") + ", which a policy takes out of effect in the control plane: select, by name, what this user may update"
	}))
}

// denied returns what the author of a request may not update.
func (a *Access) denied(ctx context.Context, req *admission.Request, kinds []selectedKind) ([]selectedKind, error) {
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(parallelReviews)
	allowed := make([]bool, len(kinds))
	for i, k := range kinds {
		g.Go(func() (err error) {
			if allowed[i], err = a.Review(ctx, reviewOf(&req.UserInfo, req.Namespace, k)); err != nil {
				return failure{fmt.Errorf("reviewing whether %s, which a policy for them needs; try it again: %w", k.may(req, "may"), err)}
			}
			return nil
		})
	}
	if err := g.Wait(); err != nil {
		return nil, err
	}
	var out []selectedKind
	for i := range kinds {
		if !allowed[i] {
			out = append(out, kinds[i])
		}
	}
	return out, nil
}

// refused returns an error of the selectors that select what is denied.
func refused(denied []selectedKind, text func(selectedKind) string) error {
	var out field.ErrorList
	for _, k := range denied {
		out = append(out, field.Forbidden(k.path, text(k)))
	}
	return out.ToAggregate()
}

// selectedKind is a kind that a policy selects, and where.
type selectedKind struct {
	path     *field.Path
	resource schema.GroupResource
	// name is that of the only object, empty for all.
	name string
}

// kinds returns the kinds of selectors, each once, or each once for every name, of those kinds that are reviewed.
func (a *Access) kinds(selectors []policyv1alpha1.ResourceSelector, byName bool, reviewed func(schema.GroupKind) bool) ([]selectedKind, error) {
	path := field.NewPath("spec", "resourceSelectors")
	type key struct {
		schema.GroupVersionKind
		name string
	}
	var out []selectedKind
	known := map[key]bool{}
	for i := range selectors {
		k := key{schema.FromAPIVersionAndKind(selectors[i].APIVersion, selectors[i].Kind), ""}
		if byName {
			k.name = selectors[i].Name
		}
		if known[k] || !reviewed(k.GroupKind()) {
			continue
		}
		known[k] = true
		if len(out) == reviewedKinds {
			return nil, field.TooMany(path, len(out)+1, reviewedKinds)
		}
		resource, err := a.Resource(k.GroupVersionKind)
		if err != nil {
			return nil, failure{err}
		}
		out = append(out, selectedKind{path.Index(i), resource, k.name})
	}
	return out, nil
}

// may returns that the author of a request may, or may not, update what is selected.
func (k selectedKind) may(req *admission.Request, verb string) string {
	text := fmt.Sprintf("user %q %s update %s", req.UserInfo.Username, verb, k.resource)
	if k.name != "" {
		text += fmt.Sprintf(" %q", k.name)
	}
	if req.Namespace != "" {
		text += fmt.Sprintf(" in namespace %q", req.Namespace)
	}
	return text
}

// reviewOf returns the review whether a user may update what is selected in a namespace.
func reviewOf(user *authenticationv1.UserInfo, namespace string, k selectedKind) *authorizationv1.SubjectAccessReviewSpec {
	extra := make(map[string]authorizationv1.ExtraValue, len(user.Extra))
	for key, value := range user.Extra {
		extra[key] = authorizationv1.ExtraValue(value)
	}
	return &authorizationv1.SubjectAccessReviewSpec{
		User: user.Username, Groups: user.Groups, UID: user.UID, Extra: extra,
		ResourceAttributes: &authorizationv1.ResourceAttributes{
			Namespace: namespace, Verb: "update", Group: k.resource.Group, Version: "*", Resource: k.resource.Resource, Name: k.name,
		},
	}
}

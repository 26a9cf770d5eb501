package search

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	genericrequest "k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/warning"

	"github.com/karmada-toolkit/karmada/pkg/controlplane/search/cache"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/search/columns"
	domain "github.com/karmada-toolkit/karmada/pkg/domain/search"
)

// cached answers requests for cached objects.
type cached struct {
	caches *cache.Caches
	// notReady returns an error while the caches are not complete for the first time.
	notReady func() error
	// answers are those that are being made.
	answers answers
	// authorizer decides whether a requester may read the objects. It asks the control plane.
	authorizer authorizer.Authorizer
	// mapper knows the kinds of the control plane.
	mapper meta.RESTMapper
	// definition returns the definition of a custom resource in the control plane.
	definition columns.Definition
}

// list is a list of the objects of several clusters.
type list struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata"`
	Items           []json.RawMessage `json:"items"`
}

// serve answers with a list, also for one object: several clusters may have it.
func (c *cached) serve(w http.ResponseWriter, req *http.Request, info *genericrequest.RequestInfo, responder rest.Responder) {
	resource := schema.GroupVersionResource{Group: info.APIGroup, Version: info.APIVersion, Resource: info.Resource}
	if err := c.authorize(req, info); err != nil {
		responder.Error(err)
		return
	}
	query, options, err := queryOf(req.URL.Query(), resource, info)
	if err != nil {
		answer(w, http.StatusBadRequest, problem{err.Error()})
		return
	}
	kind, err := c.kindOf(resource)
	if err != nil {
		answer(w, http.StatusInternalServerError, problem{err.Error()})
		return
	}
	if err := c.selectFields(req.Context(), &query, kind, options); err != nil {
		answer(w, http.StatusBadRequest, problem{err.Error()})
		return
	}
	if err := c.notReady(); err != nil {
		responder.Error(err)
		return
	}
	result, err := c.caches.List(query)
	switch {
	case errors.As(err, new(cache.TokenError)):
		responder.Error(apierrors.NewResourceExpired(err.Error()))
		return
	case err != nil:
		answer(w, http.StatusInternalServerError, problem{err.Error()})
		return
	}
	for _, m := range result.Missing {
		warning.AddWarning(req.Context(), "", fmt.Sprintf("cluster %s: %s", m.Cluster, m.Reason))
	}
	lease, err := c.lease(req, result)
	if err != nil {
		responder.Error(err)
		return
	}
	defer lease.free()
	out := list{Items: []json.RawMessage{}}
	out.APIVersion, out.Kind = kind.GroupVersion().String(), kind.Kind+"List"
	out.Continue = result.Continue
	if err := sendList(w, "application/json; charset=utf-8", out, len(result.Items), func(i int) ([]byte, error) { return result.Items[i].JSON() }); err != nil {
		answer(w, http.StatusInternalServerError, problem{err.Error()})
	}
}

// newLease returns a lease of the requester.
func (c *cached) newLease(req *http.Request) *lease {
	out := &lease{answers: &c.answers}
	if requester, ok := genericrequest.UserFrom(req.Context()); ok {
		out.user = requester.GetName()
	}
	return out
}

// lease takes the memory for an answer with cached objects: that of the largest one, since they are sent one after the other.
func (c *cached) lease(req *http.Request, result cache.Result) (*lease, error) {
	size := 0
	for _, item := range result.Items {
		size = max(size, item.Length())
	}
	out := c.newLease(req)
	return out, out.grow(int64(size) + bufferSize)
}

// authorize returns an error unless the requester may read these objects in the control plane: the right to use the cache
// alone does not show any object.
func (c *cached) authorize(req *http.Request, info *genericrequest.RequestInfo) error {
	user, ok := genericrequest.UserFrom(req.Context())
	if !ok {
		return apierrors.NewUnauthorized("the request has no user")
	}
	verb := "list"
	if info.Name != "" {
		verb = "get"
	}
	decision, reason, err := c.authorizer.Authorize(req.Context(), authorizer.AttributesRecord{
		User: user, Verb: verb, Namespace: info.Namespace, APIGroup: info.APIGroup, APIVersion: info.APIVersion,
		Resource: info.Resource, Name: info.Name, ResourceRequest: true, Path: info.Path,
	})
	if err != nil {
		return apierrors.NewInternalError(fmt.Errorf("checking the rights of user %q: %w", user.GetName(), err))
	}
	if decision == authorizer.DecisionAllow {
		return nil
	}
	where := "in all namespaces"
	if info.Namespace != "" {
		where = fmt.Sprintf("in namespace %q", info.Namespace)
	}
	text := fmt.Sprintf("user %q cannot %s them in the control plane %s", user.GetName(), verb, where)
	if reason != "" {
		text += ": " + reason
	}
	return apierrors.NewForbidden(schema.GroupResource{Group: info.APIGroup, Resource: info.Resource}, info.Name, errors.New(text))
}

// kindOf returns the kind of a resource: that of a cache, or else of the control plane.
func (c *cached) kindOf(resource schema.GroupVersionResource) (schema.GroupVersionKind, error) {
	if kind, ok := c.caches.Kind(resource); ok {
		return kind, nil
	}
	kind, err := c.mapper.KindFor(resource)
	if err != nil {
		return kind, fmt.Errorf("neither a registry nor the control plane has the resource %s: %w", resource, err)
	}
	return kind, nil
}

// maxToken is the length of a resourceVersion or a continue token, in bytes, which answers repeat. It is enough for 5,000 clusters.
const maxToken = 256 << 10

// queryOf returns what a request selects, its fields aside.
func queryOf(values url.Values, resource schema.GroupVersionResource, info *genericrequest.RequestInfo) (cache.Query, metav1.ListOptions, error) {
	q := cache.Query{Resource: resource, Namespace: namespaceOf(info), Name: info.Name}
	var options metav1.ListOptions
	if err := metav1.Convert_url_Values_To_v1_ListOptions(&values, &options, nil); err != nil {
		return q, options, fmt.Errorf("reading the parameters: %w", err)
	}
	if info.Name != "" {
		return q, metav1.ListOptions{}, nil
	}
	if max(len(options.ResourceVersion), len(options.Continue)) > maxToken {
		return q, options, fmt.Errorf("the resourceVersion or the continue token is longer than %d bytes: list again without it", maxToken)
	}
	selector, err := labels.Parse(options.LabelSelector)
	if err != nil {
		return q, options, fmt.Errorf("reading the label selector: %w", err)
	}
	if options.Limit < 0 {
		return q, options, fmt.Errorf("the limit %d is negative", options.Limit)
	}
	q.Labels, q.Limit, q.Continue = selector, options.Limit, options.Continue
	return q, options, nil
}

// namespaceOf returns the namespace of the objects of a request. A path of a Namespace has its name as the namespace too, but
// the object is in none.
func namespaceOf(info *genericrequest.RequestInfo) string {
	if info.APIGroup == "" && info.Resource == "namespaces" && info.Namespace == info.Name {
		return ""
	}
	return info.Namespace
}

// selectFields adds the field selector to a query.
func (c *cached) selectFields(ctx context.Context, q *cache.Query, kind schema.GroupVersionKind, options metav1.ListOptions) error {
	if options.FieldSelector == "" {
		return nil
	}
	selector, err := fields.ParseSelector(options.FieldSelector)
	if err != nil {
		return fmt.Errorf("reading the field selector: %w", err)
	}
	compiled, err := domain.CompileFields(kind, selector)
	if errors.As(err, new(domain.FieldError)) {
		definition, unknown := c.definition(ctx, q.Resource.GroupResource())
		if unknown != nil {
			return fmt.Errorf("reading the fields that the definition of %s makes selectable: %w", q.Resource.GroupResource(), unknown)
		}
		compiled, err = domain.CompileFields(kind, selector, selectableFields(definition, kind.Version)...)
	}
	if err != nil {
		return err
	}
	q.Selected = func(o *cache.Object) (bool, error) {
		if compiled.Identity() {
			return compiled.MatchesIdentity(o.Namespace, o.Name), nil
		}
		object, err := o.Decode()
		if err != nil {
			return false, err
		}
		return compiled.Matches(object), nil
	}
	return nil
}

// selectableFields returns the fields that a definition makes selectable in a version.
func selectableFields(definition *apiextensionsv1.CustomResourceDefinition, version string) []string {
	var out []string
	if definition != nil {
		for i := range definition.Spec.Versions {
			if v := &definition.Spec.Versions[i]; v.Name == version {
				for _, field := range v.SelectableFields {
					out = append(out, strings.TrimPrefix(field.JSONPath, "."))
				}
			}
		}
	}
	return out
}

// problem is the form of errors of the contract for this resource.
type problem struct {
	Error string `json:"error"`
}

// answer writes JSON.
func answer(w http.ResponseWriter, code int, body any) {
	data, err := json.Marshal(body)
	if err != nil {
		code, data = http.StatusInternalServerError, []byte(`{"error":"encoding the answer failed"}`)
	}
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.WriteHeader(code)
	_, _ = w.Write(data)
}

package access

import (
	"cmp"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
)

// Identity is what an object is. As a request, Kind, Namespace and Name may be empty: any is right then.
type Identity struct {
	APIVersion, Kind, Namespace, Name string
}

// IdentityOf returns the identity of an object.
func IdentityOf(obj *unstructured.Unstructured) Identity {
	return Identity{APIVersion: obj.GetAPIVersion(), Kind: obj.GetKind(), Namespace: obj.GetNamespace(), Name: obj.GetName()}
}

// Requested returns the identity of a request for an object. namespace and name may be empty.
func Requested(gvk schema.GroupVersionKind, namespace, name string) Identity {
	return Identity{APIVersion: gvk.GroupVersion().String(), Kind: gvk.Kind, Namespace: namespace, Name: name}
}

// Check returns an error unless got, which a member returned, is what was requested. Everything that is read from a
// member goes through it: a member must not choose what its objects are elsewhere.
func (i Identity) Check(got Identity) error {
	switch {
	case got.APIVersion != i.APIVersion:
		return differs("apiVersion", got.APIVersion, i.APIVersion)
	case i.Kind != "" && got.Kind != i.Kind:
		return differs("kind", got.Kind, i.Kind)
	case i.Namespace != "" && got.Namespace != i.Namespace:
		return differs("namespace", got.Namespace, i.Namespace)
	case i.Name != "" && got.Name != i.Name:
		return differs("name", got.Name, i.Name)
	}
	return nil
}

// CheckIn returns the error of Check, and one for a namespace where none is: namespaced reports whether objects of the
// requested type have a namespace.
func (i Identity) CheckIn(got Identity, namespaced bool) error {
	if !namespaced && got.Namespace != "" {
		return differs("namespace", got.Namespace, "")
	}
	return i.Check(got)
}

func differs(field, got, want string) error {
	return fmt.Errorf("the object has the %s %.100q and not %q, which was requested", field, got, want)
}

// GuardIdentity makes the clients of a configuration refuse objects that were not requested: responses to reads and
// writes of objects, lists and watches, with another apiVersion, kind, namespace or name. Guard includes it.
func GuardIdentity(cfg *rest.Config) *rest.Config {
	g := newGuard(cfg.Host, Timeout)
	cfg.Wrap(func(base http.RoundTripper) http.RoundTripper { return &identified{guard: g, base: base} })
	return cfg
}

// identified checks identities without the limits of a guard.
type identified struct {
	guard *guard
	base  http.RoundTripper
}

// WrappedRoundTripper lets client-go find the transport below.
func (i *identified) WrappedRoundTripper() http.RoundTripper { return i.base }

// CancelRequest does nothing, since the contexts of requests end them. client-go's cache of discovery logs its absence.
func (*identified) CancelRequest(*http.Request) {}

// RoundTrip implements http.RoundTripper.
func (i *identified) RoundTrip(req *http.Request) (*http.Response, error) {
	heads := i.guard.heads(req)
	if heads != nil {
		req = req.Clone(req.Context())
		req.Header.Set("Accept", withoutBinary(req.Header.Values("Accept")))
	}
	resp, err := i.base.RoundTrip(req)
	if err == nil && heads != nil && succeeded(resp) {
		resp.Body = &identifiedBody{ReadCloser: resp.Body, heads: heads, method: req.Method, path: req.URL.Path}
	}
	return resp, err
}

func succeeded(resp *http.Response) bool {
	return resp.StatusCode >= http.StatusOK && resp.StatusCode < http.StatusMultipleChoices
}

// kinds are the kinds of resources. A member does not choose them: they are those of Kubernetes, and those that were
// looked up by kind.
type kinds struct {
	mu    sync.Mutex
	asked map[schema.GroupVersionResource]string
}

// builtin returns the kinds of the resources of Kubernetes.
var builtin = sync.OnceValue(func() map[schema.GroupVersionResource]string {
	out := map[schema.GroupVersionResource]string{}
	for gvk := range scheme.Scheme.AllKnownTypes() {
		if gvk.Version == "__internal" || strings.HasSuffix(gvk.Kind, "Options") {
			continue
		}
		resource, _ := meta.UnsafeGuessKindToResource(gvk)
		out[resource] = gvk.Kind
	}
	return out
})

// of returns the kind of a resource, or "".
func (k *kinds) of(gvr schema.GroupVersionResource) string {
	k.mu.Lock()
	defer k.mu.Unlock()
	return cmp.Or(builtin()[gvr], k.asked[gvr])
}

// add stores the kind for which a resource was looked up. It returns an error if the resource has another one.
func (k *kinds) add(mapping *meta.RESTMapping) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	kind := mapping.GroupVersionKind.Kind
	if known := cmp.Or(builtin()[mapping.Resource], k.asked[mapping.Resource]); known != "" && known != kind {
		return fmt.Errorf("the cluster claims that kind %q is served as %s, which has the kind %q", kind, mapping.Resource.GroupResource(), known)
	}
	if k.asked == nil {
		k.asked = map[schema.GroupVersionResource]string{}
	}
	k.asked[mapping.Resource] = kind
	return nil
}

// shape are the forms of objects that a request accepts.
type shape struct{ table, partial bool }

// heads returns the check of the response to a request, or nil if it has no objects that are checked: discovery, text,
// deletions, subresources and metrics, whose objects have names of their own.
func (g *guard) heads(req *http.Request) *heads {
	switch req.Method {
	case http.MethodGet, http.MethodPut, http.MethodPatch, http.MethodPost:
	default:
		return nil
	}
	t, ok := parsePath(strings.Trim(strings.TrimPrefix(req.URL.Path, g.prefix), "/"))
	if !ok {
		return nil
	}
	want := Identity{APIVersion: t.resource.GroupVersion().String(), Kind: g.kinds.of(t.resource), Namespace: t.namespace, Name: t.name}
	accept := strings.Join(req.Header.Values("Accept"), ",")
	h := &heads{
		want: want, watch: watches(req.URL), list: t.name == "" && req.Method != http.MethodPost, created: req.Method == http.MethodPost,
		shape: shape{table: strings.Contains(accept, "as=Table"), partial: strings.Contains(accept, "as=PartialObjectMetadata")},
	}
	if h.list {
		h.want.Name = selectedName(req.URL)
	}
	return h
}

// watches reports whether a request is one for a watch.
func watches(u *url.URL) bool {
	switch u.Query().Get("watch") {
	case "", "0", "false":
		return false
	}
	return true
}

// selectedName returns the name that a field selector requires, or "".
func selectedName(u *url.URL) string {
	selector, err := fields.ParseSelector(u.Query().Get("fieldSelector"))
	if err != nil {
		return ""
	}
	name, _ := selector.RequiresExactMatch(metav1.ObjectNameField)
	return name
}

// requested is what the path of a request names.
type requested struct {
	resource        schema.GroupVersionResource
	namespace, name string
}

// parsePath returns what a path names, and whether it is the path of objects.
func parsePath(path string) (requested, bool) {
	parts := strings.Split(path, "/")
	var r requested
	switch {
	case len(parts) >= 3 && parts[0] == "api":
		r.resource.Version, parts = parts[1], parts[2:]
	case len(parts) >= 4 && parts[0] == "apis":
		r.resource.Group, r.resource.Version, parts = parts[1], parts[2], parts[3:]
	default:
		return r, false
	}
	if r.resource.Group == "metrics.k8s.io" || strings.HasSuffix(r.resource.Group, ".metrics.k8s.io") {
		return r, false // their readers leave out what was not requested
	}
	if parts[0] == "namespaces" && len(parts) >= 3 && parts[2] != "status" && parts[2] != "finalize" {
		r.namespace, parts = parts[1], parts[2:]
	}
	r.resource.Resource = parts[0]
	switch {
	case len(parts) == 2, len(parts) == 3 && parts[2] == "status":
		r.name = parts[1]
	case len(parts) > 2:
		return r, false
	}
	return r, true
}

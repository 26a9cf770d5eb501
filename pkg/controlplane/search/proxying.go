package search

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	genericrequest "k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"

	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
	searchv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/search/v1alpha1"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/aggregated/proxy"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/search/cache"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/search/columns"
	domain "github.com/karmada-toolkit/karmada/pkg/domain/search"
)

// maxBody is the size of a body that is translated for a member, in bytes: what an API server accepts.
const maxBody = 3 << 20

// proxying is the resource proxying. Only its subresource proxy can be used.
type proxying struct{}

var (
	_ rest.Storage              = proxying{}
	_ rest.Scoper               = proxying{}
	_ rest.SingularNameProvider = proxying{}
)

// New implements rest.Storage.
func (proxying) New() runtime.Object { return &searchv1alpha1.Proxying{} }

// Destroy implements rest.Storage.
func (proxying) Destroy() {}

// NamespaceScoped implements rest.Scoper.
func (proxying) NamespaceScoped() bool { return false }

// GetSingularName implements rest.SingularNameProvider.
func (proxying) GetSingularName() string { return "proxying" }

// global is the subresource proxying/proxy: all members as one cluster. Objects of kinds that registries select are read from
// the caches; a request for one object goes to the cluster that holds it; other kinds are read in the control plane.
type global struct {
	cached  *cached
	members *proxy.Members
	home    *proxy.ControlPlane
	// cluster returns a Cluster by its name.
	cluster func(ctx context.Context, name string) (*clusterv1alpha1.Cluster, error)
	layouts *columns.Layouts
	// writes lets requests that write kinds that no registry selects go to the control plane.
	writes bool
}

var (
	_ rest.Connecter = (*global)(nil)
	_ rest.Scoper    = (*global)(nil)
)

// New implements rest.Storage.
func (*global) New() runtime.Object { return &searchv1alpha1.Proxying{} }

// Destroy implements rest.Storage.
func (g *global) Destroy() { g.members.End() }

// NamespaceScoped implements rest.Scoper.
func (*global) NamespaceScoped() bool { return false }

// ConnectMethods implements rest.Connecter.
func (*global) ConnectMethods() []string {
	return []string{http.MethodGet, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete, http.MethodHead, http.MethodOptions}
}

// NewConnectOptions implements rest.Connecter. The path comes from the request.
func (*global) NewConnectOptions() (runtime.Object, bool, string) { return nil, true, "" }

// Connect implements rest.Connecter.
func (g *global) Connect(ctx context.Context, _ string, _ runtime.Object, responder rest.Responder) (http.Handler, error) {
	in, ok := proxy.InnerFrom(ctx)
	if !ok {
		return nil, apierrors.NewBadRequest("the request names no path after /proxy")
	}
	requester, ok := genericrequest.UserFrom(ctx)
	if !ok {
		return nil, apierrors.NewUnauthorized("the request has no user")
	}
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		info, err := in.Info(req)
		if err != nil {
			responder.Error(apierrors.NewBadRequest(err.Error()))
			return
		}
		handler, err := g.route(req, in, info, requester, responder)
		if err != nil {
			responder.Error(err)
			return
		}
		handler.ServeHTTP(w, req)
	}), nil
}

// route checks the rights of the requester and returns what serves a request.
func (g *global) route(req *http.Request, in proxy.Inner, info *genericrequest.RequestInfo, requester user.Info, responder rest.Responder) (http.Handler, error) {
	if !info.IsResourceRequest {
		return g.home.Handler(in, requester, responder), nil // it is authorized there
	}
	if err := g.authorize(req, info, requester); err != nil {
		return nil, err
	}
	resource := schema.GroupVersionResource{Group: info.APIGroup, Version: info.APIVersion, Resource: info.Resource}
	selected, err := g.selected(resource)
	if err != nil {
		return nil, err
	}
	reads := slices.Contains([]string{"get", "list", "watch"}, info.Verb) && !streams(info)
	switch {
	case selected && reads && info.Subresource == "":
		return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) { g.read(w, req, in, info, requester, responder) }), nil
	case selected:
		return g.toMember(req, in, info, requester, responder)
	case reads:
		return g.home.Handler(in, reader(requester), responder), nil
	case privileged(requester):
		if reviewsSelf(info) && info.APIVersion == "v1" {
			return reviewPrivileged(info, requester), nil
		}
	case reviewsSelf(info), g.writes:
		return g.home.Handler(in, requester, responder), nil
	}
	return nil, notCached(resource.GroupResource(), info.Name)
}

// notCached returns the error for a write of a kind that no registry selects.
func notCached(resource schema.GroupResource, name string) error {
	const text = "no ResourceRegistry selects the kind, so that the request would change the control plane: send it to the control plane's own address"
	err := apierrors.NewForbidden(resource, name, errors.New(text))
	err.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: searchv1alpha1.CauseNotCached, Message: text}}
	return err
}

// selected reports whether a registry selects a resource. What no cluster has yet, or has any more, is selected all the same:
// otherwise the objects of the control plane would be taken for those of the members.
func (g *global) selected(resource schema.GroupVersionResource) (bool, error) {
	_, selected := g.cached.caches.Kind(resource)
	if !selected {
		kind, err := g.cached.mapper.KindFor(resource)
		if err != nil && !meta.IsNoMatchError(err) {
			return false, apierrors.NewInternalError(fmt.Errorf("finding the kind of %s: %w", resource, err))
		}
		var known bool
		if selected, known = g.cached.caches.Selects(kind); known && !selected {
			return false, nil
		}
	}
	return true, g.cached.notReady()
}

// streams reports whether a GET of a subresource can write: exec and its like.
func streams(info *genericrequest.RequestInfo) bool {
	return slices.Contains([]string{"exec", "attach", "portforward", "proxy"}, info.Subresource)
}

// authorize returns an error unless the requester may make the request in the control plane: the right to use the proxy
// alone allows nothing. What streams to a container needs the right to create it too, whatever the method.
func (g *global) authorize(req *http.Request, info *genericrequest.RequestInfo, requester user.Info) error {
	verbs := []string{info.Verb}
	if streams(info) && info.Verb == "get" {
		verbs = append(verbs, "create")
	}
	for _, verb := range verbs {
		decision, reason, err := g.cached.authorizer.Authorize(req.Context(), authorizer.AttributesRecord{
			User: requester, Verb: verb, Namespace: info.Namespace, APIGroup: info.APIGroup, APIVersion: info.APIVersion,
			Resource: info.Resource, Subresource: info.Subresource, Name: info.Name, ResourceRequest: true, Path: info.Path,
		})
		if err != nil {
			return apierrors.NewInternalError(fmt.Errorf("checking the rights of user %q: %w", requester.GetName(), err))
		}
		if decision == authorizer.DecisionAllow {
			continue
		}
		text := fmt.Sprintf("user %q cannot %s this in the control plane", requester.GetName(), verb)
		if info.Namespace != "" {
			text += fmt.Sprintf(" in namespace %q", info.Namespace)
		}
		if reason != "" {
			text += ": " + reason
		}
		resource := schema.GroupResource{Group: info.APIGroup, Resource: strings.TrimSuffix(info.Resource+"/"+info.Subresource, "/")}
		return apierrors.NewForbidden(resource, info.Name, errors.New(text))
	}
	return nil
}

// locate returns the only cluster that holds an object, with the object.
func (g *global) locate(info *genericrequest.RequestInfo) (cache.Item, error) {
	resource := schema.GroupVersionResource{Group: info.APIGroup, Version: info.APIVersion, Resource: info.Resource}
	kind, err := g.cached.kindOf(resource)
	if err != nil {
		return cache.Item{}, apierrors.NewInternalError(err)
	}
	result, err := g.cached.caches.List(cache.Query{Resource: resource, Kind: kind, Namespace: namespaceOf(info), Name: info.Name})
	if err != nil {
		return cache.Item{}, apierrors.NewInternalError(err)
	}
	found := make([]domain.Located[cache.Item], 0, len(result.Items))
	for _, item := range result.Items {
		found = append(found, domain.Located[cache.Item]{Cluster: item.Cluster, Object: item})
	}
	one, err := oneOf(resource.GroupResource(), info.Name, found)
	if apierrors.IsNotFound(err) && len(result.Missing) > 0 {
		return cache.Item{}, apierrors.NewServiceUnavailable(fmt.Sprintf("%v; the objects of cluster %s are unknown: %s", err, result.Missing[0].Cluster, result.Missing[0].Reason))
	}
	return one, err
}

// oneOf returns the object that one cluster holds. Several are a conflict.
func oneOf[T any](resource schema.GroupResource, name string, found []domain.Located[T]) (T, error) {
	if len(found) > 1 {
		clusters := make([]string, 0, len(found))
		for _, f := range found {
			clusters = append(clusters, f.Cluster)
		}
		var none T
		return none, apierrors.NewConflict(resource, name, fmt.Errorf(
			"ambiguous objects in clusters [%s]: choose one of them, with the context fleet-%s of \"karmadactl search kubeconfig\"",
			strings.Join(clusters, ", "), clusters[0]))
	}
	one, err := domain.One(resource, name, found)
	return one.Object, err
}

// toMember returns what carries a request to the cluster that holds the object.
func (g *global) toMember(req *http.Request, in proxy.Inner, info *genericrequest.RequestInfo, requester user.Info, responder rest.Responder) (http.Handler, error) {
	if info.Name == "" {
		return nil, apierrors.NewMethodNotSupported(schema.GroupResource{Group: info.APIGroup, Resource: info.Resource}, info.Verb)
	}
	item, err := g.locate(info)
	if err != nil {
		return nil, err
	}
	cluster, err := g.cluster(req.Context(), item.Cluster)
	if err != nil {
		return nil, err
	}
	if err := translateBody(req, item.Cluster); err != nil {
		return nil, err
	}
	return g.members.Handler(req.Context(), cluster, in, requester, responder, func(r *http.Response) error { return translateAnswer(r, info, item.Cluster) })
}

// translateBody makes the body of a request one for a cluster.
func translateBody(req *http.Request, cluster string) error {
	format := domain.FormatOf(req.Header.Get("Content-Type"))
	if req.Body == nil || req.Body == http.NoBody || format == domain.FormatOther {
		return nil
	}
	if format == domain.FormatCBOR {
		return failure(http.StatusUnsupportedMediaType, metav1.StatusReasonUnsupportedMediaType, "bodies in CBOR are not translated for a cluster: use JSON")
	}
	if encoding := req.Header.Get("Content-Encoding"); encoding != "" {
		return failure(http.StatusUnsupportedMediaType, metav1.StatusReasonUnsupportedMediaType, "bodies that are encoded as "+encoding+" cannot be translated for a cluster")
	}
	body, err := io.ReadAll(io.LimitReader(req.Body, maxBody+1))
	if err != nil {
		return apierrors.NewBadRequest("reading the body: " + err.Error())
	}
	if len(body) > maxBody {
		return apierrors.NewRequestEntityTooLargeError(fmt.Sprintf("the body has more than %d bytes", maxBody))
	}
	body, err = domain.ToMember(format, body, cluster)
	if unknown := (*domain.UnknownVersionError)(nil); errors.As(err, &unknown) {
		return failure(http.StatusConflict, metav1.StatusReasonConflict, err.Error())
	}
	if err != nil {
		return apierrors.NewBadRequest("the body cannot be translated for cluster " + cluster + ": " + err.Error())
	}
	req.Body, req.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	return nil
}

// failure is an error with a code and a reason.
func failure(code int32, reason metav1.StatusReason, text string) error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{Status: metav1.StatusFailure, Code: code, Reason: reason, Message: text}}
}

// translateAnswer makes the answer of a cluster, if it is an object, one of several. What streams or is text stays.
func translateAnswer(r *http.Response, info *genericrequest.RequestInfo, cluster string) error {
	format := domain.FormatOf(r.Header.Get("Content-Type"))
	if r.Header.Get("Content-Type") == "" || format == domain.FormatOther || format == domain.FormatCBOR || r.Header.Get("Content-Encoding") != "" ||
		info.Subresource == "log" || streams(info) || r.StatusCode >= http.StatusMultipleChoices {
		return nil
	}
	body, err := io.ReadAll(io.LimitReader(r.Body, maxBody+1))
	if err != nil {
		return fmt.Errorf("reading the answer of cluster %s: %w", cluster, err)
	}
	rest := io.Reader(bytes.NewReader(nil))
	if len(body) > maxBody {
		rest = r.Body // too large to be an object: it passes as it is
	} else {
		body = domain.FromMember(format, body, cluster)
		r.ContentLength = int64(len(body))
		r.Header.Set("Content-Length", fmt.Sprint(len(body)))
	}
	r.Body = &joined{Reader: io.MultiReader(bytes.NewReader(body), rest), Closer: r.Body}
	return nil
}

// joined is a body of which the beginning was read.
type joined struct {
	io.Reader
	io.Closer
}

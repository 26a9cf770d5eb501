// Package search is the API server of search.karmada.io: it stores ResourceRegistries in etcd, which select the objects of
// member clusters to cache, and serves the resource "search". It stands behind the control plane's API server as an
// aggregated API. Every replica caches all objects.
package search

import (
	"context"
	"fmt"
	"net/http"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/registry/rest"
	genericapiserver "k8s.io/apiserver/pkg/server"
	genericfilters "k8s.io/apiserver/pkg/server/filters"
	restclient "k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/karmada-toolkit/karmada/internal/controllers"
	"github.com/karmada-toolkit/karmada/internal/extension"
	searchv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/search/v1alpha1"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/aggregated/proxy"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/search/columns"
	"github.com/karmada-toolkit/karmada/pkg/generated/openapi"
)

const serverName = "karmada-search"

// Setup adds the API server to the manager. It listens at once, so that a port that is taken shows here. With port 0 it does
// nothing.
func Setup(_ context.Context, mgr manager.Manager, o *Options) error {
	if !o.serves() {
		return nil
	}
	serving, err := o.Serving("search")
	if err != nil {
		return err
	}
	s := &server{options: o, controlPlane: mgr.GetConfig(), now: clock.RealClock{}.Now, serving: serving, mapper: mgr.GetRESTMapper()}
	s.definition = columns.Remember(definitions(mgr.GetAPIReader()), definitionVersions(mgr.GetAPIReader()))
	if err := mgr.Add(controllers.Everywhere(s.run)); err != nil {
		return fmt.Errorf("adding the search API server: %w", err)
	}
	if o.DisableSearch && o.DisableProxy {
		return nil
	}
	if s.following, err = newFollowing(o, mgr); err != nil {
		return fmt.Errorf("adding the search caches: %w", err)
	}
	return nil
}

// server is the API server before it runs.
type server struct {
	options      *Options
	controlPlane *restclient.Config
	now          func() time.Time
	serving      *genericapiserver.SecureServingInfo
	mapper       meta.RESTMapper
	// definition returns the definition of a custom resource.
	definition columns.Definition
	// following is nil if nothing is cached.
	following *following
}

// run serves until ctx ends.
func (s *server) run(ctx context.Context) error {
	scheme, err := newScheme()
	if err != nil {
		return err
	}
	codecs := serializer.NewCodecFactory(scheme)
	config, err := s.options.StoreConfig(ctx, s.controlPlane, s.serving, extension.API{
		Title: serverName, Schemes: []*runtime.Scheme{scheme}, Codecs: codecs, Definitions: openapi.GetOpenAPIDefinitions,
	}, searchv1alpha1.GroupVersion)
	if err != nil {
		return err
	}
	s.options.applyRun(config)
	config.LongRunningFunc = proxy.LongRunning(genericfilters.BasicLongRunningRequestCheck(sets.NewString("watch"), sets.NewString()))
	config.BuildHandlerChainFunc = func(handler http.Handler, c *genericapiserver.Config) http.Handler {
		return genericapiserver.DefaultBuildHandlerChain(proxy.KeepInner(handler), c)
	}
	generic, err := config.Complete(nil).New(serverName, genericapiserver.NewEmptyDelegate())
	if err != nil {
		return fmt.Errorf("preparing the server: %w", err)
	}
	registries, status, err := newRegistries(registryOptions{
		typer: scheme, restOptions: config.RESTOptionsGetter, authorizer: config.Authorization.Authorizer, mapper: s.mapper,
		now: func() metav1.Time { return metav1.NewTime(s.now()) },
	})
	if err != nil {
		return err
	}
	group := genericapiserver.NewDefaultAPIGroupInfo(searchv1alpha1.GroupName, scheme, runtime.NewParameterCodec(scheme), codecs)
	resources := map[string]rest.Storage{"resourceregistries": registries, "resourceregistries/status": status}
	if err := s.addReaders(generic, registries, resources, config.Authorization.Authorizer); err != nil {
		return err
	}
	group.VersionedResourcesStorageMap[searchv1alpha1.GroupVersion.Version] = resources
	return extension.Serve(ctx, generic, s.options.ShutdownTimeout, &group)
}

// addReaders adds the resources that serve what is cached.
func (s *server) addReaders(generic *genericapiserver.GenericAPIServer, registries *registries, resources map[string]rest.Storage, authorizer authorizer.Authorizer) error {
	if s.following == nil {
		return nil
	}
	if err := s.following.addHooks(generic); err != nil {
		return err
	}
	s.following.registries <- registries.informer()
	cached := &cached{caches: s.following.caches, notReady: s.following.notReady, authorizer: authorizer, mapper: s.mapper, definition: s.definition}
	if !s.options.DisableSearch {
		resources["search"] = &searching{cached}
	}
	if s.options.DisableProxy {
		return nil
	}
	home, err := proxy.NewControlPlane(s.controlPlane)
	if err != nil {
		return err
	}
	resources["proxying"] = proxying{}
	resources["proxying/proxy"] = &global{
		cached: cached, members: proxy.NewMembers(s.following.secret, 0), home: home, cluster: s.following.cluster, layouts: columns.New(s.definition), writes: s.options.ControlPlaneWrites,
	}
	return nil
}

// definitions returns the definitions of custom resources that the control plane has.
func definitions(reader client.Reader) columns.Definition {
	return func(ctx context.Context, resource schema.GroupResource) (*apiextensionsv1.CustomResourceDefinition, error) {
		out := &apiextensionsv1.CustomResourceDefinition{}
		err := reader.Get(ctx, client.ObjectKey{Name: resource.String()}, out)
		if apierrors.IsNotFound(err) {
			return nil, nil // there is none
		}
		return out, err
	}
}

// definitionVersions returns the resource versions of the definitions of custom resources, empty for one that the control plane
// does not have.
func definitionVersions(reader client.Reader) func(context.Context, schema.GroupResource) (string, error) {
	return func(ctx context.Context, resource schema.GroupResource) (string, error) {
		out := &metav1.PartialObjectMetadata{}
		out.SetGroupVersionKind(apiextensionsv1.SchemeGroupVersion.WithKind("CustomResourceDefinition"))
		err := reader.Get(ctx, client.ObjectKey{Name: resource.String()}, out)
		return out.ResourceVersion, client.IgnoreNotFound(err)
	}
}

// newScheme returns the kinds of the server. In memory it works with the types that it serves.
func newScheme() (*runtime.Scheme, error) {
	scheme := runtime.NewScheme()
	metaVersion := schema.GroupVersion{Version: "v1"}
	metav1.AddToGroupVersion(scheme, metaVersion)
	scheme.AddUnversionedTypes(metaVersion, &metav1.Status{}, &metav1.APIVersions{}, &metav1.APIGroupList{}, &metav1.APIGroup{}, &metav1.APIResourceList{})
	if err := searchv1alpha1.AddToScheme(scheme); err != nil {
		return nil, fmt.Errorf("building the scheme: %w", err)
	}
	internal := schema.GroupVersion{Group: searchv1alpha1.GroupName, Version: runtime.APIVersionInternal}
	scheme.AddKnownTypes(internal, &searchv1alpha1.ResourceRegistry{}, &searchv1alpha1.ResourceRegistryList{}, &searchv1alpha1.Search{}, &searchv1alpha1.Proxying{})
	if err := scheme.SetVersionPriority(searchv1alpha1.GroupVersion); err != nil {
		return nil, fmt.Errorf("building the scheme: %w", err)
	}
	return scheme, nil
}

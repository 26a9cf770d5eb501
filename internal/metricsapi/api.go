// Package metricsapi serves the API group metrics.k8s.io from any source of usage.
package metricsapi

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metainternalversion "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/metrics/pkg/apis/metrics"
	"k8s.io/metrics/pkg/apis/metrics/v1beta1"
)

// Selection selects the objects of a list.
type Selection struct {
	// Namespace is empty for all namespaces.
	Namespace string
	Labels    labels.Selector
	// Fields selects by metadata.name and metadata.namespace.
	Fields fields.Selector
}

// Matches reports whether an object is selected.
func (s Selection) Matches(namespace, name string, set labels.Set) bool {
	if s.Namespace != "" && namespace != s.Namespace {
		return false
	}
	return s.Labels.Matches(set) && s.Fields.Matches(fields.Set{"metadata.name": name, "metadata.namespace": namespace})
}

// Source returns the usage of pods and nodes.
type Source interface {
	// Pods returns the usage of the selected pods, sorted.
	Pods(ctx context.Context, s Selection) ([]metrics.PodMetrics, error)
	// Pod returns the usage of one pod, or a NotFound error.
	Pod(ctx context.Context, namespace, name string) (*metrics.PodMetrics, error)
	// Nodes returns the usage of the selected nodes, sorted.
	Nodes(ctx context.Context, s Selection) ([]metrics.NodeMetrics, error)
	// Node returns the usage of one node, or a NotFound error.
	Node(ctx context.Context, name string) (*metrics.NodeMetrics, error)
}

// NoPodMetrics returns the error for a pod without usage.
func NoPodMetrics(namespace, name string) error {
	return apierrors.NewNotFound(metrics.Resource("podmetrics"), namespace+"/"+name)
}

// NoNodeMetrics returns the error for a node without usage.
func NoNodeMetrics(name string) error {
	return apierrors.NewNotFound(metrics.Resource("nodemetrics"), name)
}

// NewGroup returns the API group, to be installed in a server.
func NewGroup(source Source) (*genericapiserver.APIGroupInfo, error) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{metrics.AddToScheme, v1beta1.AddToScheme, metainternalversion.AddToScheme} {
		if err := add(scheme); err != nil {
			return nil, fmt.Errorf("preparing %s: %w", metrics.GroupName, err)
		}
	}
	if err := scheme.SetVersionPriority(v1beta1.SchemeGroupVersion); err != nil {
		return nil, fmt.Errorf("preparing %s: %w", metrics.GroupName, err)
	}
	core := schema.GroupVersion{Version: "v1"}
	metav1.AddToGroupVersion(scheme, core)
	scheme.AddUnversionedTypes(core, &metav1.Status{}, &metav1.APIVersions{}, &metav1.APIGroupList{}, &metav1.APIGroup{}, &metav1.APIResourceList{})
	group := genericapiserver.NewDefaultAPIGroupInfo(metrics.GroupName, scheme, runtime.NewParameterCodec(scheme), serializer.NewCodecFactory(scheme))
	group.VersionedResourcesStorageMap[v1beta1.SchemeGroupVersion.Version] = map[string]rest.Storage{"pods": podStorage(source), "nodes": nodeStorage(source)}
	return &group, nil
}

// storage serves one resource.
type storage struct {
	kind       string
	namespaced bool
	empty      func() runtime.Object
	emptyList  func() runtime.Object
	get        func(ctx context.Context, name string) (runtime.Object, error)
	list       func(ctx context.Context, s Selection) (runtime.Object, error)
	rows       func(obj runtime.Object) []row
}

var (
	_ rest.Getter               = &storage{}
	_ rest.Lister               = &storage{}
	_ rest.Scoper               = &storage{}
	_ rest.KindProvider         = &storage{}
	_ rest.SingularNameProvider = &storage{}
)

func podStorage(source Source) *storage {
	return &storage{
		kind: "PodMetrics", namespaced: true,
		empty:     func() runtime.Object { return &metrics.PodMetrics{} },
		emptyList: func() runtime.Object { return &metrics.PodMetricsList{} },
		get: func(ctx context.Context, name string) (runtime.Object, error) {
			return orNil(source.Pod(ctx, request.NamespaceValue(ctx), name))
		},
		list: func(ctx context.Context, s Selection) (runtime.Object, error) {
			items, err := source.Pods(ctx, s)
			return &metrics.PodMetricsList{Items: items}, err
		},
		rows: podRows,
	}
}

func nodeStorage(source Source) *storage {
	return &storage{
		kind:      "NodeMetrics",
		empty:     func() runtime.Object { return &metrics.NodeMetrics{} },
		emptyList: func() runtime.Object { return &metrics.NodeMetricsList{} },
		get:       func(ctx context.Context, name string) (runtime.Object, error) { return orNil(source.Node(ctx, name)) },
		list: func(ctx context.Context, s Selection) (runtime.Object, error) {
			items, err := source.Nodes(ctx, s)
			return &metrics.NodeMetricsList{Items: items}, err
		},
		rows: nodeRows,
	}
}

// orNil returns no object with an error.
func orNil[T runtime.Object](obj T, err error) (runtime.Object, error) {
	if err != nil {
		return nil, err
	}
	return obj, nil
}

// New implements rest.Storage.
func (s *storage) New() runtime.Object { return s.empty() }

// NewList implements rest.Lister.
func (s *storage) NewList() runtime.Object { return s.emptyList() }

// Destroy implements rest.Storage.
func (s *storage) Destroy() {}

// Kind implements rest.KindProvider.
func (s *storage) Kind() string { return s.kind }

// NamespaceScoped implements rest.Scoper.
func (s *storage) NamespaceScoped() bool { return s.namespaced }

// GetSingularName implements rest.SingularNameProvider.
func (s *storage) GetSingularName() string { return "" }

// Get implements rest.Getter.
func (s *storage) Get(ctx context.Context, name string, _ *metav1.GetOptions) (runtime.Object, error) {
	return s.get(ctx, name)
}

// List implements rest.Lister.
func (s *storage) List(ctx context.Context, options *metainternalversion.ListOptions) (runtime.Object, error) {
	selection := Selection{Namespace: request.NamespaceValue(ctx), Labels: labels.Everything(), Fields: fields.Everything()}
	if options != nil && options.LabelSelector != nil {
		selection.Labels = options.LabelSelector
	}
	if options != nil && options.FieldSelector != nil {
		selection.Fields = options.FieldSelector
	}
	return s.list(ctx, selection)
}

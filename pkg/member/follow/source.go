package follow

import (
	"context"
	"fmt"
	"maps"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"

	"github.com/karmada-toolkit/karmada/pkg/member/access"
)

// Running selects, as Selection.Phases, the pods that have not terminated.
const Running = "status.phase!=Succeeded,status.phase!=Failed"

// Selection selects objects. The zero value selects all.
type Selection struct {
	// Namespace is that of the objects; empty for all.
	Namespace string
	// Labels is a label selector; empty for all.
	Labels string
	// Phases is a field selector of the phase of pods; empty for all.
	Phases string
}

// narrow reports whether objects of one namespace, or with labels, are selected.
func (s Selection) narrow() bool { return s.Namespace != "" || s.Labels != "" }

func (s Selection) options(o metav1.ListOptions) metav1.ListOptions {
	o.LabelSelector, o.FieldSelector = s.Labels, s.Phases
	return o
}

// Source is what is followed: objects of a resource of a member, decoded in one way.
type Source struct {
	member   *access.Member
	resource schema.GroupVersionResource
	scope
	// labels and phases are the parsed selectors; err is why they cannot be parsed.
	labels labels.Selector
	phases fields.Selector
	err    error
}

// scope is what is requested of a resource.
type scope struct {
	Selection
	form *form
}

// with returns a scope for the objects of both, and false if two requests are better: neither is for all objects.
func (a scope) with(b scope) (scope, bool) {
	out := scope{form: &complete}
	switch {
	case a.narrow() && b.narrow() && (a.Namespace != b.Namespace || a.Labels != b.Labels):
		return out, false
	case a.narrow() && b.narrow():
		out.Namespace, out.Labels = a.Namespace, a.Labels
	}
	if a.Phases == b.Phases {
		out.Phases = a.Phases
	}
	if a.form == b.form {
		out.form = a.form
	}
	return out, true
}

// object is what is followed.
type object interface {
	runtime.Object
	metav1.Object
}

// form is how objects are decoded. All have what complete has.
type form struct {
	// api returns the requests for a resource.
	api func(m *access.Member, resource schema.GroupVersionResource, namespace string) (api, error)
	// blank returns an empty object, and list an empty list of them. They are not set for complete and metadataOnly.
	blank func() object
	list  func() runtime.Object
}

// api are the requests for a resource.
type api struct {
	list  lists
	watch func(context.Context, metav1.ListOptions) (watch.Interface, error)
}

// The forms.
var (
	complete = form{api: func(m *access.Member, resource schema.GroupVersionResource, namespace string) (api, error) {
		all := m.Dynamic().Resource(resource).Namespace(namespace)
		return api{func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) { return all.List(ctx, o) }, all.Watch}, nil
	}}
	metadataOnly = form{blank: func() object { return &metav1.PartialObjectMetadata{} }, api: func(m *access.Member, resource schema.GroupVersionResource, namespace string) (api, error) {
		all := m.Metadata().Resource(resource).Namespace(namespace)
		return api{func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) { return all.List(ctx, o) }, all.Watch}, nil
	}}
	podViews    = typed(viewCodecs(), func() object { return &Pod{} }, func() runtime.Object { return &PodList{} })
	nodeViews   = typed(viewCodecs(), func() object { return &Node{} }, func() runtime.Object { return &NodeList{} })
	deployments = typed(scheme.Codecs, func() object { return &appsv1.Deployment{} }, func() runtime.Object { return &appsv1.DeploymentList{} })
	replicaSets = typed(scheme.Codecs, func() object { return &appsv1.ReplicaSet{} }, func() runtime.Object { return &appsv1.ReplicaSetList{} })
	quotas      = typed(scheme.Codecs, func() object { return &corev1.ResourceQuota{} }, func() runtime.Object { return &corev1.ResourceQuotaList{} })
)

// viewCodecs decodes views.
func viewCodecs() serializer.CodecFactory {
	views, gv := runtime.NewScheme(), corev1.SchemeGroupVersion
	for kind, obj := range map[string]runtime.Object{"Node": &Node{}, "NodeList": &NodeList{}, "Pod": &Pod{}, "PodList": &PodList{}} {
		views.AddKnownTypeWithName(gv.WithKind(kind), obj)
	}
	metav1.AddToGroupVersion(views, gv)
	return serializer.NewCodecFactory(views)
}

// typed returns the form of objects of a Go type.
func typed(codecs serializer.CodecFactory, blank func() object, list func() runtime.Object) *form {
	return &form{blank: blank, list: list, api: func(m *access.Member, resource schema.GroupVersionResource, namespace string) (api, error) {
		gv, cfg := resource.GroupVersion(), rest.CopyConfig(m.Config())
		cfg.APIPath, cfg.GroupVersion, cfg.NegotiatedSerializer = "/apis", &gv, codecs.WithoutConversion()
		if gv.Group == "" {
			cfg.APIPath = "/api"
		}
		client, err := rest.RESTClientForConfigAndClient(cfg, m.HTTP())
		if err != nil {
			return api{}, fmt.Errorf("opening cluster %s: %w", m.Name(), err)
		}
		request := func(o *metav1.ListOptions) *rest.Request {
			return client.Get().NamespaceIfScoped(namespace, namespace != "").Resource(resource.Resource).VersionedParams(o, metav1.ParameterCodec)
		}
		return api{
			func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
				into := list()
				return into, request(&o).Do(ctx).Into(into)
			},
			func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
				o.Watch = true
				return request(&o).Watch(ctx)
			},
		}, nil
	}}
}

// Pods are pods, as *Pod. They are shared and read-only.
func Pods(m *access.Member, s Selection) Source {
	return source(m, corev1.SchemeGroupVersion.WithResource("pods"), podViews, s)
}

// Nodes are nodes, as *Node. They are shared and read-only.
func Nodes(m *access.Member) Source {
	return source(m, corev1.SchemeGroupVersion.WithResource("nodes"), nodeViews, Selection{})
}

// Deployments are Deployments, as *appsv1.Deployment. They are shared and read-only.
func Deployments(m *access.Member) Source {
	return source(m, appsv1.SchemeGroupVersion.WithResource("deployments"), deployments, Selection{})
}

// ReplicaSets are ReplicaSets, as *appsv1.ReplicaSet. They are shared and read-only.
func ReplicaSets(m *access.Member) Source {
	return source(m, appsv1.SchemeGroupVersion.WithResource("replicasets"), replicaSets, Selection{})
}

// ResourceQuotas are ResourceQuotas, as *corev1.ResourceQuota. They are shared and read-only.
func ResourceQuotas(m *access.Member) Source {
	return source(m, corev1.SchemeGroupVersion.WithResource("resourcequotas"), quotas, Selection{})
}

// Objects are objects of any kind, as *unstructured.Unstructured. They are shared and read-only: see Clone.
func Objects(m *access.Member, resource schema.GroupVersionResource, s Selection) Source {
	return source(m, resource, &complete, s)
}

// Typed are objects of the Go type that a scheme has of a kind. They are shared and read-only.
func Typed(m *access.Member, scheme *runtime.Scheme, resource schema.GroupVersionResource, kind string, s Selection) (Source, error) {
	gvk := resource.GroupVersion().WithKind(kind)
	one, err := scheme.New(gvk)
	if err != nil {
		return Source{}, fmt.Errorf("following %s: %w", resource.Resource, err)
	}
	list, err := scheme.New(resource.GroupVersion().WithKind(kind + "List"))
	if err != nil {
		return Source{}, fmt.Errorf("following %s: %w", resource.Resource, err)
	}
	if _, ok := one.(object); !ok {
		return Source{}, fmt.Errorf("following %s: %T has no metadata", resource.Resource, one)
	}
	// What is copied is empty.
	blank := func() object { return one.DeepCopyObject().(object) }
	return source(m, resource, typed(serializer.NewCodecFactory(scheme), blank, list.DeepCopyObject), s), nil
}

// Metadata is the metadata of objects of any kind, as *metav1.PartialObjectMetadata.
func Metadata(m *access.Member, resource schema.GroupVersionResource) Source {
	return source(m, resource, &metadataOnly, Selection{})
}

func source(m *access.Member, resource schema.GroupVersionResource, f *form, s Selection) Source {
	out := Source{member: m, resource: resource, scope: scope{s, f}}
	if out.labels, out.err = labels.Parse(s.Labels); out.err == nil {
		out.phases, out.err = fields.ParseSelector(s.Phases)
	}
	return out
}

// pick returns an object in the form of the source, and nil if it does not select it.
func (s *Source) pick(in object) (object, error) {
	if s.err != nil {
		return nil, fmt.Errorf("parsing the selectors %q and %q: %w", s.Labels, s.Phases, s.err)
	}
	if s.Namespace != "" && in.GetNamespace() != s.Namespace || !s.labels.Matches(labels.Set(in.GetLabels())) {
		return nil, nil
	}
	if whole, ok := in.(*unstructured.Unstructured); ok && s.form.blank != nil {
		in = s.form.blank()
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(whole.Object, in); err != nil {
			return nil, fmt.Errorf("decoding: %w", err)
		}
	}
	if pod, ok := in.(*Pod); ok && !s.phases.Matches(fields.Set{"status.phase": string(pod.Status.Phase)}) {
		return nil, nil
	}
	return in, nil
}

// Clone returns an object whose fields and metadata can be set and removed. All below is shared with the original.
func Clone(u *unstructured.Unstructured) *unstructured.Unstructured {
	out := &unstructured.Unstructured{Object: maps.Clone(u.Object)}
	if metadata, ok := u.Object["metadata"].(map[string]any); ok {
		out.Object["metadata"] = maps.Clone(metadata)
	}
	return out
}

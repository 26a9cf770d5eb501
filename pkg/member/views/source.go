// Package views reads the objects of members: which of them, and decoded how. All that read a resource of a member in one process
// share one watch where that is possible; each lists for itself and keeps what it needs.
package views

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"

	"github.com/karmada-toolkit/karmada/pkg/member/access"
	"github.com/karmada-toolkit/karmada/pkg/member/access/informer"
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

// narrow reports whether a watch of the selected objects is not worth sharing.
func (s Selection) narrow() bool { return s.Namespace != "" || s.Labels != "" }

func (s Selection) options(o metav1.ListOptions) metav1.ListOptions {
	o.LabelSelector, o.FieldSelector = s.Labels, s.Phases
	return o
}

// filter returns what a reader of the selected objects gets of a watch of all. An object that is not selected any more was deleted for it.
func (s Selection) filter() (func(e watch.Event) (watch.Event, bool), error) {
	byLabel, err := labels.Parse(s.Labels)
	if err != nil {
		return nil, fmt.Errorf("parsing the label selector %q: %w", s.Labels, err)
	}
	byPhase, err := fields.ParseSelector(s.Phases)
	if err != nil {
		return nil, fmt.Errorf("parsing the field selector %q: %w", s.Phases, err)
	}
	return func(e watch.Event) (watch.Event, bool) {
		obj, ok := e.Object.(object)
		if !ok || e.Type == watch.Bookmark {
			return e, true // an error
		}
		if s.Namespace != "" && obj.GetNamespace() != s.Namespace {
			return e, false
		}
		pod, _ := obj.(*Pod)
		if !byLabel.Matches(labels.Set(obj.GetLabels())) || pod != nil && !byPhase.Matches(fields.Set{"status.phase": string(pod.Status.Phase)}) {
			e.Type = watch.Deleted
		}
		return e, true
	}, nil
}

// Pods are pods, as *Pod. They are shared and read-only.
func Pods(m *access.Member, s Selection) informer.Source {
	return small(m, "pods", s, func() object { return &Pod{} }, func() runtime.Object { return &PodList{} })
}

// Nodes are nodes, as *Node. They are shared and read-only.
func Nodes(m *access.Member) informer.Source {
	return small(m, "nodes", Selection{}, func() object { return &Node{} }, func() runtime.Object { return &NodeList{} })
}

// small returns a source of views. It reads the watch of complete objects if there is one.
func small(m *access.Member, resource string, s Selection, blank func() object, list func() runtime.Object) informer.Source {
	c := newClient(m, s.Namespace)
	api := api{
		list: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			return c.list(ctx, resource, o, list())
		},
		watch: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			return c.watch(ctx, resource, o)
		},
	}
	return source(m, api, blank, s, topicOf(m, resource, false), func(e watch.Event) (watch.Event, error) {
		complete, ok := e.Object.(*unstructured.Unstructured)
		if !ok {
			return e, nil
		}
		out := blank()
		data, err := json.Marshal(complete.Object)
		if err == nil {
			err = json.Unmarshal(data, out)
		}
		e.Object = out
		return e, err
	})
}

// Objects are objects of any kind, as *unstructured.Unstructured. They are shared and read-only: see Clone.
func Objects(m *access.Member, resource schema.GroupVersionResource, s Selection) informer.Source {
	var all dynamic.ResourceInterface = m.Dynamic().Resource(resource)
	if s.Namespace != "" {
		all = m.Dynamic().Resource(resource).Namespace(s.Namespace)
	}
	api := api{
		list:  func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) { return all.List(ctx, o) },
		watch: all.Watch,
	}
	name := resource.Resource
	if resource.Group != "" {
		name = resource.String()
	}
	return source(m, api, func() object { return &unstructured.Unstructured{} }, s, topicOf(m, name, true), nil)
}

// Clone returns an object whose fields and metadata can be set and removed. All below is shared with the original.
func Clone(u *unstructured.Unstructured) *unstructured.Unstructured {
	out := &unstructured.Unstructured{Object: maps.Clone(u.Object)}
	if metadata, ok := u.Object["metadata"].(map[string]any); ok {
		out.Object["metadata"] = maps.Clone(metadata)
	}
	return out
}

// Metadata is the metadata of objects of any kind, as *metav1.PartialObjectMetadata.
func Metadata(m *access.Member, resource schema.GroupVersionResource) informer.Source {
	all := m.Metadata().Resource(resource)
	return informer.Source{
		List:    func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) { return all.List(ctx, o) },
		Watch:   all.Watch,
		Example: &metav1.PartialObjectMetadata{},
	}
}

// api are the requests for a resource.
type api struct {
	list  func(context.Context, metav1.ListOptions) (runtime.Object, error)
	watch func(context.Context, metav1.ListOptions) (watch.Interface, error)
}

// source returns a source that shares its watch. shrink, if not nil, makes views of the events of a watch of complete objects, which is
// preferred.
func source(m *access.Member, a api, blank func() object, s Selection, t topic, shrink func(watch.Event) (watch.Event, error)) informer.Source {
	pass, err := s.filter()
	return informer.Source{
		Example: blank(),
		List: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			if err != nil {
				return nil, err
			}
			return a.list(ctx, s.options(o))
		},
		Watch: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			r := &request{
				topic: t, since: o.ResourceVersion, pass: pass, done: m.Done(), blank: blank,
				open: func(ctx context.Context) (watch.Interface, error) { return a.watch(ctx, o) },
			}
			if w := shared.joinLarger(ctx, r, shrink); w != nil {
				return w, nil
			}
			if s.narrow() {
				if w := shared.join(ctx, r); w != nil {
					return w, nil
				}
			} else if w, err := shared.open(ctx, r); w != nil || err != nil {
				return w, err
			}
			return a.watch(ctx, s.options(o))
		},
	}
}

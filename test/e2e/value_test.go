package e2e

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/restmapper"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/util/jsonpath"
)

// reader reads objects of a cluster. Tests poll, and a process for each request would use most of the CPU time of the tests;
// what commands print is tested by tests that run them.
type reader struct {
	client dynamic.Interface
	mapper meta.ResettableRESTMapper
	names  meta.RESTMapper
}

// readers are kept by kubeconfig, its time of change and cluster.
var readers sync.Map

// readerOf returns the reader of the control plane or, through it, of a member.
func readerOf(cluster string) (*reader, error) {
	file, err := os.Stat(kubeconfig)
	if err != nil {
		return nil, err
	}
	key := fmt.Sprint(kubeconfig, file.ModTime(), cluster)
	if found, ok := readers.Load(key); ok {
		return found.(*reader), nil
	}
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return nil, err
	}
	if cluster != "" {
		config.Host += "/apis/cluster.karmada.io/v1alpha1/clusters/" + cluster + "/proxy"
	}
	config.QPS, config.Timeout = -1, 30*time.Second
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	kinds, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return nil, err
	}
	cached := memory.NewMemCacheClient(kinds)
	mapper := restmapper.NewDeferredDiscoveryRESTMapper(cached)
	r := &reader{client: client, mapper: mapper, names: restmapper.NewShortcutExpander(mapper, cached, func(string) {})}
	readers.Store(key, r)
	return r, nil
}

// mapping returns the resource that a name or short name stands for.
func (r *reader) mapping(name string) (*meta.RESTMapping, error) {
	resource, group := schema.ParseResourceArg(name)
	partial := group.WithVersion("")
	if resource != nil {
		partial = *resource
	}
	kind, err := r.names.KindFor(partial)
	if meta.IsNoMatchError(err) { // perhaps it is new
		r.mapper.Reset()
		kind, err = r.names.KindFor(partial)
	}
	if err != nil {
		return nil, err
	}
	return r.mapper.RESTMapping(kind.GroupKind(), kind.Version)
}

// value returns what a JSONPath gives on an object, such as deploy/nginx, or on the list of a resource, in the control plane
// or, with a context, in a member.
func value(cluster, namespace, object, path string) (string, error) {
	r, err := readerOf(cluster)
	if err != nil {
		return "", err
	}
	resource, name, _ := strings.Cut(object, "/")
	mapping, err := r.mapping(resource)
	if err != nil {
		return "", err
	}
	client := dynamic.ResourceInterface(r.client.Resource(mapping.Resource))
	if mapping.Scope.Name() == meta.RESTScopeNameNamespace {
		client = r.client.Resource(mapping.Resource).Namespace(or(namespace, metav1.NamespaceDefault))
	}
	var content map[string]any
	if name == "" {
		list, err := client.List(context.Background(), metav1.ListOptions{})
		if err != nil {
			return "", err
		}
		content = list.UnstructuredContent()
	} else {
		object, err := client.Get(context.Background(), name, metav1.GetOptions{})
		if err != nil {
			return "", err
		}
		content = object.Object
	}
	template := jsonpath.New(object).AllowMissingKeys(true)
	if err := template.Parse(path); err != nil {
		return "", err
	}
	var out bytes.Buffer
	err = template.Execute(&out, content)
	return out.String(), err
}

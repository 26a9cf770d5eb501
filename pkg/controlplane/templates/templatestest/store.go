// Package templatestest makes Stores that need no API server, for tests.
package templatestest

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery/fake"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	clientgotesting "k8s.io/client-go/testing"

	"github.com/karmada-toolkit/karmada/pkg/controlplane/templates"
	"github.com/karmada-toolkit/karmada/pkg/domain/propagation"
)

// Cluster is a control plane in memory.
type Cluster struct {
	Store     *templates.Store
	Dynamic   *dynamicfake.FakeDynamicClient
	Discovery *fake.FakeDiscovery
}

// Resources are the types of the control plane.
func Resources() []*metav1.APIResourceList {
	all := metav1.Verbs{"create", "delete", "get", "list", "patch", "update", "watch"}
	return []*metav1.APIResourceList{
		{GroupVersion: "v1", APIResources: []metav1.APIResource{
			{Name: "configmaps", Kind: "ConfigMap", Namespaced: true, Verbs: all},
			{Name: "namespaces", Kind: "Namespace", Verbs: all},
			{Name: "resourcequotas", Kind: "ResourceQuota", Namespaced: true, Verbs: all},
		}},
		{GroupVersion: "apps/v1", APIResources: []metav1.APIResource{
			{Name: "deployments", Kind: "Deployment", Namespaced: true, Verbs: all},
		}},
		{GroupVersion: "batch/v1", APIResources: []metav1.APIResource{
			{Name: "jobs", Kind: "Job", Namespaced: true, Verbs: all},
		}},
		{GroupVersion: "rbac.authorization.k8s.io/v1", APIResources: []metav1.APIResource{
			{Name: "clusterroles", Kind: "ClusterRole", Verbs: all},
			{Name: "clusterrolebindings", Kind: "ClusterRoleBinding", Verbs: all},
		}},
		{GroupVersion: "scheduling.k8s.io/v1", APIResources: []metav1.APIResource{
			{Name: "priorityclasses", Kind: "PriorityClass", Verbs: all},
		}},
		{GroupVersion: "admissionregistration.k8s.io/v1", APIResources: []metav1.APIResource{
			{Name: "validatingwebhookconfigurations", Kind: "ValidatingWebhookConfiguration", Verbs: all},
		}},
		{GroupVersion: "apiextensions.k8s.io/v1", APIResources: []metav1.APIResource{
			{Name: "customresourcedefinitions", Kind: "CustomResourceDefinition", Verbs: all},
		}},
	}
}

// Extra are types that appear in some tests later.
func Extra() *metav1.APIResourceList {
	return &metav1.APIResourceList{GroupVersion: "example.io/v1", APIResources: []metav1.APIResource{
		{Name: "guestbooks", Kind: "Guestbook", Namespaced: true, Verbs: metav1.Verbs{"delete", "list", "watch"}},
	}}
}

// New returns a control plane with the given objects whose Store was started and
// has seen them. namespaces are the patterns of skipped namespaces.
func New(t *testing.T, objs []*unstructured.Unstructured, namespaces ...string) *Cluster {
	t.Helper()
	resources := Resources()
	kinds := map[schema.GroupVersionResource]string{}
	for _, list := range append(resources, Extra()) {
		gv, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range list.APIResources {
			kinds[gv.WithResource(r.Name)] = r.Kind + "List"
		}
	}
	var initial []runtime.Object
	for _, obj := range objs {
		initial = append(initial, obj)
	}
	c := &Cluster{
		Dynamic:   dynamicfake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), kinds, initial...),
		Discovery: &fake.FakeDiscovery{Fake: &clientgotesting.Fake{Resources: resources}},
	}
	apis, err := templates.ParseAPIs("")
	if err != nil {
		t.Fatal(err)
	}
	skipped, err := propagation.ParseNamespaces(namespaces)
	if err != nil {
		t.Fatal(err)
	}
	c.Store = templates.New(templates.Config{
		Discovery: c.Discovery, Dynamic: c.Dynamic, SkippedAPIs: apis, SkippedNamespaces: skipped,
	})
	done := make(chan error, 1)
	ctx := t.Context()
	go func() { done <- c.Store.Start(ctx) }()
	t.Cleanup(func() {
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	if err := c.Store.WaitForSync(ctx); err != nil {
		t.Fatal(err)
	}
	return c
}

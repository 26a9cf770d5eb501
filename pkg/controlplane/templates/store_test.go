package templates_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	policyv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/policy/v1alpha1"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/templates"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/templates/templatestest"
)

func configMaps() schema.GroupVersionResource {
	return schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
}

func configMap(namespace, name, value string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap",
		"metadata": map[string]any{"namespace": namespace, "name": name},
		"data":     map[string]any{"key": value},
	}}
}

// listen subscribes and returns the notifications.
func listen(t *testing.T, s *templates.Store, kinds ...schema.GroupKind) <-chan templates.Event {
	t.Helper()
	events := make(chan templates.Event, 100)
	if err := s.Subscribe(func(e templates.Event) { events <- e }, kinds...); err != nil {
		t.Fatal(err)
	}
	return events
}

func next(t *testing.T, events <-chan templates.Event) templates.Event {
	t.Helper()
	select {
	case e := <-events:
		return e
	case <-time.After(2 * time.Minute):
		t.Fatal("no notification")
		return templates.Event{}
	}
}

func describe(e templates.Event) string {
	what := "changed "
	switch {
	case e.Initial:
		what = "initial "
	case e.Old == nil:
		what = "new "
	case e.New == nil:
		what = "gone "
	}
	value, _, _ := unstructured.NestedString(e.Object().Object, "data", "key")
	return what + e.Object().GetNamespace() + "/" + e.Object().GetName() + " " + value
}

func TestStore_TellsWhatChanges(t *testing.T) {
	c := templatestest.New(t, []*unstructured.Unstructured{configMap("default", "a", "1"), configMap("kube-system", "b", "1")}, "kube-.*")
	events := listen(t, c.Store, schema.GroupKind{Kind: "ConfigMap"})
	if got := describe(next(t, events)); got != "initial default/a 1" {
		t.Errorf("got %q", got)
	}
	cms := c.Dynamic.Resource(configMaps()).Namespace("default")
	write := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	status := configMap("default", "a", "1")
	status.Object["status"] = map[string]any{"phase": "x"}
	_, err := cms.Update(t.Context(), status, metav1.UpdateOptions{})
	write(err)
	_, err = cms.Update(t.Context(), configMap("default", "a", "2"), metav1.UpdateOptions{})
	write(err)
	_, err = c.Dynamic.Resource(configMaps()).Namespace("karmada-es-m1").Create(t.Context(), configMap("karmada-es-m1", "c", "1"), metav1.CreateOptions{})
	write(err)
	_, err = cms.Create(t.Context(), configMap("default", "d", "1"), metav1.CreateOptions{})
	write(err)
	write(cms.Delete(t.Context(), "a", metav1.DeleteOptions{}))
	var got []string
	for range 3 {
		got = append(got, describe(next(t, events)))
	}
	want := []string{"changed default/a 2", "new default/d 1", "gone default/a 2"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestStore_GetReadsLiveWhatMemoryLacks(t *testing.T) {
	c := templatestest.New(t, []*unstructured.Unstructured{configMap("default", "a", "1")})
	gvk := schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}
	c.Dynamic.ClearActions()
	if _, err := c.Store.Get(t.Context(), gvk, "default", "a"); err != nil {
		t.Fatal(err)
	}
	if n := len(c.Dynamic.Actions()); n != 0 {
		t.Errorf("%d requests for what is in memory", n)
	}
	if _, err := c.Store.Get(t.Context(), gvk, "default", "b"); !apierrors.IsNotFound(err) {
		t.Errorf("got error %v", err)
	}
	if n := len(c.Dynamic.Actions()); n != 1 {
		t.Errorf("%d requests for what is not in memory", n)
	}
}

func TestStore_ClaimedFindsObjectsOfAllKinds(t *testing.T) {
	a, b := configMap("default", "a", "1"), configMap("default", "b", "1")
	d := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "apps/v1", "kind": "Deployment", "metadata": map[string]any{"namespace": "default", "name": "d"}}}
	a.SetLabels(map[string]string{policyv1alpha1.PropagationPolicyPermanentIDLabel: "x"})
	d.SetLabels(map[string]string{policyv1alpha1.ClusterPropagationPolicyPermanentIDLabel: "x"})
	c := templatestest.New(t, []*unstructured.Unstructured{a, b, d})
	found, err := c.Store.Claimed("x")
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]bool{}
	for _, obj := range found {
		got[obj.GetName()] = true
	}
	if diff := cmp.Diff(map[string]bool{"a": true, "d": true}, got); diff != "" {
		t.Error(diff)
	}
}

func TestStore_FollowsTypesThatComeAndGo(t *testing.T) {
	c := templatestest.New(t, nil)
	book := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "example.io/v1", "kind": "Guestbook", "metadata": map[string]any{"namespace": "default", "name": "g"},
	}}
	gvr := schema.GroupVersionResource{Group: "example.io", Version: "v1", Resource: "guestbooks"}
	if _, err := c.Dynamic.Resource(gvr).Namespace("default").Create(t.Context(), book, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	events := listen(t, c.Store, schema.GroupKind{Group: "example.io", Kind: "Guestbook"})

	define := func() {
		t.Helper()
		crd := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": map[string]any{"name": "guestbooks.example.io"},
		}}
		crds := c.Dynamic.Resource(schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"})
		if _, err := crds.Create(t.Context(), crd, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	c.Discovery.Lock()
	c.Discovery.Resources = append(templatestest.Resources(), templatestest.Extra())
	c.Discovery.Unlock()
	define()
	if e := next(t, events); e.New == nil || e.New.GetName() != "g" {
		t.Errorf("got %+v", e)
	}
	found, err := c.Store.List(t.Context(), book.GroupVersionKind(), "", labels.Everything())
	if err != nil || len(found) != 1 {
		t.Errorf("got %d objects, %v", len(found), err)
	}

	c.Discovery.Lock()
	c.Discovery.Resources = templatestest.Resources()
	c.Discovery.Unlock()
	if err := c.Dynamic.Resource(schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}).
		Delete(t.Context(), "guestbooks.example.io", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	if e := next(t, events); e.New != nil || e.Old.GetName() != "g" {
		t.Errorf("got %+v", e)
	}
	if _, _, ok := c.Store.Resource(book.GroupVersionKind()); ok {
		t.Error("the type is still watched")
	}
}

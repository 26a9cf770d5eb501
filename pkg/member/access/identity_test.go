package access

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/karmada-toolkit/karmada/internal/build"
)

// role is an object that nobody asked for.
const role = `{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"ClusterRoleBinding","metadata":{"name":"web"}}`

func deployment(fields string) string {
	return `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"namespace":"default","name":"web"}` + fields + `}`
}

func newTestMapper() meta.RESTMapper {
	m := meta.NewDefaultRESTMapper(nil)
	m.Add(schema.GroupVersionKind{Group: "example.io", Version: "v1", Kind: "Widget"}, meta.RESTScopeRoot)
	return m
}

// TestIdentity_LyingMember reads from a member that returns other objects than those that were requested.
func TestIdentity_LyingMember(t *testing.T) {
	deployments := schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}
	widgets := schema.GroupVersionResource{Group: "example.io", Version: "v1", Resource: "widgets"}
	list := func(items ...string) string {
		return `{"items":[` + strings.Join(items, ",") + `],"apiVersion":"apps/v1","kind":"DeploymentList","metadata":{"resourceVersion":"1"}}`
	}
	get := func(ctx context.Context, m *Member) error {
		_, err := m.Dynamic().Resource(deployments).Namespace("default").Get(ctx, "web", metav1.GetOptions{})
		return err
	}
	listAll := func(ctx context.Context, m *Member) error {
		_, err := m.Dynamic().Resource(deployments).Namespace("default").List(ctx, metav1.ListOptions{})
		return err
	}
	watchAll := func(ctx context.Context, m *Member) error {
		w, err := m.Dynamic().Resource(deployments).Namespace("default").Watch(ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}
		defer w.Stop()
		for e := range w.ResultChan() {
			if e.Type == "ERROR" {
				return fmt.Errorf("%v", e.Object)
			}
			if u, ok := e.Object.(*unstructured.Unstructured); ok && (u.GetKind() != "Deployment" || u.GetName() == "evil") {
				t.Errorf("received %v", u)
			}
		}
		return nil
	}
	update := func(ctx context.Context, m *Member) error {
		u := &unstructured.Unstructured{}
		if err := u.UnmarshalJSON([]byte(deployment(""))); err != nil {
			return err
		}
		_, err := m.Dynamic().Resource(deployments).Namespace("default").Update(ctx, u, metav1.UpdateOptions{})
		return err
	}
	create := func(ctx context.Context, m *Member) error {
		u := &unstructured.Unstructured{}
		if err := u.UnmarshalJSON([]byte(deployment(""))); err != nil {
			return err
		}
		_, err := m.Dynamic().Resource(deployments).Namespace("default").Create(ctx, u, metav1.CreateOptions{})
		return err
	}
	typed := func(ctx context.Context, m *Member) error {
		_, err := m.Core().Secrets("default").Get(ctx, "web", metav1.GetOptions{})
		return err
	}
	metaOnly := func(ctx context.Context, m *Member) error {
		_, err := m.Metadata().Resource(deployments).Namespace("default").Get(ctx, "web", metav1.GetOptions{})
		return err
	}
	widget := func(ctx context.Context, m *Member) error {
		_, err := m.Dynamic().Resource(widgets).Get(ctx, "w", metav1.GetOptions{})
		return err
	}
	for name, tc := range map[string]struct {
		read   func(context.Context, *Member) error
		answer string
		ok     bool
	}{
		"what was requested":                   {get, deployment(""), true},
		"another kind":                         {get, role, false},
		"another kind of the group":            {get, strings.Replace(deployment(""), "Deployment", "StatefulSet", 1), false},
		"another version":                      {get, strings.Replace(deployment(""), "apps/v1", "apps/v1beta1", 1), false},
		"another namespace":                    {get, strings.Replace(deployment(""), "default", "kube-system", 1), false},
		"no namespace":                         {get, `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"web"}}`, false},
		"another name":                         {get, strings.Replace(deployment(""), `"web"`, `"evil"`, 1), false},
		"a name that is generated":             {get, `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"namespace":"default","generateName":"web"}}`, false},
		"a second kind":                        {get, deployment(`,"kind":"DaemonSet"`), false},
		"a second kind, escaped":               {get, deployment(`,"\u006bind":"DaemonSet"`), false},
		"a second kind in another case":        {get, deployment(`,"KIND":"DaemonSet"`), false},
		"second metadata":                      {get, deployment(`,"metadata":{"name":"evil"}`), false},
		"a list instead of an object":          {get, deployment(`,"items":[` + role + `]`), false},
		"two objects":                          {get, deployment("") + role, false},
		"half an object":                       {get, `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"namespace":"default","name":"web"}`, false},
		"a kind within the spec":               {get, deployment(`,"spec":{"kind":"x","metadata":{"name":"y"},"items":[{"kind":"z"}]}`), true},
		"a success":                            {get, `{"apiVersion":"v1","kind":"Status","status":"Success","metadata":{}}`, false},
		"a list":                               {listAll, list(deployment("")), true},
		"a list without kinds":                 {listAll, list(`{"metadata":{"namespace":"default","name":"web"}}`), true},
		"an empty list":                        {listAll, list(), true},
		"a list with another kind":             {listAll, list(deployment(""), role), false},
		"a list in a list":                     {listAll, list(deployment(`,"items":[` + role + `]`)), false},
		"a list with another namespace":        {listAll, list(strings.Replace(deployment(""), "default", "kube-system", 1)), false},
		"a list of another kind":               {listAll, `{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"ClusterRoleBindingList","items":[{"metadata":{"name":"web"}}]}`, false},
		"a list of another kind without items": {listAll, role, false},
		"an event":                             {watchAll, `{"type":"ADDED","object":` + deployment("") + `}`, true},
		"an event with its type last":          {watchAll, `{"object":` + deployment("") + `,"type":"ADDED"}`, true},
		"a bookmark":                           {watchAll, `{"type":"BOOKMARK","object":{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"resourceVersion":"7"}}}`, true},
		"a bookmark of another kind":           {watchAll, `{"type":"BOOKMARK","object":` + role + `}`, false},
		"an event with another kind":           {watchAll, `{"type":"MODIFIED","object":` + role + `}`, false},
		"a second object in an event":          {watchAll, `{"type":"ADDED","object":` + deployment("") + `,"object":` + role + `}`, false},
		"an error that is an object":           {watchAll, `{"type":"ERROR","object":` + role + `}`, false},
		"an updated object":                    {update, deployment(""), true},
		"an updated object of another kind":    {update, role, false},
		"a created object":                     {create, deployment(""), true},
		"a created object of another kind":     {create, role, false},
		"a typed object":                       {typed, `{"apiVersion":"v1","kind":"Secret","metadata":{"namespace":"default","name":"web"}}`, true},
		"a typed object of another name":       {typed, `{"apiVersion":"v1","kind":"Secret","metadata":{"namespace":"default","name":"evil"}}`, false},
		"metadata":                             {metaOnly, `{"apiVersion":"meta.k8s.io/v1","kind":"PartialObjectMetadata","metadata":{"namespace":"default","name":"web"}}`, true},
		"metadata of another namespace":        {metaOnly, `{"apiVersion":"meta.k8s.io/v1","kind":"PartialObjectMetadata","metadata":{"namespace":"x","name":"web"}}`, false},
		"metadata that was not requested":      {get, `{"apiVersion":"meta.k8s.io/v1","kind":"PartialObjectMetadata","metadata":{"namespace":"default","name":"web"}}`, false},
		"a custom kind":                        {widget, `{"apiVersion":"example.io/v1","kind":"Widget","metadata":{"name":"w"}}`, true},
		"another custom kind":                  {widget, `{"apiVersion":"example.io/v1","kind":"Gadget","metadata":{"name":"w"}}`, false},
	} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", "application/json")
				_, _ = io.WriteString(w, tc.answer)
			}))
			t.Cleanup(server.Close)
			member, err := NewMember("m1", &rest.Config{Host: server.URL}, newTestMapper())
			if err != nil {
				t.Fatal(err)
			}
			if _, err := member.Mapping(schema.GroupVersionKind{Group: "example.io", Version: "v1", Kind: "Widget"}); err != nil {
				t.Fatal(err)
			}
			if err := tc.read(t.Context(), member); (err == nil) != tc.ok {
				t.Errorf("got %v", err)
			}
		})
	}
}

// TestMapping_AResourceHasOneKind lets a member claim that a kind is served as a resource of Kubernetes.
func TestMapping_AResourceHasOneKind(t *testing.T) {
	var k kinds
	mapper := newTestMapper()
	widget, err := mapper.RESTMapping(schema.GroupKind{Group: "example.io", Kind: "Widget"}, "v1")
	if err != nil {
		t.Fatal(err)
	}
	if err := k.add(widget); err != nil || k.add(widget) != nil {
		t.Fatal("a kind is refused", err)
	}
	other := *widget
	other.GroupVersionKind.Kind = "Gadget"
	secrets := *widget
	secrets.Resource = schema.GroupVersionResource{Version: "v1", Resource: "secrets"}
	if k.add(&other) == nil || k.add(&secrets) == nil {
		t.Error("a resource has two kinds")
	}
}

func TestParsePath(t *testing.T) {
	for path, want := range map[string]string{
		"api/v1/namespaces":                                            "/v1, Resource=namespaces  ",
		"api/v1/namespaces/a":                                          "/v1, Resource=namespaces  a",
		"api/v1/namespaces/a/status":                                   "/v1, Resource=namespaces  a",
		"api/v1/namespaces/a/pods":                                     "/v1, Resource=pods a ",
		"api/v1/namespaces/a/pods/b":                                   "/v1, Resource=pods a b",
		"apis/apps/v1/namespaces/a/deployments/b":                      "apps/v1, Resource=deployments a b",
		"apis/apps/v1/deployments":                                     "apps/v1, Resource=deployments  ",
		"api/v1/nodes/n":                                               "/v1, Resource=nodes  n",
		"api/v1/namespaces/a/pods/b/log":                               "",
		"apis/apps/v1/namespaces/a/deployments/b/scale":                "",
		"apis/custom.metrics.k8s.io/v1beta2/namespaces/a/pods/*/queue": "",
		"api/v1": "", "apis/apps/v1": "", "version": "",
	} {
		r, ok := parsePath(path)
		if got := fmt.Sprintf("%s %s %s", r.resource, r.namespace, r.name); ok != (want != "") || ok && got != want {
			t.Errorf("%s: got %q, %v, want %q", path, got, ok, want)
		}
	}
}

// FuzzIdentity checks that no decoder finds another object in a response that is accepted than the one that was
// requested.
func FuzzIdentity(f *testing.F) {
	for _, seed := range []string{
		deployment(""), role, deployment(`,"kind":"x"`), deployment(`,"\u006bind":"x"`), deployment(`,"items":[]`), deployment("") + role,
		`{"items":[` + deployment("") + `,` + role + `],"apiVersion":"apps/v1","kind":"DeploymentList"}`,
		`{"apiVersion":"v1","kind":"List","items":[{"metadata":{"name":"a","namespace":"default"}}]}`,
	} {
		f.Add(seed, 7, false)
		f.Add(seed, 1, true)
	}
	want := Identity{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "default", Name: "web"}
	f.Fuzz(func(t *testing.T, text string, chunk int, list bool) {
		build.Bounded(t, time.Minute, 64<<20+uint64(65536*len(text)), func() {
			h := &heads{want: want, list: list}
			if list {
				h.want.Name = ""
			}
			for rest := []byte(text); len(rest) > 0; {
				n := min(max(chunk, 1), len(rest))
				if h.next(rest[:n]) != nil {
					return
				}
				rest = rest[n:]
			}
			if h.end() != nil {
				return
			}
			if list {
				checkDecodedList(t, h.want, text)
				return
			}
			var u unstructured.Unstructured
			if err := u.UnmarshalJSON([]byte(text)); err == nil && IdentityOf(&u) != want {
				t.Errorf("unstructured: %v", IdentityOf(&u))
			}
			var partial metav1.PartialObjectMetadata
			if err := json.Unmarshal([]byte(text), &partial); err == nil && (partial.Kind != want.Kind || partial.Name != want.Name || partial.Namespace != want.Namespace) {
				t.Errorf("encoding/json: %v", partial)
			}
		})
	})
}

func checkDecodedList(t *testing.T, want Identity, text string) {
	t.Helper()
	var list unstructured.UnstructuredList
	if list.UnmarshalJSON([]byte(text)) != nil {
		return
	}
	for i := range list.Items {
		got := IdentityOf(&list.Items[i])
		if got.Name == "" && got.Namespace == "" {
			got.Namespace = want.Namespace
		}
		if got.APIVersion == "" || got.Kind == "" || got.APIVersion == "v1" && got.Kind == list.GetKind() {
			continue // it has no kind of its own
		}
		if err := want.Check(got); err != nil {
			t.Error(err)
		}
	}
}

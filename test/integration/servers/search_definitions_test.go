//go:build integration

// Covers pkg/controlplane/search.

package servers_test

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/karmada-toolkit/karmada/internal/kube"
	"github.com/karmada-toolkit/karmada/internal/testenv"
	searchv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/search/v1alpha1"
	"github.com/karmada-toolkit/karmada/pkg/member/access/accesstest"
)

// defineWidgets makes a member serve the kind Widget, with one object.
func defineWidgets(server *accesstest.Server) {
	version := map[string]any{"groupVersion": "example.com/v1", "version": "v1"}
	server.Put("/apis", &unstructured.Unstructured{Object: map[string]any{"kind": "APIGroupList", "apiVersion": "v1", "groups": []any{
		map[string]any{"name": "example.com", "versions": []any{version}, "preferredVersion": version},
	}}})
	server.Put("/apis/example.com/v1", &unstructured.Unstructured{Object: map[string]any{
		"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": "example.com/v1",
		"resources": []any{map[string]any{"name": "widgets", "kind": "Widget", "namespaced": true, "verbs": []any{"list", "watch"}}},
	}})
	server.Put("/apis/example.com/v1/namespaces/team/widgets/w", &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "example.com/v1", "kind": "Widget", "metadata": map[string]any{"namespace": "team", "name": "w"}, "spec": map[string]any{"size": "large"},
	}})
}

func widgetDefinition() *apiextensionsv1.CustomResourceDefinition {
	return &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: "widgets.example.com"},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: "example.com", Scope: apiextensionsv1.NamespaceScoped,
			Names: apiextensionsv1.CustomResourceDefinitionNames{Plural: "widgets", Singular: "widget", Kind: "Widget", ListKind: "WidgetList"},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
				Name: "v1", Served: true, Storage: true,
				Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{
					Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{
						"spec": {Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{"size": {Type: "string"}}},
					},
				}},
				AdditionalPrinterColumns: []apiextensionsv1.CustomResourceColumnDefinition{{Name: "Size", Type: "string", JSONPath: ".spec.size"}},
				SelectableFields:         []apiextensionsv1.SelectableField{{JSONPath: ".spec.size"}},
			}},
		},
	}
}

// A kind that only members serve is cached, and the condition Degraded reports that clients cannot discover it. Its columns and
// selectable fields are
// those of its definition as soon as the control plane has one, and again without when it is deleted.
func TestProxy_KindsThatTheControlPlaneLacks(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	c, err := client.New(f.replicas.home.Config, client.Options{Scheme: kube.NewScheme()})
	if err != nil {
		t.Fatal(err)
	}
	if columns, rows := f.table("/api/v1/namespaces/none/configmaps"); !slices.Equal(columns, []string{"Cluster", "Name", "Data", "Age"}) || len(rows) != 0 {
		t.Errorf("an empty table: %v %v", columns, rows)
	}
	for _, server := range f.members {
		defineWidgets(server)
	}
	registry := &searchv1alpha1.ResourceRegistry{ObjectMeta: metav1.ObjectMeta{Name: "widgets"}}
	registry.Spec.ResourceSelectors = []searchv1alpha1.ResourceSelector{{APIVersion: "example.com/v1", Kind: "Widget"}}
	if err := c.Create(t.Context(), registry); err != nil {
		t.Fatal(err)
	}
	const path, selected = "/apis/example.com/v1/widgets", "?fieldSelector=spec.size%3Dlarge"
	status := func(ready metav1.ConditionStatus, reason string) {
		t.Helper()
		testenv.Eventually(t, time.Minute, func(ctx context.Context) error {
			if err := c.Get(ctx, client.ObjectKeyFromObject(registry), registry); err != nil {
				return err
			}
			degraded := meta.FindStatusCondition(registry.Status.Conditions, searchv1alpha1.RegistryDegraded)
			if !meta.IsStatusConditionPresentAndEqual(registry.Status.Conditions, searchv1alpha1.RegistryReady, ready) || degraded.Reason != reason {
				return fmt.Errorf("status %+v", registry.Status)
			}
			return nil
		})
	}
	shows := func(code int, want ...string) {
		t.Helper()
		if columns, rows := f.table(path); !slices.Equal(columns, want) || !slices.Equal(rows, []string{"m1w", "m2w"}) {
			t.Errorf("columns %v, rows %v, want the columns %v", columns, rows, want)
		}
		if got, data := f.call("", http.MethodGet, path+selected, "", ""); got != code || (strings.Count(data, `"large"`) == 2) != (code == http.StatusOK) {
			t.Errorf("selected by a field: %d %s", got, data)
		}
	}
	status(metav1.ConditionFalse, searchv1alpha1.ReasonNotInControlPlane)
	shows(http.StatusBadRequest, "Cluster", "Name", "Age")
	definition := widgetDefinition()
	if err := c.Create(t.Context(), definition); err != nil {
		t.Fatal(err)
	}
	shows(http.StatusOK, "Cluster", "Name", "Size")
	status(metav1.ConditionTrue, searchv1alpha1.ReasonNotDegraded)
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(definition), definition); err != nil {
		t.Fatal(err)
	}
	definition.Spec.Versions[0].AdditionalPrinterColumns[0].Name = "How large"
	if err := c.Update(t.Context(), definition); err != nil {
		t.Fatal(err)
	}
	shows(http.StatusOK, "Cluster", "Name", "How large")
	if err := c.Delete(t.Context(), definition); err != nil {
		t.Fatal(err)
	}
	status(metav1.ConditionFalse, searchv1alpha1.ReasonNotInControlPlane)
	shows(http.StatusBadRequest, "Cluster", "Name", "Age")
}

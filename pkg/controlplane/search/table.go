package search

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/karmada-toolkit/karmada/internal/extension"
	searchv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/search/v1alpha1"
)

// maxKindsShown is the number of kinds that the table names for each registry.
const maxKindsShown = 3

// newRegistryTable prints registries in columns.
func newRegistryTable(now func() metav1.Time) extension.Table[*searchv1alpha1.ResourceRegistry] {
	return extension.Table[*searchv1alpha1.ResourceRegistry]{
		Kinds: "registries", Columns: registryColumns,
		Cells: func(r *searchv1alpha1.ResourceRegistry) []any { return registryCells(r, now()) },
	}
}

func registryColumns() []metav1.TableColumnDefinition {
	return []metav1.TableColumnDefinition{
		{Name: "Name", Type: "string", Format: "name", Description: metav1.ObjectMeta{}.SwaggerDoc()["name"]},
		{Name: "Kinds", Type: "string", Description: "Kinds that are cached."},
		{Name: "Ready", Type: "string", Description: "Whether all objects that the registry selects are cached."},
		{Name: "Age", Type: "string", Description: metav1.ObjectMeta{}.SwaggerDoc()["creationTimestamp"]},
		{Name: "Degraded", Type: "string", Priority: 1, Description: "Why something that the registry selects cannot be cached."},
		{Name: "Backend", Type: "string", Priority: 1, Description: "Where the objects are stored besides the memory of the server."},
	}
}

func registryCells(r *searchv1alpha1.ResourceRegistry, now metav1.Time) []any {
	ready, degraded, backend := string(metav1.ConditionUnknown), "<none>", "<none>"
	if c := meta.FindStatusCondition(r.Status.Conditions, searchv1alpha1.RegistryReady); c != nil {
		ready = string(c.Status)
	}
	if c := meta.FindStatusCondition(r.Status.Conditions, searchv1alpha1.RegistryDegraded); c != nil && c.Status == metav1.ConditionTrue {
		degraded = c.Reason
	}
	if openSearchOf(r) != nil {
		backend = "OpenSearch"
	}
	return []any{r.Name, kindsCell(r.Spec.ResourceSelectors), ready, extension.Age(now, r.CreationTimestamp), degraded, backend}
}

// kindsCell names the kinds of selectors, each once.
func kindsCell(selectors []searchv1alpha1.ResourceSelector) string {
	var kinds []string
	for _, s := range selectors {
		if !slices.Contains(kinds, s.Kind) {
			kinds = append(kinds, s.Kind)
		}
	}
	if len(kinds) == 0 {
		return "<none>"
	}
	if more := len(kinds) - maxKindsShown; more > 0 {
		kinds = append(kinds[:maxKindsShown], fmt.Sprintf("+%d", more))
	}
	return strings.Join(kinds, ",")
}

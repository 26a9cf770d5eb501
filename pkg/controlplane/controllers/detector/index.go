package detector

import (
	"context"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/karmada-toolkit/karmada/internal/controllers"
	policyv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/policy/v1alpha1"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/scope"
)

// selectorIndex finds policies by what they select, dependsIndex by the override
// policies that they wait for.
const (
	selectorIndex = "detector.selector"
	dependsIndex  = "detector.dependentOverride"
	anyName       = "*"
)

func selectorKey(apiVersion, kind, name string) string {
	if name == "" {
		name = anyName
	}
	return apiVersion + "," + kind + "," + name
}

func index(ctx context.Context, indexer client.FieldIndexer) error {
	for _, s := range scope.Policies() {
		if err := indexer.IndexField(ctx, s.New(), selectorIndex, controllers.Index(selectorKeys)); err != nil {
			return fmt.Errorf("indexing policies: %w", err)
		}
		if err := indexer.IndexField(ctx, s.New(), dependsIndex, controllers.Index(dependsKeys)); err != nil {
			return fmt.Errorf("indexing policies: %w", err)
		}
	}
	// The index starts the informers of bindings, which are read from the cache.
	for _, s := range scope.Bindings() {
		if err := indexer.IndexField(ctx, s.New(), "detector.present", func(client.Object) []string { return nil }); err != nil {
			return fmt.Errorf("indexing bindings: %w", err)
		}
	}
	return nil
}

func selectorKeys(p policyv1alpha1.Policy) []string {
	seen := map[string]bool{}
	var out []string
	for _, rs := range p.PropagationSpec().ResourceSelectors {
		if key := selectorKey(rs.APIVersion, rs.Kind, rs.Name); !seen[key] {
			seen[key] = true
			out = append(out, key)
		}
	}
	return out
}

func dependsKeys(p policyv1alpha1.Policy) []string {
	return p.PropagationSpec().DependentOverrides
}

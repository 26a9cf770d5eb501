package detector

import (
	"context"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"

	policyv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/policy/v1alpha1"
	workv1alpha2 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha2"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/policy"
)

// policyScope is one of the two kinds of policy.
type policyScope struct {
	controller, finalizer string
	cluster               bool
	newPolicy             func() policyv1alpha1.Policy
	newList               func() client.ObjectList
	items                 func(client.ObjectList) []policyv1alpha1.Policy
	newOverride           func() client.Object
}

func namespacedPolicies() policyScope {
	return policyScope{
		controller: "propagation-policy-controller", finalizer: policyv1alpha1.PropagationPolicyFinalizer,
		newPolicy:   func() policyv1alpha1.Policy { return &policyv1alpha1.PropagationPolicy{} },
		newList:     func() client.ObjectList { return &policyv1alpha1.PropagationPolicyList{} },
		newOverride: func() client.Object { return &policyv1alpha1.OverridePolicy{} },
		items: func(list client.ObjectList) []policyv1alpha1.Policy {
			items := list.(*policyv1alpha1.PropagationPolicyList).Items
			out := make([]policyv1alpha1.Policy, len(items))
			for i := range items {
				out[i] = &items[i]
			}
			return out
		},
	}
}

func clusterPolicies() policyScope {
	return policyScope{
		controller: "cluster-propagation-policy-controller", finalizer: policyv1alpha1.ClusterPropagationPolicyFinalizer,
		cluster:     true,
		newPolicy:   func() policyv1alpha1.Policy { return &policyv1alpha1.ClusterPropagationPolicy{} },
		newList:     func() client.ObjectList { return &policyv1alpha1.ClusterPropagationPolicyList{} },
		newOverride: func() client.Object { return &policyv1alpha1.ClusterOverridePolicy{} },
		items: func(list client.ObjectList) []policyv1alpha1.Policy {
			items := list.(*policyv1alpha1.ClusterPropagationPolicyList).Items
			out := make([]policyv1alpha1.Policy, len(items))
			for i := range items {
				out[i] = &items[i]
			}
			return out
		},
	}
}

func scopes() []policyScope { return []policyScope{namespacedPolicies(), clusterPolicies()} }

func scopeOf(c policy.Claim) policyScope {
	if c.Cluster {
		return clusterPolicies()
	}
	return namespacedPolicies()
}

// bindingScope is one of the two kinds of binding.
type bindingScope struct {
	finalizer, idLabel string
	// ranked says that the scheduler's queue knows priorities and groups for it.
	ranked     bool
	newBinding func() workv1alpha2.Binding
}

func bindingScopeOf(namespace string) bindingScope {
	if namespace == "" {
		return bindingScope{
			finalizer:  workv1alpha2.ClusterBindingControllerFinalizer,
			idLabel:    workv1alpha2.ClusterResourceBindingPermanentIDLabel,
			newBinding: func() workv1alpha2.Binding { return &workv1alpha2.ClusterResourceBinding{} },
		}
	}
	return bindingScope{
		finalizer:  workv1alpha2.BindingControllerFinalizer,
		idLabel:    workv1alpha2.ResourceBindingPermanentIDLabel,
		ranked:     true,
		newBinding: func() workv1alpha2.Binding { return &workv1alpha2.ResourceBinding{} },
	}
}

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
	for _, scope := range scopes() {
		if err := indexer.IndexField(ctx, scope.newPolicy(), selectorIndex, selectorKeys); err != nil {
			return fmt.Errorf("indexing policies: %w", err)
		}
		if err := indexer.IndexField(ctx, scope.newPolicy(), dependsIndex, dependsKeys); err != nil {
			return fmt.Errorf("indexing policies: %w", err)
		}
	}
	// The bindings are read from memory; have them there before the first look.
	for _, obj := range []client.Object{&workv1alpha2.ResourceBinding{}, &workv1alpha2.ClusterResourceBinding{}} {
		if err := indexer.IndexField(ctx, obj, "detector.present", func(client.Object) []string { return nil }); err != nil {
			return fmt.Errorf("indexing bindings: %w", err)
		}
	}
	return nil
}

func selectorKeys(obj client.Object) []string {
	p, ok := obj.(policyv1alpha1.Policy)
	if !ok {
		return nil
	}
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

func dependsKeys(obj client.Object) []string {
	p, ok := obj.(policyv1alpha1.Policy)
	if !ok {
		return nil
	}
	return p.PropagationSpec().DependentOverrides
}

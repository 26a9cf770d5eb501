package policy

import (
	"errors"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	policyv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/policy/v1alpha1"
)

func TestTakesOver(t *testing.T) {
	named := func(name string, priority int32) policyv1alpha1.Policy {
		return &policyv1alpha1.PropagationPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name}, Spec: policyv1alpha1.PropagationSpec{Priority: &priority}}
	}
	wide := func(name string, priority int32) policyv1alpha1.Policy {
		return &policyv1alpha1.ClusterPropagationPolicy{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: policyv1alpha1.PropagationSpec{Priority: &priority}}
	}
	deployment, role := schema.GroupKind{Group: "apps", Kind: "Deployment"}, schema.GroupKind{Group: "rbac.authorization.k8s.io", Kind: "Role"}
	for name, tc := range map[string]struct {
		kind      schema.GroupKind
		p, holder policyv1alpha1.Policy
		want      bool
	}{
		"itself":                   {deployment, named("a", 1), named("a", 1), false},
		"a lower priority":         {deployment, named("a", 1), named("b", 2), false},
		"the same priority":        {deployment, named("a", 1), named("b", 1), false},
		"a higher priority":        {deployment, wide("a", 2), wide("b", 1), true},
		"a namespaced one":         {deployment, named("a", 1), wide("b", 2), true},
		"a cluster-wide one":       {deployment, wide("a", 2), named("b", 1), false},
		"a namespaced one, a Role": {role, named("a", 2), wide("b", 1), false},
	} {
		got, err := TakesOver(tc.kind, tc.p, For(tc.holder), func() (policyv1alpha1.Policy, error) { return tc.holder, nil })
		if got != tc.want || err != nil {
			t.Errorf("%s: %t, %v", name, got, err)
		}
	}
	failed := errors.New("failed")
	if got, err := TakesOver(deployment, named("a", 2), For(named("b", 1)), func() (policyv1alpha1.Policy, error) { return nil, failed }); got || !errors.Is(err, failed) {
		t.Errorf("%t, %v", got, err)
	}
}

// Package explain reads what decides what became of an object of the control plane, and explains it.
package explain

import (
	"context"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
	policyv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/policy/v1alpha1"
	"github.com/karmada-toolkit/karmada/pkg/domain/scope"
	"github.com/karmada-toolkit/karmada/pkg/insight/snapshot"
	"github.com/karmada-toolkit/karmada/pkg/insight/why"
)

// Object returns the account of an object of the control plane: a Cluster, a policy, an override policy, or else a template. The program
// is the one of which the account proposes commands.
func Object(ctx context.Context, reader *snapshot.Reader, object *unstructured.Unstructured, mapping *meta.RESTMapping, program string) (*why.Account, error) {
	switch object.GroupVersionKind().GroupKind() {
	case clusterv1alpha1.GroupVersion.WithKind("Cluster").GroupKind():
		cluster := &clusterv1alpha1.Cluster{}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, cluster); err != nil {
			return nil, fmt.Errorf("decoding cluster %s: %w", object.GetName(), err)
		}
		facts, err := reader.Cluster(ctx, cluster)
		if err != nil {
			return nil, err
		}
		return why.Cluster(facts, program), nil
	case policyv1alpha1.GroupVersion.WithKind("PropagationPolicy").GroupKind(), policyv1alpha1.GroupVersion.WithKind("ClusterPropagationPolicy").GroupKind():
		of := scope.NamespacedPolicy()
		if object.GetNamespace() == "" {
			of = scope.ClusterPolicy()
		}
		p := of.New()
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, p); err != nil {
			return nil, fmt.Errorf("decoding policy %s: %w", object.GetName(), err)
		}
		facts, err := reader.Policy(ctx, p)
		if err != nil {
			return nil, err
		}
		return why.Policy(facts, program), nil
	}
	if strings.HasSuffix(object.GetKind(), "OverridePolicy") && object.GroupVersionKind().Group == policyv1alpha1.GroupName {
		return override(ctx, reader, object, program)
	}
	facts, err := reader.Template(ctx, object, mapping)
	if err != nil {
		return nil, err
	}
	return why.Template(facts, program), nil
}

// override explains an override policy.
func override(ctx context.Context, reader *snapshot.Reader, object *unstructured.Unstructured, program string) (*why.Account, error) {
	typed, err := snapshot.Typed(object)
	if err != nil {
		return nil, err
	}
	p := typed.(policyv1alpha1.OverridePolicyObject)
	of := scope.Pick(p.GetNamespace() != "", scope.NamespacedPolicy(), scope.ClusterPolicy()).New()
	of.SetNamespace(p.GetNamespace())
	of.PropagationSpec().ResourceSelectors = p.OverrideSpec().ResourceSelectors
	facts, err := reader.Policy(ctx, of)
	if err != nil {
		return nil, err
	}
	list := &clusterv1alpha1.ClusterList{}
	_ = reader.ControlPlane.List(ctx, list) // without it, no rule names clusters
	clusters := make([]*clusterv1alpha1.Cluster, len(list.Items))
	for i := range list.Items {
		clusters[i] = &list.Items[i]
	}
	return why.Override(facts, p, clusters, program), nil
}

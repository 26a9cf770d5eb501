package apply

import (
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/cli-runtime/pkg/resource"
	cmdutil "k8s.io/kubectl/pkg/cmd/util"

	"github.com/karmada-toolkit/karmada/pkg/apis/names"
	policyv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/policy/v1alpha1"
)

// withPolicies returns the objects, each followed by a policy that propagates it to
// the clusters; to all if none is named. Policies themselves need none.
func withPolicies(factory cmdutil.Factory, infos []*resource.Info, clusters []string) ([]*resource.Info, error) {
	var out []*resource.Info
	for _, info := range infos {
		out = append(out, info)
		gvk := info.Mapping.GroupVersionKind
		if gvk.Group == policyv1alpha1.GroupName {
			continue
		}
		namespace := ""
		if info.Namespaced() {
			namespace = info.Namespace
		}
		policy, err := policyInfo(factory, newPolicy(gvk, namespace, info.Name, clusters))
		if err != nil {
			return nil, fmt.Errorf("making the policy of %s %q: %w", gvk.Kind, info.Name, err)
		}
		out = append(out, policy)
	}
	return out, nil
}

// newPolicy returns the policy that propagates one object.
func newPolicy(gvk schema.GroupVersionKind, namespace, name string, clusters []string) *unstructured.Unstructured {
	affinity := map[string]any{}
	if len(clusters) > 0 {
		list := make([]any, 0, len(clusters))
		for _, c := range clusters {
			list = append(list, c)
		}
		affinity["clusterNames"] = list
	}
	selector := map[string]any{"apiVersion": gvk.GroupVersion().String(), "kind": gvk.Kind, "name": name}
	kind := "ClusterPropagationPolicy"
	if namespace != "" {
		kind = "PropagationPolicy"
		selector["namespace"] = namespace
	}
	policy := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{
		"resourceSelectors": []any{selector},
		"placement":         map[string]any{"clusterAffinity": affinity},
	}}}
	policy.SetGroupVersionKind(policyv1alpha1.GroupVersion.WithKind(kind))
	policy.SetNamespace(namespace)
	policy.SetName(names.Policy(gvk.String(), namespace, name))
	return policy
}

func policyInfo(factory cmdutil.Factory, policy *unstructured.Unstructured) (*resource.Info, error) {
	mapper, err := factory.ToRESTMapper()
	if err != nil {
		return nil, err
	}
	gvk := policy.GroupVersionKind()
	mapping, err := mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
	if err != nil {
		return nil, err
	}
	client, err := factory.UnstructuredClientForMapping(mapping)
	if err != nil {
		return nil, err
	}
	return &resource.Info{
		Client: client, Mapping: mapping, Namespace: policy.GetNamespace(), Name: policy.GetName(),
		Source: "policy", Object: policy,
	}, nil
}

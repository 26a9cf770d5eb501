package apply

import (
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/cli-runtime/pkg/resource"
	cmdutil "k8s.io/kubectl/pkg/cmd/util"

	configv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/config/v1alpha1"
	"github.com/karmada-toolkit/karmada/pkg/apis/names"
	policyv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/policy/v1alpha1"
	"github.com/karmada-toolkit/karmada/pkg/apis/validation"
	"github.com/karmada-toolkit/karmada/pkg/cli/env"
	"github.com/karmada-toolkit/karmada/pkg/domain/interpreter/lua"
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

// validate returns, for a dry run on the client, the errors that admission would return
// for the objects, and prints its warnings.
func validate(e *env.Env, infos []*resource.Info) error {
	j := &validation.Judge{Compile: lua.Check}
	var errs []error
	for _, info := range infos {
		obj, ok := info.Object.(*unstructured.Unstructured)
		if !ok {
			continue
		}
		kind := obj.GetKind()
		warnings, err := j.New(obj)
		for _, w := range warnings {
			e.Say("Warning: %s %q: %s", kind, info.Name, w)
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("%s %q (%s) would be refused: %w", kind, info.Name, info.Source, err))
			continue
		}
		var c configv1alpha1.ResourceInterpreterCustomization
		if kind == "ResourceInterpreterCustomization" && runtime.DefaultUnstructuredConverter.FromUnstructured(obj.Object, &c) == nil {
			j.Customizations = append(j.Customizations, c)
		}
	}
	return utilerrors.NewAggregate(errs)
}

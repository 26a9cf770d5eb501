package promote

import (
	"cmp"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"

	"github.com/karmada-toolkit/karmada/pkg/apis/names"
	policyv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/policy/v1alpha1"
	workv1alpha2 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha2"
	"github.com/karmada-toolkit/karmada/pkg/domain/manifest"
)

// Clean removes in place what belongs to the member that an object was read from, and lets the object in that member be
// adopted, unless it has an annotation that decides otherwise.
func Clean(obj *unstructured.Unstructured) error {
	// A Work must not limit the time that a Job is kept in a member; a template keeps what its user set.
	ttl, limited, _ := unstructured.NestedFieldNoCopy(obj.Object, "spec", "ttlSecondsAfterFinished")
	if err := manifest.Prune(obj); err != nil {
		return err
	}
	if _, ok, _ := unstructured.NestedFieldNoCopy(obj.Object, "spec", "ttlSecondsAfterFinished"); limited && !ok {
		if err := unstructured.SetNestedField(obj.Object, ttl, "spec", "ttlSecondsAfterFinished"); err != nil {
			return fmt.Errorf("keeping spec.ttlSecondsAfterFinished of %s %q: %w", obj.GetKind(), obj.GetName(), err)
		}
	}
	if data, ok := obj.Object["data"]; ok && data == nil {
		delete(obj.Object, "data")
	}
	annotations := obj.GetAnnotations()
	if _, ok := annotations[workv1alpha2.ResourceConflictResolutionAnnotation]; ok {
		return nil
	}
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[workv1alpha2.ResourceConflictResolutionAnnotation] = workv1alpha2.ResourceConflictResolutionOverwrite
	obj.SetAnnotations(annotations)
	return nil
}

// policy returns the policy that propagates the object to the member it came from. hashed is the namespace that the
// derived name of the policy contains.
func (t *target) policy(r Request, hashed string) *unstructured.Unstructured {
	gvk := t.object.GroupVersionKind()
	name := cmp.Or(r.PolicyName, names.Policy(gvk.String(), hashed, t.object.GetName()))
	spec := map[string]any{
		"resourceSelectors": []any{map[string]any{
			"apiVersion": gvk.GroupVersion().String(), "kind": gvk.Kind, "name": t.object.GetName(),
		}},
		"placement":                   map[string]any{"clusterAffinity": map[string]any{"clusterNames": []any{r.Cluster}}},
		"conflictResolution":          string(policyv1alpha1.ConflictOverwrite),
		"preserveResourcesOnDeletion": true,
	}
	if r.Dependencies {
		spec["propagateDeps"] = true
	}
	policy := &unstructured.Unstructured{Object: map[string]any{"spec": spec}}
	kind := "ClusterPropagationPolicy"
	if t.namespaced() {
		kind = "PropagationPolicy"
		policy.SetNamespace(t.namespace)
	}
	policy.SetGroupVersionKind(policyv1alpha1.GroupVersion.WithKind(kind))
	policy.SetName(name)
	return policy
}

// policyClient returns the client for the kind and namespace of a policy.
func policyClient(c dynamic.Interface, policy *unstructured.Unstructured) dynamic.ResourceInterface {
	if namespace := policy.GetNamespace(); namespace != "" {
		return c.Resource(policyv1alpha1.GroupVersion.WithResource("propagationpolicies")).Namespace(namespace)
	}
	return c.Resource(policyv1alpha1.GroupVersion.WithResource("clusterpropagationpolicies"))
}

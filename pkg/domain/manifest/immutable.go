package manifest

import (
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Immutable returns the field of an object that API servers refuse to change to that of the next version; nil if they change all. It knows
// the kinds of Kubernetes, as of 1.36, that workloads consist of.
func Immutable(before, next *unstructured.Unstructured) Path {
	fixed, mutable := immutableFields(before)
	for _, path := range fixed {
		was, _, _ := unstructured.NestedFieldNoCopy(before.Object, path...)
		is, _, _ := unstructured.NestedFieldNoCopy(next.Object, path...)
		if len(mutable) > 0 && slices.Equal(path, Path{"spec"}) {
			was, is = omit(was, mutable), omit(is, mutable)
		}
		if !equality.Semantic.DeepEqual(was, is) && !elastic(path, next) {
			return path
		}
	}
	return nil
}

// immutableFields returns the fields of a kind that do not change, and those of the spec that do, if the spec is one.
func immutableFields(u *unstructured.Unstructured) (fixed []Path, mutable []string) {
	switch k := kindOf(u.Object); k {
	case kind{"batch", "Job"}:
		for _, field := range []string{"completions", "selector", "template", "completionMode", "podFailurePolicy", "successPolicy", "backoffLimitPerIndex", "managedBy"} {
			fixed = append(fixed, Path{"spec", field})
		}
	case kind{"apps", "Deployment"}, kind{"apps", "DaemonSet"}, kind{"apps", "ReplicaSet"}:
		fixed = []Path{{"spec", "selector"}}
	case kind{"apps", "StatefulSet"}:
		return []Path{{"spec"}}, []string{"replicas", "ordinals", "template", "updateStrategy", "revisionHistoryLimit", "persistentVolumeClaimRetentionPolicy", "minReadySeconds"}
	case kind{"", "PersistentVolumeClaim"}:
		return []Path{{"spec"}}, []string{"resources", "volumeAttributesClassName", "volumeName"}
	case kind{"", "Secret"}, kind{"", "ConfigMap"}:
		fixed = []Path{{"type"}}
		if frozen, _ := u.Object["immutable"].(bool); frozen {
			fixed = append(fixed, Path{"immutable"}, Path{"data"}, Path{"binaryData"})
		}
	case kind{"rbac.authorization.k8s.io", "RoleBinding"}, kind{"rbac.authorization.k8s.io", "ClusterRoleBinding"}:
		fixed = []Path{{"roleRef"}}
	case kind{"scheduling.k8s.io", "PriorityClass"}:
		fixed = []Path{{"value"}, {"preemptionPolicy"}}
	case kind{"storage.k8s.io", "StorageClass"}:
		fixed = []Path{{"provisioner"}, {"parameters"}, {"reclaimPolicy"}, {"volumeBindingMode"}}
	}
	return fixed, nil
}

// elastic reports whether a field is the completions of an indexed Job that has as much parallelism.
func elastic(path Path, next *unstructured.Unstructured) bool {
	spec := child(next.Object, "spec")
	return slices.Equal(path, Path{"spec", "completions"}) && spec["completionMode"] == "Indexed" && equalValues(spec["completions"], spec["parallelism"])
}

func omit(value any, keys []string) any {
	m, ok := value.(map[string]any)
	if !ok {
		return value
	}
	out := map[string]any{}
	for key, v := range m {
		if !slices.Contains(keys, key) {
			out[key] = v
		}
	}
	return out
}

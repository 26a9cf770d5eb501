package interpreter

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	workv1alpha2 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha2"
)

type retainFunc = func(desired, observed *unstructured.Unstructured) (*unstructured.Unstructured, error)

// revise returns the rule that sets an integer which the object already has.
func revise(path ...string) func(*unstructured.Unstructured, int64) (*unstructured.Unstructured, error) {
	parents, field := path[:len(path)-1], path[len(path)-1]
	return func(obj *unstructured.Unstructured, replicas int64) (*unstructured.Unstructured, error) {
		revised := obj.DeepCopy()
		parent := child(revised.Object, parents...)
		value, ok := parent[field]
		if !ok {
			return revised, nil
		}
		if _, ok := value.(int64); !ok {
			return nil, fmt.Errorf("revising %s %s/%s: %s is %T, not an integer",
				obj.GetKind(), obj.GetNamespace(), obj.GetName(), field, value)
		}
		parent[field] = replicas
		return revised, nil
	}
}

// ensure returns the map under key, made when there is none.
func ensure(m map[string]any, key string) map[string]any {
	if c, ok := m[key].(map[string]any); ok && c != nil {
		return c
	}
	c := map[string]any{}
	m[key] = c
	return c
}

func retainDeployment(desired, observed *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	retained := desired.DeepCopy()
	if text(child(desired.Object, "metadata", "labels"), workv1alpha2.RetainReplicasLabel) != "true" {
		return retained, nil
	}
	replicas, ok := child(observed.Object, "spec")["replicas"].(int64)
	if !ok {
		return nil, fmt.Errorf("failed to get spec.replicas from %s %s/%s",
			observed.GetKind(), observed.GetNamespace(), observed.GetName())
	}
	ensure(retained.Object, "spec")["replicas"] = replicas
	return retained, nil
}

func retainPod(desired, observed *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	var want, have corev1.Pod
	if err := decode(desired.Object, &want); err != nil {
		return nil, err
	}
	if err := decode(observed.Object, &have); err != nil {
		return nil, err
	}
	want.Spec.NodeName = have.Spec.NodeName
	want.Spec.ServiceAccountName = have.Spec.ServiceAccountName
	want.Spec.Volumes = have.Spec.Volumes
	retainMounts(want.Spec.Containers, have.Spec.Containers)
	retainMounts(want.Spec.InitContainers, have.Spec.InitContainers)
	tree, err := encode(&want)
	if err != nil {
		return nil, err
	}
	return &unstructured.Unstructured{Object: tree}, nil
}

func retainMounts(want, have []corev1.Container) {
	for i := range want {
		for j := range have {
			if want[i].Name == have[j].Name {
				want[i].VolumeMounts = have[j].VolumeMounts
				break
			}
		}
	}
}

func retainService(desired, observed *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	retained := desired.DeepCopy()
	have := child(observed.Object, "spec")
	if port := number(have, "healthCheckNodePort"); port > 0 {
		ensure(retained.Object, "spec")["healthCheckNodePort"] = port
	}
	if ip := text(have, "clusterIP"); ip != "" {
		ensure(retained.Object, "spec")["clusterIP"] = ip
	}
	return retained, nil
}

func retainServiceAccount(desired, observed *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	retained := desired.DeepCopy()
	for _, field := range []string{"secrets", "imagePullSecrets"} {
		retained.Object[field] = union(list(retained.Object, field), list(observed.Object, field))
	}
	return retained, nil
}

// union returns the references of want and those of have with new names; nil, as
// an untyped null, when there is none.
func union(want, have []any) any {
	all := want
	names := map[string]bool{}
	for _, ref := range want {
		m, _ := ref.(map[string]any)
		names[text(m, "name")] = true
	}
	for _, ref := range have {
		m, _ := ref.(map[string]any)
		if name := text(m, "name"); !names[name] {
			names[name] = true
			all = append(all, runtime.DeepCopyJSONValue(ref))
		}
	}
	if len(all) == 0 {
		return nil
	}
	return all
}

// retainFields returns the rule that takes fields of a map from the observed
// object when it has them.
func retainFields(when func(observed any) bool, path ...string) retainFunc {
	parents, field := path[:len(path)-1], path[len(path)-1]
	return func(desired, observed *unstructured.Unstructured) (*unstructured.Unstructured, error) {
		retained := desired.DeepCopy()
		value, ok := child(observed.Object, parents...)[field]
		if !ok || !when(value) {
			return retained, nil
		}
		parent := retained.Object
		for _, key := range parents {
			parent = ensure(parent, key)
		}
		parent[field] = runtime.DeepCopyJSONValue(value)
		return retained, nil
	}
}

func present(value any) bool { return value != nil }

func filled(value any) bool {
	s, _ := value.(string)
	return s != ""
}

func retainVolumeClaim(desired, observed *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	return retainFields(filled, "spec", "volumeName")(desired, observed)
}

func retainVolume(desired, observed *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	return retainFields(present, "spec", "claimRef")(desired, observed)
}

func retainJob(desired, observed *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	retained, err := retainFields(present, "spec", "selector", "matchLabels")(desired, observed)
	if err != nil {
		return nil, err
	}
	return retainFields(present, "spec", "template", "metadata", "labels")(retained, observed)
}

func retainSecret(desired, observed *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	if text(desired.Object, "type") != string(corev1.SecretTypeServiceAccountToken) {
		return desired.DeepCopy(), nil
	}
	return retainFields(present, "data")(desired, observed)
}

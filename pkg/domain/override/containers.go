package override

import (
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	policyv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/policy/v1alpha1"
)

// workload returns an empty object of the type of a well-known workload and the
// path of its containers, or nil for other kinds.
func workload(tree map[string]any) (any, []string) {
	apiVersion, _ := tree["apiVersion"].(string)
	kind, _ := tree["kind"].(string)
	group, _, grouped := strings.Cut(apiVersion, "/")
	if !grouped {
		group = ""
	}
	if group == corev1.GroupName && kind == "Pod" {
		return &corev1.Pod{}, []string{"spec", "containers"}
	}
	var typed any
	switch {
	case group == appsv1.GroupName && kind == "Deployment":
		typed = &appsv1.Deployment{}
	case group == appsv1.GroupName && kind == "ReplicaSet":
		typed = &appsv1.ReplicaSet{}
	case group == appsv1.GroupName && kind == "DaemonSet":
		typed = &appsv1.DaemonSet{}
	case group == appsv1.GroupName && kind == "StatefulSet":
		typed = &appsv1.StatefulSet{}
	case group == batchv1.GroupName && kind == "Job":
		typed = &batchv1.Job{}
	default:
		return nil, nil
	}
	return typed, []string{"spec", "template", "spec", "containers"}
}

// containersOf returns the containers of a well-known workload, none for other
// kinds. A workload that does not fit its type is an error.
func containersOf(tree map[string]any) ([]map[string]any, error) {
	typed, path := workload(tree)
	if typed == nil {
		return nil, nil
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(tree, typed); err != nil {
		return nil, fmt.Errorf("decoding %T: %w", typed, err)
	}
	m := tree
	for _, key := range path[:len(path)-1] {
		m, _ = m[key].(map[string]any)
	}
	list, _ := m[path[len(path)-1]].([]any)
	containers := make([]map[string]any, 0, len(list))
	for _, entry := range list {
		if c, ok := entry.(map[string]any); ok {
			containers = append(containers, c)
		}
	}
	return containers, nil
}

// allContainers returns the containers of the object. They are looked for again when something else may have changed.
func (r *run) allContainers() ([]map[string]any, error) {
	if r.known {
		return r.containers, r.budget.step(len(r.containers))
	}
	if err := r.budget.step(r.budget.size / 32); err != nil {
		return nil, err
	}
	containers, err := containersOf(r.obj.Object)
	if err != nil {
		return nil, err
	}
	r.containers, r.known = containers, true
	return containers, nil
}

// overrideWords changes the command or the arguments of a container.
func (r *run) overrideWords(field string, o *policyv1alpha1.CommandArgsOverrider) error {
	containers, err := r.allContainers()
	if err != nil {
		return err
	}
	for _, c := range containers {
		if name, _ := c["name"].(string); name != o.ContainerName {
			continue
		}
		words, _ := c[field].([]any)
		if err := r.accountWords(words, o); err != nil {
			return err
		}
		switch o.Operator {
		case policyv1alpha1.OverriderOpAdd:
			words = slices.Clone(words)
			for _, word := range o.Value {
				words = append(words, word)
			}
		case policyv1alpha1.OverriderOpRemove:
			words = slices.DeleteFunc(slices.Clone(words), func(word any) bool {
				s, ok := word.(string)
				return ok && slices.Contains(o.Value, s)
			})
		default:
			return fmt.Errorf("unknown operator %q", o.Operator)
		}
		if words == nil {
			words = []any{}
		}
		c[field] = words
	}
	return nil
}

// accountWords accounts for the words that are added to a list, or for the search for those that are removed. What is
// removed is not given back.
func (r *run) accountWords(words []any, o *policyv1alpha1.CommandArgsOverrider) error {
	if o.Operator == policyv1alpha1.OverriderOpRemove {
		return r.budget.step(len(words) * (1 + len(o.Value)))
	}
	if err := r.budget.step(len(words) + len(o.Value)); err != nil {
		return err
	}
	for _, word := range o.Value {
		if err := r.budget.replaceText("", word); err != nil {
			return err
		}
	}
	return nil
}

// overrideKeys changes the labels or the annotations of the object.
func (r *run) overrideKeys(field string, o *policyv1alpha1.LabelAnnotationOverrider) error {
	metadata, ok := r.obj.Object["metadata"].(map[string]any)
	if !ok {
		return fmt.Errorf("metadata is %T", r.obj.Object["metadata"])
	}
	keys, ok := metadata[field].(map[string]any)
	if !ok && metadata[field] != nil {
		return fmt.Errorf("metadata.%s is %T", field, metadata[field])
	}
	for key, value := range o.Value {
		before, present := keys[key]
		if err := r.accountKey(key, value, before, o.Operator); err != nil {
			return err
		}
		switch o.Operator {
		case policyv1alpha1.OverriderOpAdd:
			if keys == nil {
				keys = map[string]any{}
				metadata[field] = keys
			}
			keys[key] = value
		case policyv1alpha1.OverriderOpReplace:
			if present {
				keys[key] = value
			}
		case policyv1alpha1.OverriderOpRemove:
			delete(keys, key)
		default:
			return fmt.Errorf("unknown operator %q", o.Operator)
		}
	}
	return nil
}

// accountKey accounts for a label or an annotation that is written. What is removed is not given back.
func (r *run) accountKey(key, value string, before any, operator policyv1alpha1.OverriderOperator) error {
	if operator == policyv1alpha1.OverriderOpRemove {
		return r.budget.step(1)
	}
	old, _ := before.(string)
	return r.budget.replaceText(old, key+value)
}

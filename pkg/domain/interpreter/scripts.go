package interpreter

import (
	"cmp"
	"errors"
	"fmt"
	"hash/fnv"
	"reflect"
	"slices"
	"strconv"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	configv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/config/v1alpha1"
	workv1alpha2 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha2"
	"github.com/karmada-toolkit/karmada/pkg/domain/interpreter/lua"
)

func (s *scriptRules) getReplicas(obj *unstructured.Unstructured) (replicas int32, requirements *workv1alpha2.ReplicaRequirements, err error) {
	err = s.replicas.Call("GetReplicas", []any{obj.Object}, 2, func(results []lua.Value) error {
		n, ok := results[0].Number()
		if !ok {
			return fmt.Errorf("result type %s is not number", results[0].Type())
		}
		replicas = int32(int64(n))
		if results[1].IsNil() {
			return nil
		}
		if !results[1].IsTable() {
			return wantTable(results[1])
		}
		tree, err := results[1].Object(nil)
		if err != nil {
			return err
		}
		requirements = &workv1alpha2.ReplicaRequirements{}
		return decode(tree, requirements)
	})
	if err != nil {
		return 0, nil, err
	}
	return replicas, requirements, nil
}

func wantTable(v lua.Value) error {
	return fmt.Errorf("expect the returned requires type is table but got %s", v.Type())
}

func (s *scriptRules) getComponents(obj *unstructured.Unstructured) (components []workv1alpha2.Component, err error) {
	err = s.components.Call("GetComponents", []any{obj.Object}, 1, func(results []lua.Value) error {
		if results[0].IsNil() {
			return nil
		}
		if !results[0].IsTable() {
			return fmt.Errorf("expected result type 'table' or 'nil' from GetComponents, but got '%s'", results[0].Type())
		}
		components, err = decodeList[workv1alpha2.Component](results[0])
		return err
	})
	return components, err
}

// decodeList decodes a table that is a list of objects.
func decodeList[T any](v lua.Value) ([]T, error) {
	list, err := v.List()
	if err != nil {
		return nil, err
	}
	decoded := make([]T, len(list))
	for i, element := range list {
		tree, ok := element.(map[string]any)
		if !ok {
			return nil, fmt.Errorf("element %d is %T, not an object", i+1, element)
		}
		if err := decode(tree, &decoded[i]); err != nil {
			return nil, err
		}
	}
	return decoded, nil
}

// objectFrom runs a function that returns an object.
func objectFrom(script *lua.Script, function string, args []any, shapes lua.Shapes) (*unstructured.Unstructured, error) {
	var tree map[string]any
	err := script.Call(function, args, 1, func(results []lua.Value) (err error) {
		if !results[0].IsTable() {
			return wantTable(results[0])
		}
		tree, err = results[0].Object(shapes)
		return err
	})
	if err != nil {
		return nil, err
	}
	if text(tree, "kind") == "" {
		return nil, errors.New("the returned object has no kind")
	}
	return &unstructured.Unstructured{Object: tree}, nil
}

func (s *scriptRules) reviseReplica(obj *unstructured.Unstructured, replicas int64) (*unstructured.Unstructured, error) {
	return objectFrom(s.revise, "ReviseReplica", []any{obj.Object, replicas}, lua.ShapesOf(obj.Object))
}

func (s *scriptRules) retainObject(desired, observed *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	return objectFrom(s.retain, "Retain", []any{desired.Object, observed.Object}, lua.ShapesOf(desired.Object, observed.Object))
}

func (s *scriptRules) aggregateStatus(obj *unstructured.Unstructured, items []workv1alpha2.AggregatedStatusItem) (*unstructured.Unstructured, error) {
	list, err := itemTrees(items)
	if err != nil {
		return nil, err
	}
	return objectFrom(s.aggregate.For(clustersOf(items)), "AggregateStatus", []any{obj.Object, list}, nil)
}

// clustersOf returns a key for the clusters of items: a script that is slow on their
// statuses is paused for objects in the same clusters.
func clustersOf(items []workv1alpha2.AggregatedStatusItem) string {
	h := fnv.New64a()
	for i := range items {
		_, _ = h.Write([]byte(items[i].ClusterName + "/"))
	}
	return "aggregate " + strconv.FormatUint(h.Sum64(), 16)
}

// itemTrees returns the items as scripts see them; no items are nil.
func itemTrees(items []workv1alpha2.AggregatedStatusItem) (any, error) {
	if len(items) == 0 {
		return nil, nil
	}
	list := make([]any, len(items))
	for i := range items {
		it := &items[i]
		tree := map[string]any{"clusterName": it.ClusterName}
		if it.Status != nil && len(it.Status.Raw) > 0 {
			var status any
			if err := utiljson.Unmarshal(it.Status.Raw, &status); err != nil {
				return nil, fmt.Errorf("decoding the status of cluster %q: %w", it.ClusterName, err)
			}
			tree["status"] = status
		}
		if it.Applied {
			tree["applied"] = true
		}
		if it.AppliedMessage != "" {
			tree["appliedMessage"] = it.AppliedMessage
		}
		if it.Health != "" {
			tree["health"] = string(it.Health)
		}
		list[i] = tree
	}
	return list, nil
}

func (s *scriptRules) reflectStatus(obj *unstructured.Unstructured) (status *runtime.RawExtension, err error) {
	err = s.reflect.Call("ReflectStatus", []any{obj.Object}, 1, func(results []lua.Value) error {
		if !results[0].IsTable() {
			return fmt.Errorf("expect the returned replica type is table but got %s", results[0].Type())
		}
		tree, err := results[0].Plain(nil)
		if err != nil {
			return err
		}
		status, err = raw(tree)
		return err
	})
	return status, err
}

// interpretHealth takes nothing returned for not healthy.
func (s *scriptRules) interpretHealth(obj *unstructured.Unstructured) (healthy bool, err error) {
	err = s.health.Call("InterpretHealth", []any{obj.Object}, 1, func(results []lua.Value) error {
		if results[0].IsNil() {
			return nil
		}
		b, ok := results[0].Bool()
		if !ok {
			return fmt.Errorf("result type %s is not bool", results[0].Type())
		}
		healthy = b
		return nil
	})
	return healthy, err
}

// getDependencies returns what the scripts find together.
func (s *scriptRules) getDependencies(obj *unstructured.Unstructured) ([]configv1alpha1.DependentObjectReference, error) {
	var all []configv1alpha1.DependentObjectReference
	for _, script := range s.dependencies {
		err := script.Call("GetDependencies", []any{obj.Object}, 1, func(results []lua.Value) error {
			if !results[0].IsTable() {
				return wantTable(results[0])
			}
			found, err := decodeList[configv1alpha1.DependentObjectReference](results[0])
			for _, d := range found {
				if !slices.ContainsFunc(all, func(have configv1alpha1.DependentObjectReference) bool { return reflect.DeepEqual(have, d) }) {
					all = append(all, d)
				}
			}
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	slices.SortStableFunc(all, func(a, b configv1alpha1.DependentObjectReference) int {
		return cmp.Or(cmp.Compare(a.APIVersion, b.APIVersion), cmp.Compare(a.Kind, b.Kind),
			cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	return all, nil
}

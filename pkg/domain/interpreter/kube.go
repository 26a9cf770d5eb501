package interpreter

import (
	"errors"
	"fmt"
	"strconv"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/clock"

	"github.com/karmada-toolkit/karmada/internal/quantity"
	"github.com/karmada-toolkit/karmada/pkg/domain/interpreter/lua"
)

// NewLuaEngine returns an engine whose scripts can load the kube library.
func NewLuaEngine(limits lua.Limits) *lua.Engine {
	return lua.NewEngine(limits, clock.RealClock{}.Now, map[string]lua.Module{"kube": {
		"resourceAdd":             resourceAdd,
		"accuratePodRequirements": accuratePodRequirements,
		"getPodDependencies":      getPodDependencies,
		"getResourceQuantity":     getResourceQuantity,
	}})
}

func parseQuantity(arg any) (resource.Quantity, error) {
	switch q := arg.(type) {
	case nil:
		return resource.Quantity{}, nil
	case string:
		return quantity.Parse(q)
	}
	return resource.Quantity{}, fmt.Errorf("want a string, got %T", arg)
}

// resourceAdd sums quantities.
func resourceAdd(args []any) (any, error) {
	var sum resource.Quantity
	for _, arg := range args {
		q, err := parseQuantity(arg)
		if err != nil {
			return nil, err
		}
		sum.Add(q)
	}
	return sum.String(), nil
}

// getResourceQuantity returns a quantity as a number.
func getResourceQuantity(args []any) (any, error) {
	if len(args) != 1 {
		return nil, errors.New("want one argument")
	}
	q, err := parseQuantity(args[0])
	if err != nil {
		return nil, err
	}
	if q.Sign() < 0 {
		return nil, fmt.Errorf("%s is negative", q.String())
	}
	return q.AsApproximateFloat64(), nil
}

// accuratePodRequirements returns what a pod of a template needs, or nil.
func accuratePodRequirements(args []any) (any, error) {
	if len(args) != 1 {
		return nil, errors.New("want one argument")
	}
	template, ok := args[0].(map[string]any)
	if !ok {
		return nil, fmt.Errorf("want a pod template, got %T", args[0])
	}
	var spec podSpec
	if err := decode(child(template, "spec"), &spec); err != nil {
		return nil, err
	}
	requirements := podRules{}.requirements(&spec)
	if requirements == nil {
		return nil, nil
	}
	tree, err := encode(requirements)
	if err != nil {
		return nil, err
	}
	return tree, nil
}

// getPodDependencies returns what a pod of a template refers to, or nil.
func getPodDependencies(args []any) (any, error) {
	if len(args) != 2 {
		return nil, errors.New("want two arguments")
	}
	template, ok := args[0].(map[string]any)
	if !ok {
		return nil, fmt.Errorf("want a pod template, got %T", args[0])
	}
	namespace := "default"
	switch n := args[1].(type) {
	case nil:
	case string:
		namespace = n
	case int64:
		namespace = strconv.FormatInt(n, 10)
	default:
		return nil, fmt.Errorf("want a namespace, got %T", args[1])
	}
	var refs []any
	for _, d := range PodDependencies(child(template, "spec"), namespace) {
		refs = append(refs, map[string]any{
			"apiVersion": d.APIVersion, "kind": d.Kind, "namespace": d.Namespace, "name": d.Name,
		})
	}
	if refs == nil {
		return nil, nil
	}
	return refs, nil
}

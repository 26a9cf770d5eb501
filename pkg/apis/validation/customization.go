package validation

import (
	"fmt"

	"k8s.io/apimachinery/pkg/runtime/schema"

	configv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/config/v1alpha1"
)

// Script is the script of a customization for one operation.
type Script struct {
	Operation configv1alpha1.InterpreterOperation
	Lua       string
}

// Scripts returns the scripts of a customization in the order in which they are
// checked; empty ones are left out.
func Scripts(rules *configv1alpha1.CustomizationRules) []Script {
	var out []Script
	add := func(operation configv1alpha1.InterpreterOperation, lua string) {
		if lua != "" {
			out = append(out, Script{operation, lua})
		}
	}
	if r := rules.Retention; r != nil {
		add(configv1alpha1.InterpreterOperationRetain, r.LuaScript)
	}
	if r := rules.ReplicaResource; r != nil {
		add(configv1alpha1.InterpreterOperationInterpretReplica, r.LuaScript)
	}
	if r := rules.ComponentResource; r != nil {
		add(configv1alpha1.InterpreterOperationInterpretComponent, r.LuaScript)
	}
	if r := rules.ReplicaRevision; r != nil {
		add(configv1alpha1.InterpreterOperationReviseReplica, r.LuaScript)
	}
	if r := rules.StatusReflection; r != nil {
		add(configv1alpha1.InterpreterOperationInterpretStatus, r.LuaScript)
	}
	if r := rules.StatusAggregation; r != nil {
		add(configv1alpha1.InterpreterOperationAggregateStatus, r.LuaScript)
	}
	if r := rules.HealthInterpretation; r != nil {
		add(configv1alpha1.InterpreterOperationInterpretHealth, r.LuaScript)
	}
	if r := rules.DependencyInterpretation; r != nil {
		add(configv1alpha1.InterpreterOperationInterpretDependency, r.LuaScript)
	}
	return out
}

// ValidateCustomization checks that no other customization has a script for the
// same kind and operation, and that every script compiles. Several
// customizations may name dependencies of one kind: they add up.
func ValidateCustomization(c *configv1alpha1.ResourceInterpreterCustomization, others []configv1alpha1.ResourceInterpreterCustomization, compile func(lua string) error) error {
	scripts := Scripts(&c.Spec.Customizations)
	for i := range others {
		other := &others[i]
		if other.Name == c.Name || other.Spec.Target != c.Spec.Target {
			continue
		}
		taken := map[configv1alpha1.InterpreterOperation]bool{}
		for _, s := range Scripts(&other.Spec.Customizations) {
			taken[s.Operation] = s.Operation != configv1alpha1.InterpreterOperationInterpretDependency
		}
		for _, s := range scripts {
			if taken[s.Operation] {
				return fmt.Errorf("conflicting with InterpreterOperation(%s) of existing ResourceInterpreterCustomization(%s)", s.Operation, other.Name)
			}
		}
	}
	target := schema.FromAPIVersionAndKind(c.Spec.Target.APIVersion, c.Spec.Target.Kind).GroupKind()
	for _, s := range scripts {
		if err := CheckCustomizable(target, s.Operation); err != nil {
			return err
		}
		if err := compile(s.Lua); err != nil {
			return fmt.Errorf("InterpreterOperation(%s) Lua script error: %w", s.Operation, err)
		}
	}
	return nil
}

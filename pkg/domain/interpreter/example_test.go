package interpreter_test

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	configv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/config/v1alpha1"
	"github.com/karmada-toolkit/karmada/pkg/domain/interpreter"
	"github.com/karmada-toolkit/karmada/pkg/domain/interpreter/lua"
)

func ExampleInterpreter_GetReplicas() {
	deployment := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apps/v1", "kind": "Deployment", "metadata": map[string]any{"name": "web"},
		"spec": map[string]any{"replicas": int64(3), "template": map[string]any{"spec": map[string]any{"containers": []any{
			map[string]any{"name": "web", "resources": map[string]any{"requests": map[string]any{"cpu": "100m"}}},
		}}}},
	}}
	replicas, requirements, err := interpreter.New().GetReplicas(deployment)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(replicas, requirements.ResourceRequest.Cpu())
	// Output: 3 100m
}

func ExampleDeclarative() {
	workflows := &configv1alpha1.ResourceInterpreterCustomization{
		ObjectMeta: metav1.ObjectMeta{Name: "workflows"},
		Spec: configv1alpha1.ResourceInterpreterCustomizationSpec{
			Target: configv1alpha1.CustomizationTarget{APIVersion: "example.io/v1", Kind: "Workflow"},
			Customizations: configv1alpha1.CustomizationRules{
				HealthInterpretation: &configv1alpha1.HealthInterpretation{LuaScript: `
function InterpretHealth(observedObj)
  return observedObj.status ~= nil and observedObj.status.phase == "Succeeded"
end`},
			},
		},
	}
	layer := interpreter.NewDeclarative(interpreter.NewLuaEngine(lua.DefaultLimits()))
	layer.Load([]*configv1alpha1.ResourceInterpreterCustomization{workflows})
	in := interpreter.New(interpreter.WithLayer(layer))

	workflow := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "example.io/v1", "kind": "Workflow", "status": map[string]any{"phase": "Succeeded"},
	}}
	fmt.Println(in.InterpretHealth(workflow))
	// Output: true <nil>
}

package interpreter

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	configv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/config/v1alpha1"
	workv1alpha2 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha2"
	"github.com/karmada-toolkit/karmada/pkg/domain/interpreter/lua"
)

func parse(t testing.TB, text string) *unstructured.Unstructured {
	t.Helper()
	data, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	obj := &unstructured.Unstructured{}
	if err := obj.UnmarshalJSON(data); err != nil {
		t.Fatal(err)
	}
	return obj
}

const deploymentYAML = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: nginx, namespace: default, generation: 2, labels: {app: nginx}, annotations: {resourcetemplate.karmada.io/generation: "2"}}
spec:
  replicas: 2
  selector: {matchLabels: {app: nginx}}
  template:
    metadata: {labels: {app: nginx}}
    spec:
      containers:
      - {name: nginx, image: nginx, resources: {requests: {cpu: 100m, memory: 64Mi}}}
status: {observedGeneration: 2, replicas: 2, updatedReplicas: 2, readyReplicas: 2, availableReplicas: 2}
`

// BenchmarkDeployment counts one replica interpretation, one status collection
// and one aggregation over two clusters as one operation.
func BenchmarkDeployment(b *testing.B) {
	in, obj := New(), parse(b, deploymentYAML)
	status := &runtime.RawExtension{Raw: []byte(`{"observedGeneration":2,"generation":2,"resourceTemplateGeneration":2,"replicas":1,"updatedReplicas":1,"readyReplicas":1,"availableReplicas":1}`)}
	items := []workv1alpha2.AggregatedStatusItem{
		{ClusterName: "m1", Status: status, Applied: true}, {ClusterName: "m2", Status: status, Applied: true},
	}
	b.Run("GetReplicas", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, _, err := in.GetReplicas(obj); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("ReflectStatus", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := in.ReflectStatus(obj); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("AggregateStatus", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := in.AggregateStatus(obj, items); err != nil {
				b.Fatal(err)
			}
		}
	})
}

const customizationYAML = `
metadata: {name: deployments}
spec:
  target: {apiVersion: apps/v1, kind: Deployment}
  customizations:
    replicaResource:
      luaScript: |
        local kube = require("kube")
        function GetReplicas(desiredObj)
          return desiredObj.spec.replicas, kube.accuratePodRequirements(desiredObj.spec.template)
        end
    statusReflection:
      luaScript: |
        function ReflectStatus(observedObj)
          local status = {}
          if observedObj.status == nil then return status end
          status.replicas = observedObj.status.replicas
          status.readyReplicas = observedObj.status.readyReplicas
          status.observedGeneration = observedObj.status.observedGeneration
          status.generation = observedObj.metadata.generation
          status.resourceTemplateGeneration = tonumber(observedObj.metadata.annotations["resourcetemplate.karmada.io/generation"])
          return status
        end
    statusAggregation:
      luaScript: |
        function AggregateStatus(desiredObj, statusItems)
          local replicas, ready = 0, 0
          for i = 1, #statusItems do
            local status = statusItems[i].status
            if status ~= nil then
              replicas = replicas + (status.replicas or 0)
              ready = ready + (status.readyReplicas or 0)
            end
          end
          desiredObj.status = {replicas = replicas, readyReplicas = ready}
          return desiredObj
        end
    healthInterpretation:
      luaScript: |
        function InterpretHealth(observedObj)
          return observedObj.status.observedGeneration == observedObj.metadata.generation
        end
`

func BenchmarkLua(b *testing.B) {
	var c configv1alpha1.ResourceInterpreterCustomization
	if err := yaml.UnmarshalStrict([]byte(customizationYAML), &c); err != nil {
		b.Fatal(err)
	}
	layer := NewDeclarative(NewLuaEngine(lua.DefaultLimits()))
	layer.Load([]*configv1alpha1.ResourceInterpreterCustomization{&c})
	in, obj := New(WithLayer(layer)), parse(b, deploymentYAML)
	status := &runtime.RawExtension{Raw: []byte(`{"observedGeneration":2,"generation":2,"resourceTemplateGeneration":2,"replicas":1,"updatedReplicas":1,"readyReplicas":1,"availableReplicas":1}`)}
	items := []workv1alpha2.AggregatedStatusItem{
		{ClusterName: "m1", Status: status, Applied: true}, {ClusterName: "m2", Status: status, Applied: true},
	}
	for name, run := range map[string]func() error{
		"GetReplicas":     func() error { _, _, err := in.GetReplicas(obj); return err },
		"ReflectStatus":   func() error { _, err := in.ReflectStatus(obj); return err },
		"AggregateStatus": func() error { _, err := in.AggregateStatus(obj, items); return err },
		"InterpretHealth": func() error { _, err := in.InterpretHealth(obj); return err },
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if err := run(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

package interpreter

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	workv1alpha2 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha2"
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

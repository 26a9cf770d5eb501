package plan

import (
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	interpreter "github.com/karmada-toolkit/karmada/plugins/interpreter"
)

const deployment = `
apiVersion: apps/v1
kind: Deployment
metadata: {namespace: ns, name: NAME}
spec:
  replicas: 4
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: web, image: nginx:1.19.0, resources: {requests: {cpu: 10m}}}]}
`

// large is a world in which n Deployments with a policy each are in the first two of some clusters.
func large(b *testing.B, n, clusters int) (*World, []*unstructured.Unstructured) {
	b.Helper()
	w := world(b).copied()
	one := w.Clusters[0]
	w.Clusters, w.Templates = nil, nil
	var err error
	if w.Interpreter, err = interpreter.NewOffline(nil); err != nil {
		b.Fatal(err)
	}
	for i := range clusters {
		c := one.DeepCopy()
		c.Name = fmt.Sprintf("m%02d", i)
		w.Clusters = append(w.Clusters, c)
	}
	var manifests []*unstructured.Unstructured
	for i := range n {
		name := fmt.Sprintf("web-%d", i)
		for _, text := range []string{
			strings.Replace(deployment, "NAME", name, 1),
			strings.NewReplacer("name: web", "name: "+name, "permanent-id: web", "permanent-id: "+name).Replace(webPolicy("m00, m01, m02", "")),
		} {
			manifests = append(manifests, object(b, text))
		}
	}
	return w, manifests
}

// at returns the world after all manifests were applied.
func at(b *testing.B, w *World, manifests []*unstructured.Unstructured) *World {
	b.Helper()
	m := NewManifests(func(string) {})
	for _, u := range manifests {
		if err := m.Apply(u)(w); err != nil {
			b.Fatal(err)
		}
	}
	return propagatedIn(b, w)
}

// BenchmarkPlan_Apply plans the first apply of 500 objects in 20 clusters.
func BenchmarkPlan_Apply(b *testing.B) {
	w, _ := large(b, 0, 20)
	manifests := []*unstructured.Unstructured{object(b, "apiVersion: policy.karmada.io/v1alpha1\nkind: PropagationPolicy\nmetadata: {namespace: ns, name: all}\n"+
		"spec: {resourceSelectors: [{apiVersion: apps/v1, kind: Deployment}], placement: {}}")}
	for i := range 499 {
		manifests = append(manifests, object(b, strings.Replace(deployment, "NAME", fmt.Sprintf("web-%d", i), 1)))
	}
	for b.Loop() {
		m := NewManifests(func(string) {})
		var changes []Change
		for _, u := range manifests {
			changes = append(changes, m.Apply(u))
		}
		e, err := Plan(w, changes)
		if err != nil {
			b.Fatal(err)
		}
		if e.Summary.Create != 499*20 {
			b.Fatal(e.Summary)
		}
	}
}

// BenchmarkPlan_Lose plans the loss of a cluster that has 5,000 objects, of 50 clusters.
func BenchmarkPlan_Lose(b *testing.B) {
	w, manifests := large(b, 5000, 50)
	w = at(b, w, manifests)
	w.changed, w.touched = nil, false
	w.Clusters[0].Spec.Taints = nil
	b.ResetTimer()
	for b.Loop() {
		e, err := Plan(w, []Change{Unjoin(w.Clusters[0].Name)})
		if err != nil {
			b.Fatal(err)
		}
		if e.Summary.Objects != 5000 {
			b.Fatal(e.Summary)
		}
	}
}

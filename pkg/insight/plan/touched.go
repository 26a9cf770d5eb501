package plan

import (
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"

	searchv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/search/v1alpha1"
	"github.com/karmada-toolkit/karmada/pkg/domain/match"
)

// touches returns what depends on a template that changes: the autoscalers that scale it, and the Services that select its pods or span
// clusters under its name.
func (w *World) touches(k key) []string {
	var out []string
	pods, _, _ := unstructured.NestedStringMap(w.templates[k].Object, "spec", "template", "metadata", "labels")
	for _, r := range w.Related {
		if r.GetNamespace() != k.namespace {
			continue
		}
		kind, _, _ := unstructured.NestedString(r.Object, "spec", "scaleTargetRef", "kind")
		name, _, _ := unstructured.NestedString(r.Object, "spec", "scaleTargetRef", "name")
		if kind == k.Kind && name == k.name || r.GetKind() == "MultiClusterService" && k.Kind == "Service" && r.GetName() == k.name {
			out = append(out, keyOf(r).String())
		}
	}
	if len(pods) == 0 {
		return out
	}
	for _, s := range w.services[k.namespace] {
		selector, _, _ := unstructured.NestedStringMap(s.Object, "spec", "selector")
		if len(selector) > 0 && labels.SelectorFromSet(selector).Matches(labels.Set(pods)) {
			out = append(out, keyOf(s).String())
		}
	}
	return out
}

// registries returns the ResourceRegistries that cache objects of a cluster that is lost or removed.
func (w *World) registries() []string {
	var out []string
	for _, r := range w.Related {
		registry := &searchv1alpha1.ResourceRegistry{}
		if r.GetKind() != "ResourceRegistry" || runtime.DefaultUnstructuredConverter.FromUnstructured(r.Object, registry) != nil {
			continue
		}
		for _, c := range w.Clusters {
			if (w.lost[c.Name] || c.DeletionTimestamp != nil) && match.Cluster(c, &registry.Spec.TargetCluster) {
				out = append(out, fmt.Sprintf("ResourceRegistry %s caches objects of cluster %s", r.GetName(), c.Name))
			}
		}
	}
	return out
}

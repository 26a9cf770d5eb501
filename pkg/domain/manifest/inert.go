package manifest

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	workv1alpha2 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha2"
)

// inertCondition names the match condition, and the key of the selector, that nothing matches.
const inertCondition = "inert.propagation.karmada.io"

// MayAct reports whether objects of a kind are among those that Deactivate changes.
func MayAct(k schema.GroupKind) bool {
	switch k.Group {
	case "admissionregistration.k8s.io", "apiextensions.k8s.io", "apiregistration.k8s.io":
		return true
	}
	return k == schema.GroupKind{Group: "scheduling.k8s.io", Kind: "PriorityClass"}
}

// ActsHere reports whether objects of a kind act on the control plane as they do on members, and stay as they are: they give
// rights there, or limit what is stored there.
func ActsHere(k schema.GroupKind) bool {
	switch k.Group {
	case "rbac.authorization.k8s.io", "flowcontrol.apiserver.k8s.io":
		return true
	case "":
		return k.Kind == "ResourceQuota" || k.Kind == "LimitRange"
	}
	return false
}

// Deactivate changes a template in place so that it does not act on the API server of the control plane, which holds it for the
// members only, and reports whether it had to. Reactivate undoes it. See docs/charts.md for what happens with each kind.
//
//   - Webhooks and admission policies get a match condition that is false, the bindings of policies a selector that nothing has.
//   - A CustomResourceDefinition converts without its webhook, an APIService has no Service, and a PriorityClass is not the
//     default. The annotation InertAnnotation keeps what was taken out.
//
// An object with the annotation KeepActiveAnnotation is reactivated instead.
func Deactivate(obj *unstructured.Unstructured) bool {
	if obj.GetAnnotations()[workv1alpha2.KeepActiveAnnotation] == "true" {
		return Reactivate(obj)
	}
	k := kindOf(obj.Object)
	kept := takeOut(k, obj.Object)
	if !addConditions(k, obj.Object) && len(kept) == 0 {
		return false
	}
	data, err := json.Marshal(kept)
	if err != nil { // it was decoded from JSON
		panic(err)
	}
	ensure(ensure(obj.Object, "metadata"), "annotations")[workv1alpha2.InertAnnotation] = string(data)
	return true
}

// maxMatchConditions is the most that an API server accepts for a webhook or an admission policy.
const maxMatchConditions = 64

// CannotDeactivate returns why an API server does not accept what Deactivate makes of a template, or "".
func CannotDeactivate(obj *unstructured.Unstructured) string {
	after := obj.DeepCopy()
	if kindOf(obj.Object).group != "admissionregistration.k8s.io" || !Deactivate(after) {
		return ""
	}
	for _, hook := range append(mapsOf(after.Object["webhooks"]), child(after.Object, "spec")) {
		if conditions, _ := hook["matchConditions"].([]any); len(conditions) > maxMatchConditions {
			return fmt.Sprintf("%s %q has %d match conditions, which leaves no room for the one that keeps it from acting on the control plane: remove one, or set the annotation %s: \"true\" to have it act there too",
				obj.GetKind(), obj.GetName(), maxMatchConditions, workv1alpha2.KeepActiveAnnotation)
		}
	}
	return ""
}

// addConditions adds what nothing matches to webhooks, admission policies and their bindings.
func addConditions(k kind, obj map[string]any) bool {
	if k.group != "admissionregistration.k8s.io" {
		return false
	}
	switch {
	case strings.HasSuffix(k.kind, "AdmissionPolicy"):
		return addCondition(ensure(obj, "spec"))
	case strings.HasSuffix(k.kind, "AdmissionPolicyBinding"):
		return addExpressions(ensure(ensure(ensure(obj, "spec"), "matchResources"), "objectSelector"))
	}
	changed := false
	for _, hook := range mapsOf(obj["webhooks"]) {
		changed = addCondition(hook) || changed
	}
	return changed
}

// takeOut removes the fields that act, and returns them.
func takeOut(k kind, obj map[string]any) map[string]any {
	kept, spec := map[string]any{}, child(obj, "spec")
	switch k {
	case kind{"apiextensions.k8s.io", "CustomResourceDefinition"}:
		if conversion := child(spec, "conversion"); conversion["strategy"] == "Webhook" {
			kept["conversion"], spec["conversion"] = conversion, map[string]any{"strategy": "None"}
		}
	case kind{"apiregistration.k8s.io", "APIService"}:
		if spec["service"] == nil {
			break
		}
		for _, field := range apiServiceFields() {
			if value := spec[field]; value != nil {
				kept[field] = value
				delete(spec, field)
			}
		}
	case kind{"scheduling.k8s.io", "PriorityClass"}:
		if obj["globalDefault"] == true {
			kept["globalDefault"], obj["globalDefault"] = true, false
		}
	}
	return kept
}

// apiServiceFields are the fields of an APIService that lead to another server.
func apiServiceFields() []string { return []string{"service", "caBundle", "insecureSkipTLSVerify"} }

// Reactivate undoes Deactivate in place, and reports whether it had to. Of the annotation, which users can write, it takes only
// the fields that Deactivate keeps, and only where the object lacks them.
func Reactivate(obj *unstructured.Unstructured) bool {
	annotations := child(child(obj.Object, "metadata"), "annotations")
	text, inert := annotations[workv1alpha2.InertAnnotation].(string)
	if !inert {
		return false
	}
	delete(annotations, workv1alpha2.InertAnnotation)
	kept := map[string]any{}
	if json.Unmarshal([]byte(text), &kept) != nil {
		kept = map[string]any{}
	}
	k, spec := kindOf(obj.Object), child(obj.Object, "spec")
	if k.group == "admissionregistration.k8s.io" {
		for _, hook := range append(mapsOf(obj.Object["webhooks"]), spec) {
			removeConditions(hook, "matchConditions", "name")
		}
		removeConditions(child(child(spec, "matchResources"), "objectSelector"), "matchExpressions", "key")
		return true
	}
	putBack(k, obj.Object, kept)
	return true
}

// putBack undoes takeOut.
func putBack(k kind, obj, kept map[string]any) {
	spec := child(obj, "spec")
	switch k {
	case kind{"apiextensions.k8s.io", "CustomResourceDefinition"}:
		if conversion := child(kept, "conversion"); spec != nil && conversion != nil && child(spec, "conversion")["strategy"] != "Webhook" {
			spec["conversion"] = conversion
		}
	case kind{"apiregistration.k8s.io", "APIService"}:
		if spec == nil || spec["service"] != nil {
			break
		}
		for _, field := range apiServiceFields() {
			if value, ok := kept[field]; ok {
				spec[field] = value
			}
		}
	case kind{"scheduling.k8s.io", "PriorityClass"}:
		if kept["globalDefault"] == true {
			obj["globalDefault"] = true
		}
	}
}

// mapsOf returns the maps of a list.
func mapsOf(list any) []map[string]any {
	items, _ := list.([]any)
	out := make([]map[string]any, 0, len(items))
	for _, item := range items {
		if m, ok := item.(map[string]any); ok {
			out = append(out, m)
		}
	}
	return out
}

// addCondition adds the match condition unless it is there.
func addCondition(to map[string]any) bool {
	return addAll(to, "matchConditions", map[string]any{"name": inertCondition, "expression": "false"})
}

// addExpressions adds two requirements to a selector that exclude each other.
func addExpressions(selector map[string]any) bool {
	return addAll(selector, "matchExpressions",
		map[string]any{"key": inertCondition, "operator": "Exists"}, map[string]any{"key": inertCondition, "operator": "DoesNotExist"})
}

func addAll(to map[string]any, field string, items ...any) bool {
	have, _ := to[field].([]any)
	before := len(have)
	for _, item := range items {
		if !slices.ContainsFunc(have, func(other any) bool {
			m, ok := other.(map[string]any)
			return ok && maps.Equal(m, item.(map[string]any))
		}) {
			have = append(slices.Clip(have), runtime.DeepCopyJSONValue(item))
		}
	}
	if len(have) > before {
		to[field] = have
	}
	return len(have) > before
}

// removeConditions removes the items of a list that Deactivate added.
func removeConditions(from map[string]any, field, key string) {
	have, ok := from[field].([]any)
	if !ok {
		return
	}
	kept := slices.DeleteFunc(slices.Clone(have), func(item any) bool {
		m, _ := item.(map[string]any)
		return m[key] == inertCondition
	})
	if from[field] = kept; len(kept) == 0 {
		delete(from, field)
	}
}

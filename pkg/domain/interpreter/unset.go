package interpreter

import (
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// restartedAt is the annotation that "kubectl rollout restart" sets.
const restartedAt = "kubectl.kubernetes.io/restartedAt"

// RetainUnset changes desired in place: it takes over the fields of observed that a template of the kind leaves to the cluster,
// where desired leaves them out. Admission, an allocator or a controller of the cluster sets them; writing the object without
// them would take them away, and the cluster would set them again, or refuse that because they are immutable. It comes after
// Retain, whatever rules there are for the kind. docs/charts.md has the table.
func RetainUnset(desired, observed *unstructured.Unstructured) {
	gk := desired.GroupVersionKind().GroupKind()
	for _, path := range unsetFields(gk) {
		retainPath(desired.Object, observed.Object, strings.Split(path, "."))
	}
	switch gk {
	case schema.GroupKind{Group: "rbac.authorization.k8s.io", Kind: "ClusterRole"}:
		if rules, ok := observed.Object["rules"]; ok && desired.Object["aggregationRule"] != nil {
			desired.Object["rules"] = runtime.DeepCopyJSONValue(rules)
		}
	case schema.GroupKind{Group: "apps", Kind: "Deployment"}, schema.GroupKind{Group: "apps", Kind: "StatefulSet"}, schema.GroupKind{Group: "apps", Kind: "DaemonSet"}:
		retainRestart(desired.Object, observed.Object)
	}
}

// unsetFields returns the fields of a kind that are retained where the manifest leaves them out, as paths. A segment in brackets
// is the key of the items of a list, of which those with the same key are compared; "name+" also takes items over that the
// manifest does not have, in their place. "*" stands for every field.
func unsetFields(gk schema.GroupKind) []string {
	switch gk {
	case schema.GroupKind{Kind: "Service"}:
		return []string{
			"spec.ports.[name].nodePort", "spec.ports.[port].nodePort", "spec.ipFamilies", "spec.ipFamilyPolicy", "spec.loadBalancerClass",
		}
	case schema.GroupKind{Kind: "PersistentVolumeClaim"}:
		return []string{"spec.storageClassName", "spec.volumeMode", "spec.volumeAttributesClassName"}
	case schema.GroupKind{Kind: "PersistentVolume"}:
		return []string{"spec.nodeAffinity", "spec.volumeMode", "spec.volumeAttributesClassName"}
	case schema.GroupKind{Kind: "Pod"}:
		return podFields()
	case schema.GroupKind{Group: "networking.k8s.io", Kind: "Ingress"}:
		return []string{"spec.ingressClassName"}
	case schema.GroupKind{Group: "admissionregistration.k8s.io", Kind: "ValidatingWebhookConfiguration"},
		schema.GroupKind{Group: "admissionregistration.k8s.io", Kind: "MutatingWebhookConfiguration"}:
		return []string{"webhooks.[name].clientConfig.caBundle"}
	case schema.GroupKind{Group: "apiregistration.k8s.io", Kind: "APIService"}:
		return []string{"spec.caBundle"} // refused together with insecureSkipTLSVerify
	case schema.GroupKind{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"}:
		return []string{"spec.conversion.webhook.clientConfig.caBundle"}
	case schema.GroupKind{Group: "certificates.k8s.io", Kind: "CertificateSigningRequest"}:
		return []string{"spec.username", "spec.uid", "spec.groups", "spec.extra"}
	}
	return nil
}

// confine returns desired with those certificates of observed that a customized rule retained, whatever else it changed: what
// registers with an API server directs requests.
func confine(desired, retained, observed *unstructured.Unstructured) *unstructured.Unstructured {
	out := desired.DeepCopy()
	for _, path := range unsetFields(desired.GroupVersionKind().GroupKind()) {
		keepSame(out.Object, retained.Object, observed.Object, strings.Split(path, "."))
	}
	return out
}

// keepSame sets what a path leads to, if two other objects have the same there.
func keepSame(into, a, b map[string]any, path []string) {
	field := path[0]
	if len(path) == 1 {
		if value := text(a, field); value != "" && value == text(b, field) {
			into[field] = value
		}
		return
	}
	if key, ok := strings.CutPrefix(path[1], "["); ok {
		key = strings.TrimSuffix(key, "]")
		for _, item := range list(into, field) {
			want, _ := item.(map[string]any)
			x, y := itemWith(list(a, field), key, want[key]), itemWith(list(b, field), key, want[key])
			if x != nil && y != nil {
				keepSame(want, x, y, path[2:])
			}
		}
		return
	}
	if next := child(into, field); next != nil {
		keepSame(next, child(a, field), child(b, field), path[1:])
	}
}

// podFields are those that admission of a cluster sets, webhooks of service meshes included: they are immutable.
func podFields() []string {
	out := []string{
		"spec.priority", "spec.priorityClassName", "spec.preemptionPolicy", "spec.overhead", "spec.runtimeClassName", "spec.nodeSelector", "spec.nodeSelector.*",
		"spec.tolerations.[]", "spec.imagePullSecrets", "spec.serviceAccount", "spec.securityContext", "spec.hostUsers", "spec.volumes.[name+]",
	}
	for _, list := range []string{"spec.initContainers", "spec.containers"} {
		out = append(out, list+".[name+]")
		for _, field := range []string{
			"securityContext", "env.[name+]", "volumeMounts", "resources",
			"resources.limits", "resources.requests", "resources.limits.*", "resources.requests.*",
		} {
			out = append(out, list+".[name]."+field)
		}
	}
	return out
}

// retainPath takes over what a path leads to. Only the last field of a path is made.
func retainPath(desired, observed map[string]any, path []string) {
	field := path[0]
	switch {
	case field == "*":
		for key := range observed {
			retainField(desired, observed, key)
		}
		return
	case len(path) == 1:
		retainField(desired, observed, field)
		return
	}
	if key, ok := strings.CutPrefix(path[1], "["); ok {
		retainList(desired, observed, field, strings.TrimSuffix(key, "]"), path[2:])
		return
	}
	want, _ := desired[field].(map[string]any)
	have, _ := observed[field].(map[string]any)
	if want != nil && have != nil {
		retainPath(want, have, path[1:])
	}
}

func retainField(desired, observed map[string]any, field string) {
	if field == "caBundle" && desired["insecureSkipTLSVerify"] == true {
		return
	}
	if value := observed[field]; !unset(field, value) && unset(field, desired[field]) {
		desired[field] = runtime.DeepCopyJSONValue(value)
	}
}

// retainList takes over what a path leads to in the items of a list.
func retainList(desired, observed map[string]any, field, key string, path []string) {
	if key == "" {
		want := list(desired, field)
		for _, item := range list(observed, field) {
			if !slices.ContainsFunc(want, func(mine any) bool { return equality.Semantic.DeepEqual(mine, item) }) {
				want = append(slices.Clip(want), runtime.DeepCopyJSONValue(item))
			}
		}
		if len(want) > 0 {
			desired[field] = want
		}
		return
	}
	if key, ok := strings.CutSuffix(key, "+"); ok {
		retainItems(desired, observed, field, key)
		return
	}
	for _, item := range list(desired, field) {
		want, _ := item.(map[string]any)
		if have := itemWith(list(observed, field), key, want[key]); have != nil {
			retainPath(want, have, path)
		}
	}
}

// retainItems takes over the items of a list that the manifest does not have, in the order that the cluster has.
func retainItems(desired, observed map[string]any, field, key string) {
	want, have := list(desired, field), list(observed, field)
	if len(have) == 0 {
		return
	}
	merged := make([]any, 0, len(have))
	for _, item := range have {
		m, _ := item.(map[string]any)
		if mine := itemWith(want, key, m[key]); mine != nil {
			merged = append(merged, mine)
		} else if text(m, key) != "" {
			merged = append(merged, runtime.DeepCopyJSONValue(item))
		}
	}
	for _, item := range want {
		if m, _ := item.(map[string]any); itemWith(have, key, m[key]) == nil {
			merged = append(merged, item)
		}
	}
	desired[field] = merged
}

// itemWith returns the item of a list that has the value in a field, or nil.
func itemWith(items []any, key string, value any) map[string]any {
	switch value.(type) {
	case string, int64, float64:
	default: // a member may answer anything
		return nil
	}
	for _, item := range items {
		if m, _ := item.(map[string]any); m[key] == value {
			return m
		}
	}
	return nil
}

// unset reports whether a manifest leaves a field to the cluster. An empty text is a value: a claim with the storage class "" gets
// none. As a certificate it is none, and neither is the line break that generators write.
func unset(field string, value any) bool {
	switch v := value.(type) {
	case nil:
		return true
	case map[string]any:
		return len(v) == 0
	case []any:
		return len(v) == 0
	case string:
		return field == "caBundle" && (v == "" || v == "Cg==")
	}
	return false
}

// retainRestart keeps a later restart of a workload in the cluster, whose pods would be replaced once more without it.
func retainRestart(desired, observed map[string]any) {
	have := text(child(observed, "spec", "template", "metadata", "annotations"), restartedAt)
	at, err := time.Parse(time.RFC3339, have)
	if err != nil {
		return
	}
	template := child(desired, "spec", "template")
	if template == nil {
		return
	}
	annotations := ensure(ensure(template, "metadata"), "annotations")
	if mine, err := time.Parse(time.RFC3339, text(annotations, restartedAt)); err != nil || mine.Before(at) {
		annotations[restartedAt] = have
	}
}

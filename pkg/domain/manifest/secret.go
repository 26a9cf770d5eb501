package manifest

import (
	"encoding/json"
	"net/url"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
	policyv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/policy/v1alpha1"
)

// Mask is shown instead of a value that is secret.
const Mask = "***"

// MaskFunc returns what is shown instead of a value. The path of the value has no indices of lists.
type MaskFunc func(path []string, value any) string

// proxyURL is the field of a Cluster of which the user is secret.
const proxyURL = "spec.proxyURL"

// secretFields returns the fields with secret values, by kind. A field of a list is that of each entry; overriders are those that set data
// of Secrets. Works only have annotations that repeat overriders: those that deliver Secrets are shown nowhere.
func secretFields() map[schema.GroupKind][]string {
	var overriders []string
	for _, rule := range []string{"spec.overriders", "spec.overrideRules.overriders"} {
		overriders = append(overriders, rule+".plaintext.value", rule+".fieldOverrider.json.value", rule+".fieldOverrider.yaml.value")
	}
	return map[schema.GroupKind][]string{
		{Kind: "Secret"}: {"data", "stringData"},
		{Group: clusterv1alpha1.GroupName, Kind: "Cluster"}:              {proxyURL, "spec.proxyHeader"},
		{Group: policyv1alpha1.GroupName, Kind: "OverridePolicy"}:        overriders,
		{Group: policyv1alpha1.GroupName, Kind: "ClusterOverridePolicy"}: overriders,
		{Group: "work.karmada.io", Kind: "Work"}:                         nil,
	}
}

// Masked returns a copy of an object in which secret values are masked, also those that annotations repeat; the object itself if its kind has
// none. Kinds with the name Secret are like Secrets, whatever their group is.
func Masked(u *unstructured.Unstructured, mask MaskFunc) *unstructured.Unstructured {
	kind := u.GroupVersionKind().GroupKind()
	if kind.Kind == "Secret" {
		kind.Group = ""
	}
	fields, found := secretFields()[kind]
	if !found {
		return u
	}
	u = u.DeepCopy()
	annotations, applied := u.GetAnnotations(), &unstructured.Unstructured{}
	text := annotations[corev1.LastAppliedConfigAnnotation]
	for _, key := range []string{corev1.LastAppliedConfigAnnotation, policyv1alpha1.AppliedOverridesAnnotation, policyv1alpha1.AppliedClusterOverridesAnnotation} {
		delete(annotations, key)
	}
	if json.Unmarshal([]byte(text), &applied.Object) == nil && applied.Object != nil {
		applied.SetGroupVersionKind(u.GroupVersionKind())
		again, _ := json.Marshal(Masked(applied, mask).Object) // it was JSON
		annotations[corev1.LastAppliedConfigAnnotation] = string(again)
	}
	u.SetAnnotations(annotations)
	selectors, _, _ := unstructured.NestedSlice(u.Object, "spec", "resourceSelectors")
	forSecret := func(s any) bool { selector, ok := s.(map[string]any); return !ok || selector["kind"] == "Secret" }
	if len(selectors) > 0 && !slices.ContainsFunc(selectors, forSecret) {
		return u // a policy for other kinds
	}
	for _, path := range fields {
		mask.replace(u.Object, strings.Split(path, "."), nil)
	}
	return u
}

// replace masks all below a field, given by the keys that lead there from a value, and returns what the value becomes.
func (m MaskFunc) replace(value any, keys, path []string) any {
	switch v := value.(type) {
	case map[string]any:
		for _, at := range []string{"path", "fieldPath"} {
			if pointer, found := v[at].(string); found && len(keys) > 0 && !setsData(pointer) {
				return v // an overrider of something else
			}
		}
		for name, child := range v {
			if len(keys) == 0 || name == keys[0] {
				v[name] = m.replace(child, keys[min(1, len(keys)):], append(slices.Clip(path), name))
			}
		}
	case []any:
		for i := range v {
			v[i] = m.replace(v[i], keys, path)
		}
	case string:
		if strings.Join(path, ".") == proxyURL {
			return MaskUser(v)
		}
		return m(path, v)
	case nil:
	default:
		return m(path, v)
	}
	return value
}

// setsData reports whether a JSON pointer into a Secret is to its data, or to the annotation that repeats it.
func setsData(pointer string) bool {
	first, _, _ := strings.Cut(strings.TrimPrefix(pointer, "/"), "/")
	return slices.Contains([]string{"", "data", "stringData"}, first) || strings.Contains(pointer, "last-applied-configuration")
}

// MaskUser returns a URL whose user and password are masked; the mask alone if it is not valid.
func MaskUser(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return Mask
	}
	if u.User == nil {
		return address
	}
	return strings.Replace(u.String(), u.User.String()+"@", Mask+"@", 1)
}

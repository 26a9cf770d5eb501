package plan

import (
	"encoding/json"
	"fmt"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/karmada-toolkit/karmada/pkg/domain/manifest"
)

// Delivered returns what becomes of a member's object when another version is delivered: the fields that differ between the two versions
// change. Lists are replaced.
func Delivered(live, before, after *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	var texts [3][]byte
	for i, u := range []*unstructured.Unstructured{live, before, after} {
		text, err := json.Marshal(u.Object)
		if err != nil {
			return nil, fmt.Errorf("encoding %s: %w", keyOf(u), err)
		}
		texts[i] = text
	}
	patch, err := jsonpatch.CreateMergePatch(texts[1], texts[2])
	if err != nil {
		return nil, fmt.Errorf("comparing %s: %w", keyOf(after), err)
	}
	text, err := jsonpatch.MergePatch(texts[0], patch)
	if err != nil {
		return nil, fmt.Errorf("changing %s: %w", keyOf(after), err)
	}
	out := &unstructured.Unstructured{}
	return out, utiljson.Unmarshal(text, &out.Object)
}

// Shown returns the fields of an object that a user compares: without status and what API servers and the control plane write. Secret values are
// masked, and those that differ from the other version's, if there is one, show that they do.
func Shown(u, other *unstructured.Unstructured) map[string]any {
	u = u.DeepCopy()
	delete(u.Object, "status")
	manifest.StripOwnership(u)
	unstructured.RemoveNestedField(u.Object, "metadata", "annotations", corev1.LastAppliedConfigAnnotation)
	for _, field := range []string{"managedFields", "resourceVersion", "uid", "generation", "creationTimestamp"} {
		unstructured.RemoveNestedField(u.Object, "metadata", field)
	}
	for _, field := range []string{"labels", "annotations"} {
		if m, found, _ := unstructured.NestedMap(u.Object, "metadata", field); found && len(m) == 0 {
			unstructured.RemoveNestedField(u.Object, "metadata", field)
		}
	}
	return manifest.Masked(u, func(path []string, value any) string {
		if other != nil {
			if another, found, _ := unstructured.NestedFieldNoCopy(other.Object, path...); found && another != value {
				return fmt.Sprintf("%s (another value of %d characters)", manifest.Mask, len(fmt.Sprint(value)))
			}
		}
		return manifest.Mask
	}).Object
}

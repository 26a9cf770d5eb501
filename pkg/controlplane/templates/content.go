package templates

import (
	"context"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"maps"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/karmada-toolkit/karmada/internal/patch"
	"github.com/karmada-toolkit/karmada/pkg/domain/manifest"
)

const (
	fieldMetadata        = "metadata"
	fieldStatus          = "status"
	fieldManagedFields   = "managedFields"
	fieldResourceVersion = "resourceVersion"
)

// SameContent reports whether two versions of an object are equal but for status,
// managed fields and resource version.
func SameContent(a, b *unstructured.Unstructured) bool {
	if a == b {
		return true
	}
	return sameMap(a.Object, b.Object, func(key string, x, y any) (skip, same bool) {
		switch key {
		case fieldStatus:
			return true, true
		case fieldMetadata:
			return true, sameMetadata(x, y)
		default:
			return false, false
		}
	})
}

func sameMetadata(a, b any) bool {
	am, aok := a.(map[string]any)
	bm, bok := b.(map[string]any)
	if !aok || !bok {
		return equality.Semantic.DeepEqual(a, b)
	}
	return sameMap(am, bm, func(key string, _, _ any) (skip, same bool) {
		return key == fieldManagedFields || key == fieldResourceVersion, true
	})
}

// sameMap compares two maps. special compares some keys itself: skip is true for
// those, and same is the result.
func sameMap(a, b map[string]any, special func(key string, x, y any) (skip, same bool)) bool {
	for key, x := range a {
		y, ok := b[key]
		if skip, same := special(key, x, y); skip {
			if !same {
				return false
			}
			continue
		}
		if !ok || !equality.Semantic.DeepEqual(x, y) {
			return false
		}
	}
	for key, y := range b {
		if _, ok := a[key]; ok {
			continue
		}
		if skip, same := special(key, nil, y); !skip || !same {
			return false
		}
	}
	return true
}

// Content is a view of an object without status, managed fields and resource
// version. It shares what it keeps with the object.
func Content(obj *unstructured.Unstructured) map[string]any {
	out := maps.Clone(obj.Object)
	delete(out, fieldStatus)
	if metadata, ok := out[fieldMetadata].(map[string]any); ok {
		metadata = maps.Clone(metadata)
		delete(metadata, fieldManagedFields)
		delete(metadata, fieldResourceVersion)
		out[fieldMetadata] = metadata
	}
	return out
}

// Hash returns a hash of the content of an object: two versions with the same
// content have the same hash.
func Hash(obj *unstructured.Unstructured) (uint64, error) {
	h := fnv.New64a()
	if err := json.NewEncoder(h).Encode(Content(obj)); err != nil {
		return 0, fmt.Errorf("hashing %s %s/%s: %w", obj.GetKind(), obj.GetNamespace(), obj.GetName(), err)
	}
	return h.Sum64(), nil
}

// StripManagedFields is a cache transform: it drops the fields that no field manager owns, and the managed fields.
func StripManagedFields(obj any) (any, error) {
	if u, ok := obj.(*unstructured.Unstructured); ok {
		manifest.StripUnowned(u)
		unstructured.RemoveNestedField(u.Object, fieldMetadata, fieldManagedFields)
	}
	return obj, nil
}

func newScale() *unstructured.Unstructured {
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(autoscalingv1.SchemeGroupVersion.WithKind("Scale"))
	return u
}

// Scale reads the subresource scale of an object from the API server. It fails for kinds without a namespace: who may
// refer to objects of a namespace must not reach them.
func Scale(ctx context.Context, c client.Client, obj *unstructured.Unstructured) (*autoscalingv1.Scale, error) {
	namespaced, err := c.IsObjectNamespaced(obj)
	if err != nil {
		return nil, err
	}
	if !namespaced {
		return nil, fmt.Errorf("%s has no namespace and cannot be scaled", obj.GetKind())
	}
	u := newScale()
	if err := c.SubResource("scale").Get(ctx, obj.DeepCopy(), u); err != nil {
		return nil, err
	}
	scale := &autoscalingv1.Scale{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, scale); err != nil {
		return nil, fmt.Errorf("decoding the scale: %w", err)
	}
	return scale, nil
}

// SetReplicas writes the replicas of an object through its Scale, which was read before: a change in between is a
// conflict. The field is written even where the Scale lacks it, as one of 0 replicas does.
func SetReplicas(ctx context.Context, c client.Client, obj *unstructured.Unstructured, scale *autoscalingv1.Scale, replicas int32) error {
	change := patch.Merge(map[string]any{
		"metadata": map[string]any{"resourceVersion": scale.ResourceVersion},
		"spec":     map[string]any{"replicas": replicas},
	})
	return c.SubResource("scale").Patch(ctx, obj.DeepCopy(), change, client.WithSubResourceBody(newScale()))
}

package templates

import (
	"context"
	"encoding/json"
	"fmt"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

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
	patch, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"resourceVersion": scale.ResourceVersion},
		"spec":     map[string]any{"replicas": replicas},
	})
	if err != nil {
		return err
	}
	return c.SubResource("scale").Patch(ctx, obj.DeepCopy(), client.RawPatch(types.MergePatchType, patch), client.WithSubResourceBody(newScale()))
}

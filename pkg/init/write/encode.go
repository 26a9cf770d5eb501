package write

import (
	"bytes"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/yaml"

	"github.com/karmada-toolkit/karmada/internal/kube"
)

// Encode returns objects as YAML documents.
func Encode(objects []client.Object) ([]byte, error) {
	scheme := kube.NewScheme()
	var out bytes.Buffer
	for _, object := range objects {
		gvk, err := apiutil.GVKForObject(object, scheme)
		if err != nil {
			return nil, fmt.Errorf("encoding %T %s: %w", object, object.GetName(), err)
		}
		content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
		if err != nil {
			return nil, fmt.Errorf("encoding %s %s: %w", gvk.Kind, object.GetName(), err)
		}
		content["apiVersion"], content["kind"] = gvk.GroupVersion().String(), gvk.Kind
		delete(content, "status")
		withoutNulls(content)
		text, err := yaml.Marshal(content)
		if err != nil {
			return nil, fmt.Errorf("encoding %s %s: %w", gvk.Kind, object.GetName(), err)
		}
		out.WriteString("---\n")
		out.Write(text)
	}
	return out.Bytes(), nil
}

// withoutNulls removes empty values.
func withoutNulls(content map[string]any) {
	for key, value := range content {
		switch v := value.(type) {
		case nil:
			delete(content, key)
		case map[string]any:
			withoutNulls(v)
		case []any:
			for _, item := range v {
				if m, ok := item.(map[string]any); ok {
					withoutNulls(m)
				}
			}
		}
	}
}

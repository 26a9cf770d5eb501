package write

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"

	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/yaml"

	"github.com/karmada-toolkit/karmada/internal/kube"
	"github.com/karmada-toolkit/karmada/internal/pki"
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

// Manifest is a file with objects.
type Manifest struct {
	// Dir is the directory below that of the export, Name the name of the file without its suffix.
	Dir, Name string
	Objects   []client.Object
}

// Files writes manifests to files in dir, in the place of all that is in some directories below it, and a README.txt. Others cannot read
// the manifests.
func Files(dir string, below []string, manifests []Manifest, readme string) error {
	for _, sub := range below {
		if err := os.RemoveAll(filepath.Join(dir, sub)); err != nil {
			return fmt.Errorf("writing to %s: %w", dir, err)
		}
	}
	put := func(path string, text []byte, mode os.FileMode) error {
		if err := pki.WriteFile(path, text, mode); err != nil {
			return fmt.Errorf("writing %s: %w", path, err)
		}
		return nil
	}
	for _, m := range manifests {
		text, err := Encode(m.Objects)
		if err != nil {
			return err
		}
		if err := put(filepath.Join(dir, m.Dir, m.Name+".yaml"), text, 0o600); err != nil {
			return err
		}
	}
	return put(filepath.Join(dir, "README.txt"), []byte(readme), 0o644)
}

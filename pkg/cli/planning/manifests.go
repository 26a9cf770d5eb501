package planning

import (
	"bytes"
	"fmt"
	"io"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/cli-runtime/pkg/resource"

	"github.com/karmada-toolkit/karmada/internal/limit"
	"github.com/karmada-toolkit/karmada/pkg/insight/plan"
)

// Decode returns the objects of a stream of YAML or JSON, which errors call by the name. The error is also that there are none.
func (s *Source) Decode(r io.Reader, name string) ([]*unstructured.Unstructured, error) {
	text, err := limit.ReadManifest(name, r)
	if err != nil {
		return nil, err
	}
	out, err := Objects(resource.NewBuilder(s.access).Unstructured().Local().ContinueOnError().Stream(bytes.NewReader(text), name).Flatten().Do())
	if err == nil && len(out) == 0 {
		err = fmt.Errorf("%s has no objects", name)
	}
	return out, err
}

// Objects returns the objects that a builder of unstructured objects visits.
func Objects(result *resource.Result) ([]*unstructured.Unstructured, error) {
	infos, err := result.Infos()
	if err != nil {
		return nil, err
	}
	var out []*unstructured.Unstructured
	for _, info := range infos {
		u, ok := info.Object.(*unstructured.Unstructured)
		if !ok {
			return nil, fmt.Errorf("%s: unexpected %T", info.Source, info.Object)
		}
		out = append(out, u)
	}
	return out, nil
}

// Scope gives manifests the namespace where they have none, and takes it from objects of the cluster scope. The errors are that a
// manifest has no name or an unknown kind, or another namespace although the namespace is enforced.
func Scope(manifests []*unstructured.Unstructured, mapper meta.RESTMapper, namespace string, enforced bool) error {
	for _, u := range manifests {
		namespaced, err := plan.Namespaced(u.GroupVersionKind(), mapper, manifests)
		switch {
		case err != nil:
			return fmt.Errorf("%s %q: %w", u.GetKind(), u.GetName(), err)
		case u.GetName() == "":
			return fmt.Errorf("%s without metadata.name: the name of an object that is created with generateName is not known", u.GetKind())
		case !namespaced:
			u.SetNamespace("")
		case u.GetNamespace() == "":
			u.SetNamespace(namespace)
		case enforced && u.GetNamespace() != namespace:
			return fmt.Errorf("the namespace of %s %q is %q and not %q, which --namespace names", u.GetKind(), u.GetName(), u.GetNamespace(), namespace)
		}
	}
	return nil
}

package apply

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilwait "k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/cli-runtime/pkg/resource"
	upstream "k8s.io/kubectl/pkg/cmd/apply"
	cmdutil "k8s.io/kubectl/pkg/cmd/util"

	"github.com/karmada-toolkit/karmada/pkg/cli/env"
)

// establishTimeout is how long a CustomResourceDefinition may take until its objects are accepted.
const establishTimeout = 30 * time.Second

// lenient is a factory whose mapper returns a mapping without a resource for a kind that is not served, so that such objects are
// read: the same files may define their types. Its scope is that of namespaces, so that the builder leaves the namespace of an object.
type lenient struct{ cmdutil.Factory }

// ToRESTMapper implements resource.RESTClientGetter.
func (l lenient) ToRESTMapper() (meta.RESTMapper, error) {
	mapper, err := l.Factory.ToRESTMapper()
	return lenientMapper{mapper}, err
}

type lenientMapper struct{ meta.RESTMapper }

// RESTMapping implements meta.RESTMapper.
func (m lenientMapper) RESTMapping(kind schema.GroupKind, versions ...string) (*meta.RESTMapping, error) {
	mapping, err := m.RESTMapper.RESTMapping(kind, versions...)
	if meta.IsNoMatchError(err) && len(versions) == 1 {
		return &meta.RESTMapping{GroupVersionKind: kind.WithVersion(versions[0]), Scope: meta.RESTScopeNamespace}, nil
	}
	return mapping, err
}

// define maps the objects whose types are defined by others of them, and returns those that are mapped, the definitions of types of
// which there are objects, and why others cannot be applied.
func define(infos []*resource.Info) (mapped, definitions []*resource.Info, err error) {
	var errs []error
	for _, info := range infos {
		kind := info.Mapping.GroupVersionKind
		i := slices.IndexFunc(infos, func(other *resource.Info) bool { return mappingOf(other, kind) != nil })
		if i >= 0 && !slices.Contains(definitions, infos[i]) {
			definitions = append(definitions, infos[i])
		}
		if !info.Mapping.Resource.Empty() { // by the discovery of some time ago: the definition may be gone
			mapped = append(mapped, info)
			continue
		}
		if i < 0 {
			errs = append(errs, fmt.Errorf("resource mapping not found for name: %q namespace: %q from %q: %w\nensure CRDs are installed first",
				info.Name, info.Namespace, info.Source, &meta.NoKindMatchError{GroupKind: kind.GroupKind(), SearchedVersions: []string{kind.Version}}))
			continue
		}
		info.Mapping = mappingOf(infos[i], kind)
		if err := resource.FilterNamespace(info, nil); err != nil { // what has no namespace has got one
			errs = append(errs, err)
			continue
		}
		mapped = append(mapped, info)
	}
	return mapped, definitions, errors.Join(errs...)
}

// mappingOf returns the mapping of a kind that a CustomResourceDefinition defines, or nil.
func mappingOf(info *resource.Info, kind schema.GroupVersionKind) *meta.RESTMapping {
	crd := definitionOf(info.Object)
	if crd == nil || crd.Spec.Group != kind.Group || crd.Spec.Names.Kind != kind.Kind ||
		!slices.ContainsFunc(crd.Spec.Versions, func(v apiextensionsv1.CustomResourceDefinitionVersion) bool {
			return v.Served && v.Name == kind.Version
		}) {
		return nil
	}
	out := &meta.RESTMapping{Resource: kind.GroupVersion().WithResource(crd.Spec.Names.Plural), GroupVersionKind: kind, Scope: meta.RESTScopeRoot}
	if crd.Spec.Scope == apiextensionsv1.NamespaceScoped {
		out.Scope = meta.RESTScopeNamespace
	}
	return out
}

// definitionOf returns an object as a CustomResourceDefinition, or nil.
func definitionOf(obj runtime.Object) *apiextensionsv1.CustomResourceDefinition {
	u, ok := obj.(*unstructured.Unstructured)
	crd := &apiextensionsv1.CustomResourceDefinition{}
	if !ok || u.GroupVersionKind().GroupKind() != (schema.GroupKind{Group: apiextensionsv1.GroupName, Kind: "CustomResourceDefinition"}) ||
		runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, crd) != nil {
		return nil
	}
	return crd
}

// applyDefinitions applies CustomResourceDefinitions, waits until their objects are accepted, and leaves the other objects to do.
func applyDefinitions(ctx context.Context, e *env.Env, o *upstream.ApplyOptions, definitions []*resource.Info) error {
	infos, err := o.GetObjects()
	if err != nil {
		return err
	}
	first := *o
	first.PreProcessorFn, first.Prune = nil, false
	first.PostProcessorFn = first.PrintAndPrunePostProcessor()
	first.SetObjects(definitions)
	if err := first.Run(); err != nil {
		return err
	}
	o.SetObjects(slices.DeleteFunc(slices.Clone(infos), func(info *resource.Info) bool { return slices.Contains(definitions, info) }))
	for _, info := range definitions {
		done := e.Waiting(func() string { return fmt.Sprintf("CustomResourceDefinition %q to be established", info.Name) })
		err := utilwait.PollUntilContextTimeout(ctx, 100*time.Millisecond, establishTimeout, true, func(context.Context) (bool, error) {
			if err := info.Get(); err != nil {
				return false, err
			}
			crd := definitionOf(info.Object)
			return crd != nil && slices.ContainsFunc(crd.Status.Conditions, func(c apiextensionsv1.CustomResourceDefinitionCondition) bool {
				return c.Type == apiextensionsv1.Established && c.Status == apiextensionsv1.ConditionTrue
			}), nil
		})
		if done(); err != nil {
			return fmt.Errorf("waiting until CustomResourceDefinition %q is established: %w", info.Name, err)
		}
	}
	return nil
}

package conformance

import (
	"context"
	"fmt"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	apivalidation "k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apiextensions-apiserver/pkg/registry/customresource"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// createStrategy is the createStrategy of the API server for a custom resource.
type createStrategy interface {
	PrepareForCreate(ctx context.Context, obj runtime.Object)
	Validate(ctx context.Context, obj runtime.Object) field.ErrorList
}

// servedKind is a served version of a kind.
type servedKind struct {
	gvk            schema.GroupVersionKind
	structural     *structuralschema.Structural
	createStrategy createStrategy
}

func newKind(crd *apiextensionsv1.CustomResourceDefinition, version *apiextensionsv1.CustomResourceDefinitionVersion) (*servedKind, error) {
	props := &apiextensions.JSONSchemaProps{}
	if err := apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(version.Schema.OpenAPIV3Schema, props, nil); err != nil {
		return nil, fmt.Errorf("converting the schema: %w", err)
	}
	structural, err := structuralschema.NewStructural(props)
	if err != nil {
		return nil, fmt.Errorf("reading the schema: %w", err)
	}
	validator, _, err := apivalidation.NewSchemaValidator(props)
	if err != nil {
		return nil, fmt.Errorf("preparing validation: %w", err)
	}
	var status *apiextensions.CustomResourceSubresourceStatus
	if version.Subresources != nil && version.Subresources.Status != nil {
		status = &apiextensions.CustomResourceSubresourceStatus{}
	}
	gvk := schema.GroupVersionKind{Group: crd.Spec.Group, Version: version.Name, Kind: crd.Spec.Names.Kind}
	return &servedKind{
		gvk: gvk, structural: structural,
		createStrategy: customresource.NewStrategy(runtime.NewScheme(), crd.Spec.Scope == apiextensionsv1.NamespaceScoped, gvk,
			validator, nil, structural, status, nil, nil),
	}, nil
}

// shape changes an object as the API server does when it decodes one.
func (k *servedKind) shape(obj map[string]any) {
	defaulting.PruneNonNullableNullsWithoutDefaults(obj, k.structural)
	k.reshape(obj)
}

// reshape changes an object as the API server does after a webhook changed it:
// nulls stay.
func (k *servedKind) reshape(obj map[string]any) {
	pruning.Prune(obj, k.structural, true)
	defaulting.Default(obj, k.structural)
}

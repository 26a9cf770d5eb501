// Package columns lays out objects in rows of tables, as the API server that stores them does: kinds of Kubernetes with the
// columns of Kubernetes, and custom resources with those of their definition in the control plane. Cells that tell a time
// are those of now.
package columns

import (
	"context"
	"fmt"
	"sync"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/registry/customresource/tableconvertor"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/kubernetes/pkg/printers"
)

// Layout makes rows of the objects of one kind.
type Layout interface {
	// Columns are those of the kind. The first has the name of an object.
	Columns() []metav1.TableColumnDefinition
	// Cells returns the cells of an object in JSON, one for each column.
	Cells(object []byte) ([]any, error)
}

// Definition returns the definition of a custom resource, or nil if there is none.
type Definition func(ctx context.Context, resource schema.GroupResource) (*apiextensionsv1.CustomResourceDefinition, error)

// Layouts returns layouts. It is safe for concurrent use.
type Layouts struct {
	definition Definition
	generator  printers.TableGenerator
	// known are the layouts of kinds of Kubernetes, nil for kinds without one.
	known sync.Map
}

// New returns layouts of the kinds of Kubernetes, and of those that are defined.
func New(definition Definition) *Layouts {
	return &Layouts{definition: definition, generator: newGenerator()}
}

// Of returns the layout of a kind: name and age if nothing else is known of it.
func (l *Layouts) Of(ctx context.Context, resource schema.GroupResource, kind schema.GroupVersionKind) (Layout, error) {
	found, ok := l.known.Load(kind)
	if !ok {
		found, _ = l.known.LoadOrStore(kind, newNative(l.generator, kind))
	}
	if n := found.(*native); n != nil {
		return n, nil
	}
	definition, err := l.definition(ctx, resource)
	if err != nil {
		return nil, fmt.Errorf("reading the definition of %s: %w", resource, err)
	}
	return newCustom(ctx, printerColumns(definition, kind.Version))
}

// printerColumns are those of a version of a custom resource: the age if it has none.
func printerColumns(definition *apiextensionsv1.CustomResourceDefinition, version string) []apiextensionsv1.CustomResourceColumnDefinition {
	if definition != nil {
		for i := range definition.Spec.Versions {
			if v := &definition.Spec.Versions[i]; v.Name == version && len(v.AdditionalPrinterColumns) > 0 {
				return v.AdditionalPrinterColumns
			}
		}
	}
	return []apiextensionsv1.CustomResourceColumnDefinition{{
		Name: "Age", Type: "date", Description: "The time since the object was created.", JSONPath: ".metadata.creationTimestamp",
	}}
}

// custom lays out a custom resource.
type custom struct {
	converter rest.TableConvertor
	columns   []metav1.TableColumnDefinition
}

func newCustom(ctx context.Context, printed []apiextensionsv1.CustomResourceColumnDefinition) (*custom, error) {
	converter, err := tableconvertor.New(printed)
	if err != nil {
		return nil, fmt.Errorf("reading additionalPrinterColumns: %w", err)
	}
	table, err := converter.ConvertToTable(ctx, &unstructured.UnstructuredList{}, nil)
	if err != nil {
		return nil, fmt.Errorf("reading additionalPrinterColumns: %w", err)
	}
	return &custom{converter: converter, columns: table.ColumnDefinitions}, nil
}

// Columns implements Layout.
func (c *custom) Columns() []metav1.TableColumnDefinition { return c.columns }

// Cells implements Layout.
func (c *custom) Cells(object []byte) ([]any, error) {
	var u unstructured.Unstructured
	if err := u.UnmarshalJSON(object); err != nil {
		return nil, fmt.Errorf("reading an object: %w", err)
	}
	table, err := c.converter.ConvertToTable(context.Background(), &u, &metav1.TableOptions{NoHeaders: true})
	if err != nil {
		return nil, fmt.Errorf("laying out an object: %w", err)
	}
	return only(table, len(c.columns))
}

// Remember returns a Definition that reads another one again only when version returns another resource version than before: a
// definition may be large. An empty version is that of no definition.
func Remember(definition Definition, version func(ctx context.Context, resource schema.GroupResource) (string, error)) Definition {
	var known sync.Map
	return func(ctx context.Context, resource schema.GroupResource) (*apiextensionsv1.CustomResourceDefinition, error) {
		current, err := version(ctx, resource)
		if err != nil {
			return nil, err
		}
		if current == "" {
			known.Delete(resource)
			return nil, nil // there is none
		}
		if found, ok := known.Load(resource); ok {
			if d := found.(*apiextensionsv1.CustomResourceDefinition); d.ResourceVersion == current {
				return d, nil
			}
		}
		found, err := definition(ctx, resource)
		if err == nil && found != nil {
			known.Store(resource, found)
		}
		return found, err
	}
}

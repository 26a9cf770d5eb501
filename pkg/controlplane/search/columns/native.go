package columns

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	_ "k8s.io/kubernetes/pkg/apis/admissionregistration/install" // each adds its kinds to legacyscheme
	_ "k8s.io/kubernetes/pkg/apis/apps/install"
	_ "k8s.io/kubernetes/pkg/apis/autoscaling/install"
	_ "k8s.io/kubernetes/pkg/apis/batch/install"
	_ "k8s.io/kubernetes/pkg/apis/certificates/install"
	_ "k8s.io/kubernetes/pkg/apis/coordination/install"
	_ "k8s.io/kubernetes/pkg/apis/core/install"
	_ "k8s.io/kubernetes/pkg/apis/discovery/install"
	_ "k8s.io/kubernetes/pkg/apis/events/install"
	_ "k8s.io/kubernetes/pkg/apis/flowcontrol/install"
	_ "k8s.io/kubernetes/pkg/apis/networking/install"
	_ "k8s.io/kubernetes/pkg/apis/node/install"
	_ "k8s.io/kubernetes/pkg/apis/policy/install"
	_ "k8s.io/kubernetes/pkg/apis/rbac/install"
	_ "k8s.io/kubernetes/pkg/apis/resource/install"
	_ "k8s.io/kubernetes/pkg/apis/scheduling/install"
	_ "k8s.io/kubernetes/pkg/apis/storage/install"
	"k8s.io/kubernetes/pkg/printers"
	internalprinters "k8s.io/kubernetes/pkg/printers/internalversion"
)

// native lays out a kind of Kubernetes as its API server does.
type native struct {
	kind      schema.GroupVersionKind
	generator printers.TableGenerator
	columns   []metav1.TableColumnDefinition
}

// newNative returns the layout of a kind, or nil if this version of Kubernetes has none.
func newNative(generator printers.TableGenerator, kind schema.GroupVersionKind) *native {
	if !legacyscheme.Scheme.Recognizes(kind) {
		return nil
	}
	list, err := legacyscheme.Scheme.New(schema.GroupVersionKind{Group: kind.Group, Version: runtime.APIVersionInternal, Kind: kind.Kind + "List"})
	if err != nil {
		return nil
	}
	table, err := generator.GenerateTable(list, printers.GenerateOptions{Wide: true})
	if err != nil {
		return nil
	}
	return &native{kind: kind, generator: generator, columns: table.ColumnDefinitions}
}

func newGenerator() printers.TableGenerator {
	return printers.NewTableGenerator().With(internalprinters.AddHandlers)
}

// Columns implements Layout.
func (n *native) Columns() []metav1.TableColumnDefinition { return n.columns }

// Cells implements Layout. The functions of Kubernetes expect objects that were validated; one of a member may make them
// panic.
func (n *native) Cells(object []byte) (cells []any, err error) {
	defer func() {
		if cause := recover(); cause != nil {
			cells, err = nil, fmt.Errorf("laying out an object: %v", cause)
		}
	}()
	decoded, kind, err := legacyscheme.Codecs.UniversalDecoder().Decode(object, nil, nil)
	if err != nil {
		return nil, fmt.Errorf("reading an object: %w", err)
	}
	if *kind != n.kind {
		return nil, fmt.Errorf("an object is a %s, not a %s", kind, n.kind)
	}
	table, err := n.generator.GenerateTable(decoded, printers.GenerateOptions{Wide: true, NoHeaders: true})
	if err != nil {
		return nil, fmt.Errorf("laying out an object: %w", err)
	}
	return only(table, len(n.columns))
}

// only returns the cells of the only row of a table with a number of columns.
func only(table *metav1.Table, columns int) ([]any, error) {
	if len(table.Rows) != 1 || len(table.Rows[0].Cells) != columns {
		return nil, fmt.Errorf("an object does not have the %d cells of its kind", columns)
	}
	return table.Rows[0].Cells, nil
}

package extension

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// Table prints objects of a type, and lists of them, in columns.
type Table[T runtime.Object] struct {
	// Kinds name the objects in errors.
	Kinds   string
	Columns func() []metav1.TableColumnDefinition
	// Cells returns the row of an object.
	Cells func(T) []any
}

// ConvertToTable implements rest.TableConvertor.
func (t Table[T]) ConvertToTable(_ context.Context, object, options runtime.Object) (*metav1.Table, error) {
	out, objects := &metav1.Table{}, []runtime.Object{object}
	if meta.IsListType(object) {
		var err error
		if objects, err = meta.ExtractList(object); err != nil {
			return nil, err
		}
	}
	if list, err := meta.ListAccessor(object); err == nil {
		out.ResourceVersion, out.Continue, out.RemainingItemCount = list.GetResourceVersion(), list.GetContinue(), list.GetRemainingItemCount()
	} else if o, err := meta.Accessor(object); err == nil {
		out.ResourceVersion = o.GetResourceVersion()
	}
	for _, o := range objects {
		row, ok := o.(T)
		if !ok {
			return nil, fmt.Errorf("printing %T as a table of %s is not possible", object, t.Kinds)
		}
		out.Rows = append(out.Rows, metav1.TableRow{Object: runtime.RawExtension{Object: row}, Cells: t.Cells(row)})
	}
	if o, ok := options.(*metav1.TableOptions); !ok || !o.NoHeaders {
		out.ColumnDefinitions = t.Columns()
	}
	return out, nil
}

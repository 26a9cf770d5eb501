package search

import (
	"encoding/json"
	"fmt"
	"mime"
	"net/http"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/karmada-toolkit/karmada/pkg/controlplane/search/columns"
)

// form is what an answer consists of.
type form int

// The forms of answers.
const (
	formNone form = iota // nothing that the client accepts
	formObjects
	formTable
)

// formOf returns the first form that a client accepts: whole objects in JSON, or a table of version v1.
func formOf(accept []string) form {
	if len(accept) == 0 {
		return formObjects
	}
	for _, line := range accept {
		for one := range strings.SplitSeq(line, ",") {
			mediaType, parameters, err := mime.ParseMediaType(one)
			switch {
			case err != nil || !slices.Contains([]string{"application/json", "application/*", "*/*"}, mediaType):
			case parameters["as"] == "":
				return formObjects
			case parameters["as"] == "Table" && parameters["v"] == "v1" && parameters["g"] == metav1.GroupName:
				return formTable
			}
		}
	}
	return formNone
}

// tables makes tables of objects: the cluster of each, and the columns of their kind.
type tables struct {
	layout columns.Layout
	// include is what a row has of its object: its metadata, all of it, or nothing.
	include metav1.IncludeObjectPolicy
	// headed is set when a table with columns was made: later events of a watch need none.
	headed bool
}

// tables returns what makes tables of a resource as a request wants them, or nil if it wants objects.
func (g *global) tables(req *http.Request, include string, resource schema.GroupResource, kind schema.GroupVersionKind) (*tables, error) {
	if formOf(req.Header.Values("Accept")) != formTable {
		return nil, nil // objects are wanted
	}
	policy, err := includePolicy(include)
	if err != nil {
		return nil, err
	}
	layout, err := g.layouts.Of(req.Context(), resource, kind)
	if err != nil {
		return nil, apierrors.NewInternalError(err)
	}
	return &tables{layout: layout, include: policy}, nil
}

// includePolicy reads the parameter includeObject.
func includePolicy(include string) (metav1.IncludeObjectPolicy, error) {
	switch policy := metav1.IncludeObjectPolicy(include); policy {
	case "":
		return metav1.IncludeMetadata, nil
	case metav1.IncludeMetadata, metav1.IncludeObject, metav1.IncludeNone:
		return policy, nil
	default:
		return "", apierrors.NewBadRequest(fmt.Sprintf("the parameter includeObject is %q: use Metadata, Object or None", include))
	}
}

// row returns the row of an object, in JSON, of a cluster. The row of an object that cannot be laid out has its name only.
func (t *tables) row(cluster string, object []byte) (metav1.TableRow, error) {
	var part metav1.PartialObjectMetadata
	if err := json.Unmarshal(object, &part); err != nil {
		return metav1.TableRow{}, fmt.Errorf("reading an object for a table: %w", err)
	}
	cells, err := t.layout.Cells(object)
	if err != nil {
		cells = t.empty()
		cells[0] = part.Name
	}
	row := metav1.TableRow{Cells: append([]any{cluster}, cells...)}
	switch t.include {
	case metav1.IncludeNone:
	case metav1.IncludeObject:
		row.Object.Raw = object
	case metav1.IncludeMetadata:
		row.Object = metadata(&part)
	}
	return row, nil
}

// empty returns the cells of a row about which nothing is known.
func (t *tables) empty() []any {
	cells := make([]any, len(t.layout.Columns()))
	for i, c := range t.layout.Columns() {
		if c.Type == "string" {
			cells[i] = "<unknown>"
		}
	}
	return cells
}

// metadata returns an object with its metadata only.
func metadata(part *metav1.PartialObjectMetadata) runtime.RawExtension {
	part.TypeMeta = metav1.TypeMeta{APIVersion: metav1.SchemeGroupVersion.String(), Kind: "PartialObjectMetadata"}
	return runtime.RawExtension{Object: part}
}

// table returns a table of rows.
func (t *tables) table(list metav1.ListMeta, rows []metav1.TableRow) *metav1.Table {
	out := &metav1.Table{ListMeta: list, Rows: rows}
	out.APIVersion, out.Kind = metav1.SchemeGroupVersion.String(), "Table"
	if !t.headed {
		out.ColumnDefinitions = append([]metav1.TableColumnDefinition{
			{Name: "Cluster", Type: "string", Description: "The cluster that holds the object."},
		}, t.layout.Columns()...)
		t.headed = true
	}
	return out
}

// event returns the object of an event as a table of one row. The row of a bookmark is empty.
func (t *tables) event(kind watch.EventType, cluster string, object []byte) ([]byte, error) {
	var part metav1.PartialObjectMetadata
	if err := json.Unmarshal(object, &part); err != nil {
		return nil, fmt.Errorf("reading an object for a table: %w", err)
	}
	version := metav1.ListMeta{ResourceVersion: part.ResourceVersion}
	if kind == watch.Bookmark {
		row := metav1.TableRow{Cells: make([]any, 1+len(t.layout.Columns()))}
		if t.include != metav1.IncludeNone {
			row.Object = metadata(&part)
		}
		return json.Marshal(t.table(version, []metav1.TableRow{row}))
	}
	row, err := t.row(cluster, object)
	if err != nil {
		return nil, err
	}
	return json.Marshal(t.table(version, []metav1.TableRow{row}))
}

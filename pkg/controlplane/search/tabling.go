package search

import (
	"encoding/json"
	"fmt"
	"mime"
	"net/http"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/duration"
	"k8s.io/apimachinery/pkg/watch"
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

// tables makes tables of objects, with the cluster, the name and the age of each. The ages are those of the answer.
type tables struct {
	now func() time.Time
	// include is what a row has of its object: its metadata, all of it, or nothing.
	include metav1.IncludeObjectPolicy
	// headed is set when a table with columns was made: later events of a watch need none.
	headed bool
}

// newTables returns tables as a request wants them.
func newTables(req *http.Request, include string, now func() time.Time) (*tables, error) {
	if formOf(req.Header.Values("Accept")) != formTable {
		return nil, nil // objects are wanted
	}
	t := &tables{now: now, include: metav1.IncludeMetadata}
	switch policy := metav1.IncludeObjectPolicy(include); policy {
	case "", metav1.IncludeMetadata:
	case metav1.IncludeObject, metav1.IncludeNone:
		t.include = policy
	default:
		return nil, apierrors.NewBadRequest(fmt.Sprintf("the parameter includeObject is %q: use Metadata, Object or None", include))
	}
	return t, nil
}

// columns are those of every table.
func columns() []metav1.TableColumnDefinition {
	return []metav1.TableColumnDefinition{
		{Name: "Cluster", Type: "string", Description: "The cluster that holds the object."},
		{Name: "Name", Type: "string", Format: "name", Description: "The name of the object."},
		{Name: "Age", Type: "string", Description: "The time since the object was created in its cluster."},
	}
}

// row returns the row of an object, in JSON, of a cluster.
func (t *tables) row(cluster string, object []byte) (metav1.TableRow, error) {
	var part metav1.PartialObjectMetadata
	if err := json.Unmarshal(object, &part); err != nil {
		return metav1.TableRow{}, fmt.Errorf("reading an object for a table: %w", err)
	}
	age := "<unknown>"
	if created := part.CreationTimestamp; !created.IsZero() {
		age = duration.HumanDuration(t.now().Sub(created.Time))
	}
	row := metav1.TableRow{Cells: []any{cluster, part.Name, age}}
	switch t.include {
	case metav1.IncludeNone:
	case metav1.IncludeObject:
		row.Object.Raw = object
	case metav1.IncludeMetadata:
		part.TypeMeta = metav1.TypeMeta{APIVersion: metav1.SchemeGroupVersion.String(), Kind: "PartialObjectMetadata"}
		row.Object = runtime.RawExtension{Object: &part}
	}
	return row, nil
}

// table returns a table, in JSON, of rows.
func (t *tables) table(list metav1.ListMeta, rows []metav1.TableRow) ([]byte, error) {
	out := metav1.Table{ListMeta: list, Rows: rows}
	out.APIVersion, out.Kind = metav1.SchemeGroupVersion.String(), "Table"
	if out.Rows == nil {
		out.Rows = []metav1.TableRow{}
	}
	if !t.headed {
		out.ColumnDefinitions = columns()
		t.headed = true
	}
	data, err := json.Marshal(out)
	if err != nil {
		return nil, fmt.Errorf("encoding a table: %w", err)
	}
	return data, nil
}

// event returns the object of an event as a table of one row, and of a bookmark as one without rows.
func (t *tables) event(kind watch.EventType, cluster string, object []byte) ([]byte, error) {
	var part metav1.PartialObjectMetadata
	if err := json.Unmarshal(object, &part); err != nil {
		return nil, fmt.Errorf("reading an object for a table: %w", err)
	}
	row, err := t.row(cluster, object)
	if err != nil {
		return nil, err
	}
	if kind == watch.Bookmark {
		row.Cells = []any{"", "", ""}
	}
	return t.table(metav1.ListMeta{ResourceVersion: part.ResourceVersion}, []metav1.TableRow{row})
}

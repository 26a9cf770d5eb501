package proxy

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// list is a list or a table of which only the outside is read: what its objects
// contain stays text, which takes no more memory than it did as an answer.
type list struct {
	Kind              string          `json:"kind"`
	APIVersion        string          `json:"apiVersion"`
	ColumnDefinitions json.RawMessage `json:"columnDefinitions,omitempty"`
	Rows              json.RawMessage `json:"rows,omitempty"`
	Items             json.RawMessage `json:"items"`
}

// mergedList is the lists of several members in one.
type mergedList struct {
	list
	// elements are the insides of the members' items or rows.
	elements [][]byte
}

// elements returns what is between the brackets of the items, or of the rows of a
// table.
func (l *list) elements() ([]byte, error) {
	array := l.Items
	if l.Kind == "Table" {
		array = l.Rows
	}
	array = bytes.TrimSpace(array)
	if len(array) == 0 || string(array) == "null" {
		return nil, nil
	}
	if array[0] != '[' {
		return nil, fmt.Errorf("reading the list: its items are no list")
	}
	return bytes.TrimSpace(array[1 : len(array)-1]), nil
}

// wantedList is the kind of list that was requested.
type wantedList struct {
	resource string
	// table is set if a table would do.
	table bool
}

// listKind is the kind of a list.
type listKind struct{ apiVersion, kind string }

// rank returns how well a kind of list matches what was requested; the kinds of types
// with an irregular plural are not recognized.
func (w wantedList) rank(k listKind) int {
	if k.kind == "Table" {
		if w.table {
			return 2
		}
		return 0
	}
	gv, err := schema.ParseGroupVersion(k.apiVersion)
	element, ok := strings.CutSuffix(k.kind, "List")
	if err != nil || !ok {
		return 0
	}
	if plural, _ := meta.UnsafeGuessKindToResource(gv.WithKind(element)); plural.Resource == w.resource {
		return 1
	}
	return 0
}

// choose returns the kind of the merged list: the one that answers best, of those the
// one that most members have, of those the first. No member decides alone what the
// others must have.
func choose(order []listKind, counts map[listKind]int, want wantedList) listKind {
	var best listKind
	for i, k := range order {
		if i == 0 || cmp.Or(cmp.Compare(want.rank(k), want.rank(best)), cmp.Compare(counts[k], counts[best])) > 0 {
			best = k
		}
	}
	return best
}

// merge joins the lists of members and returns the headers of the first. Replies
// that are no such list get an error.
func merge(replies []reply, want wantedList) (*mergedList, http.Header) {
	lists, counts := make([]*list, len(replies)), map[listKind]int{}
	var order []listKind
	for i := range replies {
		r := &replies[i]
		if r.err != nil || r.code != http.StatusOK {
			continue
		}
		l := &list{}
		if err := json.Unmarshal(r.body, l); err != nil {
			r.err = fmt.Errorf("reading the list: %w", err)
			continue
		}
		r.body, lists[i] = nil, l
		k := listKind{l.APIVersion, l.Kind}
		if counts[k]++; counts[k] == 1 {
			order = append(order, k)
		}
	}
	kind := choose(order, counts, want)
	var merged *mergedList
	var header http.Header
	for i, l := range lists {
		if l == nil {
			continue
		}
		r := &replies[i]
		if (listKind{l.APIVersion, l.Kind}) != kind {
			r.err = fmt.Errorf("the list is %.100q %.100q, others have %.100q %.100q", l.APIVersion, l.Kind, kind.apiVersion, kind.kind)
			continue
		}
		elements, err := l.elements()
		if err != nil {
			r.err = err
			continue
		}
		l.Items, l.Rows = nil, nil
		if merged == nil {
			merged, header = &mergedList{list: *l}, r.header
		}
		if len(elements) > 0 {
			merged.elements = append(merged.elements, elements)
		}
	}
	return merged, header
}

// write sends the list as JSON. Its metadata is not that of a member: no resource
// version or place to continue from is good for all of them.
func (l *mergedList) write(w io.Writer) error {
	head := map[string]any{"kind": l.Kind, "apiVersion": l.APIVersion, "metadata": struct{}{}}
	field := "items"
	if l.Kind == "Table" {
		field = "rows"
		head["columnDefinitions"] = l.ColumnDefinitions
	}
	text, err := json.Marshal(head)
	if err != nil {
		return fmt.Errorf("writing the list: %w", err)
	}
	parts := [][]byte{text[:len(text)-1], fmt.Appendf(nil, ",%q:[", field)}
	for i, elements := range l.elements {
		if i > 0 {
			parts = append(parts, []byte(","))
		}
		parts = append(parts, elements)
	}
	for _, part := range append(parts, []byte("]}\n")) {
		if _, err := w.Write(part); err != nil {
			return fmt.Errorf("writing the list: %w", err)
		}
	}
	return nil
}

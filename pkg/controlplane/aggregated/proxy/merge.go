package proxy

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
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

// merge joins the lists of members and returns the headers of the first. Replies
// that are no such list get an error.
func merge(replies []reply) (*mergedList, http.Header) {
	var merged *mergedList
	var header http.Header
	for i := range replies {
		r := &replies[i]
		if r.err != nil || r.code != http.StatusOK {
			continue
		}
		var l list
		if err := json.Unmarshal(r.body, &l); err != nil {
			r.err = fmt.Errorf("reading the list: %w", err)
			continue
		}
		r.body = nil
		elements, err := l.elements()
		if err != nil {
			r.err = err
			continue
		}
		l.Items, l.Rows = nil, nil
		if merged == nil {
			merged, header = &mergedList{list: l}, r.header
		}
		if l.Kind != merged.Kind || l.APIVersion != merged.APIVersion {
			r.err = fmt.Errorf("the list is %.100q %.100q, others have %.100q %.100q", l.APIVersion, l.Kind, merged.APIVersion, merged.Kind)
			continue
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

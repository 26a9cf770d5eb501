package proxy

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
)

// list is a list or a table of which only the outside is read.
type list struct {
	Kind       string `json:"kind"`
	APIVersion string `json:"apiVersion"`
	// Metadata is not that of a member: no resource version or place to continue
	// from is good for all of them.
	Metadata          struct{}          `json:"metadata"`
	ColumnDefinitions json.RawMessage   `json:"columnDefinitions,omitempty"`
	Rows              []json.RawMessage `json:"rows,omitempty"`
	Items             []json.RawMessage `json:"items"`
}

// merge joins the lists of members and returns the headers of the first. Replies
// that are no such list get an error.
func merge(replies []reply) (*list, http.Header) {
	var merged *list
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
		if merged == nil {
			merged, header = &l, r.header
			continue
		}
		if l.Kind != merged.Kind || l.APIVersion != merged.APIVersion {
			r.err = fmt.Errorf("the list is %s %s, others have %s %s", l.APIVersion, l.Kind, merged.APIVersion, merged.Kind)
			continue
		}
		merged.Items = append(merged.Items, l.Items...)
		merged.Rows = append(merged.Rows, l.Rows...)
	}
	return merged, header
}

// write sends the list as JSON.
func (l *list) write(w io.Writer) error {
	if l.Kind == "Table" {
		rows := l.Rows
		if rows == nil {
			rows = []json.RawMessage{}
		}
		return encode(w, struct {
			Kind              string            `json:"kind"`
			APIVersion        string            `json:"apiVersion"`
			Metadata          struct{}          `json:"metadata"`
			ColumnDefinitions json.RawMessage   `json:"columnDefinitions"`
			Rows              []json.RawMessage `json:"rows"`
		}{l.Kind, l.APIVersion, l.Metadata, l.ColumnDefinitions, rows})
	}
	out := *l
	if out.Items == nil {
		out.Items = []json.RawMessage{}
	}
	return encode(w, out)
}

func encode(w io.Writer, v any) error {
	if err := json.NewEncoder(w).Encode(v); err != nil {
		return fmt.Errorf("writing the list: %w", err)
	}
	return nil
}

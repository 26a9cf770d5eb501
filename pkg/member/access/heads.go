package access

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	// maxHeadText is the limit of a key, or of a value that identifies an object, in bytes of JSON.
	maxHeadText = 1024
	// headDepth is the number of levels above which no part of an identity is.
	headDepth = 6
)

// part is the part of a response that a JSON object or list is.
type part int

const (
	partOther  part = iota
	partEvent       // of a watch
	partObject      // the object, list or table itself
	partItem        // an object of a list or a table
	partMeta
	partItems
	partRows
	partRow
)

// keys returns the keys that matter in a part.
func (p part) keys() []string {
	switch p {
	case partEvent:
		return []string{"type", "object"}
	case partObject:
		return []string{"apiVersion", "kind", "metadata", "items", "rows"}
	case partItem:
		return []string{"apiVersion", "kind", "metadata", "items"}
	case partMeta:
		return []string{"namespace", "name"}
	case partRow:
		return []string{"object"}
	case partOther, partItems, partRows:
	}
	return nil
}

// level is a JSON object or list that has not ended.
type level struct {
	part part
	list bool
	// key is the current key, if it matters.
	key string
	// value is set after the colon.
	value bool
	seen  []string
}

// heads reads the identities of the objects in a response without decoding it, while it is read. It accepts only what
// all decoders understand in the same way: keys that matter are there once and in the right case.
type heads struct {
	want Identity
	// watch and list are set for a stream of events and for lists. created is set for the response to the creation of an
	// object, whose name is not known.
	watch, list, created bool
	shape                shape

	levels []level
	// below is the number of levels that are not in levels.
	below             int
	inString, escaped bool
	// text is the current string, if it may matter.
	text    []byte
	capture bool

	event           string
	object, item    Identity
	hasItems, ended bool
	// itemKind is the kind of the first object of a type whose kind is not known.
	itemKind string
}

// next checks the next bytes of a response.
func (h *heads) next(p []byte) error {
	for len(p) > 0 {
		if h.inString {
			n, err := h.scanText(p)
			if err != nil {
				return err
			}
			p = p[n:]
			continue
		}
		if err := h.byte(p[0]); err != nil {
			return err
		}
		p = p[1:]
	}
	return nil
}

// end checks a response that ended. A watch may end at any time.
func (h *heads) end() error {
	if !h.watch && !h.ended {
		return errors.New("it is not a complete object")
	}
	return nil
}

func (h *heads) byte(c byte) error {
	switch c {
	case ' ', '\t', '\r', '\n':
		return nil
	}
	if len(h.levels) == 0 {
		if c != '{' || h.ended && !h.watch {
			return errors.New("it is not one object")
		}
		h.ended, h.event, h.object, h.hasItems = false, "", Identity{}, false
	}
	switch c {
	case '"':
		h.inString, h.text = true, h.text[:0]
		h.capture = h.below == 0 && (h.top().part != partOther && !h.top().list)
	case '{', '[':
		return h.open(c == '[')
	case '}', ']':
		return h.close(c == ']')
	case ':':
		if h.below == 0 {
			h.top().value = true
		}
	case ',':
		if h.below == 0 {
			h.top().value, h.top().key = false, ""
		}
	}
	return nil
}

func (h *heads) top() *level { return &h.levels[len(h.levels)-1] }

func (h *heads) open(list bool) error {
	if h.below > 0 || len(h.levels) >= headDepth {
		h.below++
		return nil
	}
	p := partObject
	switch {
	case len(h.levels) > 0:
		p = h.partOf(list)
	case h.watch:
		p = partEvent
	}
	if p == partItem {
		h.item = Identity{}
	}
	if list && len(h.levels) > 0 && h.top().part == partItem && h.top().key == "items" {
		return errors.New("an object in it is a list")
	}
	if p == partItems || p == partRows {
		h.hasItems = true
	}
	h.levels = append(h.levels, level{part: p, list: list})
	return nil
}

// partOf returns the part that begins in the current level.
func (h *heads) partOf(list bool) part {
	top := h.top()
	if list {
		return listIn(top)
	}
	switch {
	case top.part == partEvent && top.key == "object":
		return partObject
	case top.part == partItems, top.part == partRow && top.key == "object":
		return partItem
	case top.part == partRows:
		return partRow
	case (top.part == partObject || top.part == partItem) && top.key == "metadata":
		return partMeta
	}
	return partOther
}

// listIn returns the part that a list is in a level.
func listIn(in *level) part {
	switch {
	case in.part == partObject && in.key == "items":
		return partItems
	case in.part == partObject && in.key == "rows":
		return partRows
	}
	return partOther
}

func (h *heads) close(list bool) error {
	if h.below > 0 {
		h.below--
		return nil
	}
	closed := *h.top()
	if closed.list != list {
		return errors.New("it is not JSON")
	}
	h.levels = h.levels[:len(h.levels)-1]
	h.ended = len(h.levels) == 0
	switch {
	case closed.part == partItem:
		return h.checkItem()
	case closed.part == partEvent:
		return h.checkEvent()
	case closed.part == partObject && !h.watch:
		return h.checkObject()
	}
	return nil
}

// scanText scans within a string and returns the number of bytes that it scanned.
func (h *heads) scanText(p []byte) (int, error) {
	if h.escaped {
		h.escaped = false
		h.keep(p[:1])
		return 1, nil
	}
	i := bytes.IndexAny(p, `"\`)
	if i < 0 {
		h.keep(p)
		return len(p), nil
	}
	h.keep(p[:i])
	if p[i] == '\\' {
		h.escaped = true
		h.keep(p[i : i+1])
		return i + 1, nil
	}
	h.inString = false
	if !h.capture {
		return i + 1, nil
	}
	return i + 1, h.string()
}

func (h *heads) keep(p []byte) {
	if h.capture && len(h.text) <= maxHeadText {
		h.text = append(h.text, p[:min(len(p), maxHeadText+1-len(h.text))]...)
	}
}

// string uses a key, or the value of one.
func (h *heads) string() error {
	top := h.top()
	if top.value && top.key == "" {
		return nil
	}
	var s string
	if len(h.text) > maxHeadText {
		if top.value {
			return fmt.Errorf("its %s is too long", top.key)
		}
		return nil
	}
	quoted := append(append([]byte{'"'}, h.text...), '"')
	if err := json.Unmarshal(quoted, &s); err != nil {
		return errors.New("it is not JSON")
	}
	if top.value {
		h.set(top, s)
		return nil
	}
	for _, key := range top.part.keys() {
		switch {
		case !strings.EqualFold(key, s):
		case key != s:
			return fmt.Errorf("it has the key %.40q beside %q", s, key)
		case slices.Contains(top.seen, key):
			return fmt.Errorf("it has the key %q twice", key)
		default:
			top.key = key
			top.seen = append(top.seen, key)
		}
	}
	return nil
}

// set stores a value that identifies an object.
func (h *heads) set(top *level, s string) {
	id := &h.object
	if slices.ContainsFunc(h.levels, func(l level) bool { return l.part == partItem }) {
		id = &h.item
	}
	switch {
	case top.part == partEvent && top.key == "type":
		h.event = s
	case top.part == partMeta && top.key == "namespace":
		id.Namespace = s
	case top.part == partMeta && top.key == "name":
		id.Name = s
	case top.part != partMeta && top.key == "apiVersion":
		id.APIVersion = s
	case top.part != partMeta && top.key == "kind":
		id.Kind = s
	}
}

// checkItem checks an object of a list or a table. Without an apiVersion and a kind it has those of the request.
func (h *heads) checkItem() error {
	got := h.item
	if got.APIVersion == "" && got.Kind == "" {
		got.APIVersion, got.Kind = h.want.APIVersion, h.want.Kind
	}
	if got.Name == "" && got.Namespace == "" && (h.list || h.shape.table) {
		// Bookmarks in tables have no metadata. Such an object is none that could be found again.
		want := h.want
		want.Namespace, want.Name = "", ""
		return h.checkAs(want, got)
	}
	return h.checkOne(got)
}

func (h *heads) checkOne(got Identity) error { return h.checkAs(h.want, got) }

func (h *heads) checkAs(want, got Identity) error {
	if h.created && got.Namespace == "" {
		want.Namespace = "" // reviews have none
	}
	if partial(got) && (h.shape.partial || h.shape.table) {
		want.APIVersion, want.Kind = got.APIVersion, got.Kind
		return want.Check(got)
	}
	if want.Kind == "" {
		if h.itemKind == "" {
			h.itemKind = got.Kind
		}
		want.Kind = h.itemKind
	}
	return want.Check(got)
}

// partial reports whether an object is only metadata.
func partial(got Identity) bool {
	return strings.HasPrefix(got.APIVersion, metav1.GroupName+"/") && got.Kind == "PartialObjectMetadata"
}

// checkEvent checks an event of a watch.
func (h *heads) checkEvent() error {
	switch h.event {
	case "ERROR":
		return Identity{APIVersion: "v1", Kind: "Status"}.Check(h.object)
	case "BOOKMARK":
		if h.object.Name == "" {
			h.object.Namespace, h.object.Name = h.want.Namespace, h.want.Name
		}
	}
	if h.hasItems || h.isTable() {
		return h.checkTable()
	}
	return h.checkOne(h.object)
}

// checkObject checks the object, list or table that a response is. Its items are checked already.
func (h *heads) checkObject() error {
	if h.isTable() {
		return h.checkTable()
	}
	if !h.list {
		if h.hasItems {
			return errors.New("it is a list and not the object that was requested")
		}
		return h.checkOne(h.object)
	}
	if h.shape.partial && strings.HasPrefix(h.object.APIVersion, metav1.GroupName+"/") && h.object.Kind == "PartialObjectMetadataList" {
		return nil
	}
	if h.object.APIVersion == "v1" && h.object.Kind == "List" {
		return nil // its items have their own kinds
	}
	want := Identity{APIVersion: h.want.APIVersion}
	if h.want.Kind != "" {
		want.Kind = h.want.Kind + "List"
	}
	return want.Check(h.object)
}

func (h *heads) isTable() bool {
	return h.shape.table && strings.HasPrefix(h.object.APIVersion, metav1.GroupName+"/") && h.object.Kind == "Table"
}

func (h *heads) checkTable() error {
	if !h.isTable() {
		return errors.New("it is a list and not the object that was requested")
	}
	return nil
}

// identifiedBody checks a response while it is read.
type identifiedBody struct {
	io.ReadCloser
	heads        *heads
	method, path string
	err          error
}

// Read implements io.Reader.
func (b *identifiedBody) Read(p []byte) (int, error) {
	if b.err != nil {
		return 0, b.err
	}
	n, err := b.ReadCloser.Read(p)
	problem := b.heads.next(p[:n])
	if problem == nil && errors.Is(err, io.EOF) {
		problem = b.heads.end()
	}
	if problem != nil {
		b.err = &IdentityError{Method: b.method, Path: b.path, Problem: problem}
		return 0, b.err
	}
	return n, err
}

// IdentityError is the error for a response with an object that was not requested.
type IdentityError struct {
	// Method and Path are those of the request.
	Method, Path string
	// Problem is what is wrong with the response.
	Problem error
}

// Error implements error.
func (e *IdentityError) Error() string {
	return fmt.Sprintf("the answer to %s %s was refused: %v", e.Method, e.Path, e.Problem)
}

// Unwrap returns the problem.
func (e *IdentityError) Unwrap() error { return e.Problem }

package limit

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	yamlv3 "go.yaml.in/yaml/v3"
)

const (
	// MaxFile is the length of a file that a command reads, in bytes.
	MaxFile = 64 << 20
	// MaxLines is how many lines, commas and brackets a manifest may have.
	MaxLines = 1 << 20
)

// Within returns what do returns, or an error when ctx ends first: nothing interrupts the opening of a FIFO, or reading one.
func Within[T any](ctx context.Context, name string, do func() (T, error)) (none T, err error) {
	var value T
	done := make(chan error, 1)
	go func() {
		var err error
		value, err = do()
		done <- err
	}()
	select {
	case err := <-done:
		return value, err
	case <-ctx.Done():
		return none, fmt.Errorf("reading %s: %w", name, context.Cause(ctx))
	}
}

// Read returns the content of a stream, or of the file of that name if r is nil, of limit bytes at most.
func Read(name string, r io.Reader, limit int64) ([]byte, error) {
	if r == nil {
		file, err := os.Open(name)
		if err != nil {
			return nil, err
		}
		defer file.Close() //nolint:errcheck // only read
		r = file
	}
	text, err := io.ReadAll(io.LimitReader(r, limit+1))
	if err == nil && int64(len(text)) > limit {
		err = fmt.Errorf("reading %s: it has more than %d MiB: use less, or several files", name, limit>>20)
	}
	return text, err
}

// ReadManifest is Read for YAML and JSON that a user gives. More than MaxLines lines, commas and brackets, and aliases that repeat more
// than MaxValues values, are errors: decoded, they take hundreds of times the memory of their text.
func ReadManifest(name string, r io.Reader) ([]byte, error) {
	text, err := Read(name, r, MaxFile)
	if err != nil {
		return nil, err
	}
	if n := separators(text); n > MaxLines {
		return nil, fmt.Errorf("%s has %d lines, commas and brackets, more than %d: split it into several files", name, n, MaxLines)
	}
	if !mayAlias(string(text)) || isJSON(text) {
		return text, nil
	}
	repeated, err := aliases(string(text))
	if err == nil && repeated > MaxValues {
		err = fmt.Errorf("its aliases repeat more than %d values, of 64 bytes of text each: use fewer aliases", MaxValues)
	}
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", name, err)
	}
	return text, nil
}

// isJSON reports whether text is a sequence of JSON values, which have no aliases.
func isJSON(text []byte) bool {
	var err error
	for decoder := json.NewDecoder(bytes.NewReader(text)); err == nil; {
		err = decoder.Decode(new(json.RawMessage))
	}
	return errors.Is(err, io.EOF)
}

// countValues returns the number of values of a node whose aliases are replaced, up to MaxValues+1, and adds those of aliases to
// repeated. anchors has the numbers of the anchors before it.
func countValues(node *yamlv3.Node, anchors map[*yamlv3.Node]int, repeated *int) int {
	if node.Kind == yamlv3.AliasNode {
		n, known := anchors[node.Alias]
		if !known {
			n = MaxValues + 1 // the alias is within its anchor
		}
		*repeated = min(*repeated+n, MaxValues+1)
		return n
	}
	n := 1 + len(node.Value)/64
	for _, child := range node.Content {
		n = min(n+countValues(child, anchors, repeated), MaxValues+1)
	}
	if node.Anchor != "" {
		anchors[node] = n
	}
	return n
}

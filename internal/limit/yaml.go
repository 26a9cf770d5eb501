package limit

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"strings"

	yamlv3 "go.yaml.in/yaml/v3"
	"sigs.k8s.io/yaml"
)

const (
	// MaxYAMLBytes is the length of a YAML document that YAMLToJSON reads, in bytes.
	MaxYAMLBytes = 3 << 20
	// MaxDepth is how many objects and lists may be in each other in a document.
	MaxDepth = 500
	// MaxValues is how many values a document may have.
	MaxValues = 1 << 18
)

// ErrAlias is the error for YAML with aliases: each repeats what its anchor names, so that few of them name gigabytes.
var ErrAlias = errors.New("YAML with aliases is not allowed")

// YAMLToJSON is yaml.YAMLToJSON for text that others write. An alias is an error, and so is text that is too long, is too deep or
// has too many values.
func YAMLToJSON(text []byte) ([]byte, error) {
	if len(text) > MaxYAMLBytes {
		return nil, fmt.Errorf("the YAML has %d bytes, more than %d", len(text), MaxYAMLBytes)
	}
	if n := separators(text); n > MaxValues {
		return nil, fmt.Errorf("the YAML has %d lines, commas and brackets, more than %d", n, MaxValues)
	}
	if mayAlias(string(text)) {
		if n, err := aliases(string(text)); err != nil || n > 0 {
			return nil, cmp.Or(err, ErrAlias)
		}
	}
	out, err := yaml.YAMLToJSON(text) //nolint:forbidigo // this is the function with limits
	if err != nil {
		return nil, err
	}
	return out, CheckJSON(out)
}

// separators returns at least the number of values of YAML, roughly: decoded, they take more than a hundred times their text.
func separators(text []byte) (n int) {
	for _, c := range text {
		switch c {
		case '\n', ',', '[', '{':
			n++
		}
	}
	return n
}

// mayAlias reports whether YAML has what looks like an anchor and an alias. Few documents do, in comments and scripts.
func mayAlias(text string) bool {
	return mayName(text, '&') && mayName(text, '*')
}

// mayName reports whether the indicator of an anchor or an alias is where one may begin: not in a word, before a name.
func mayName(text string, indicator byte) bool {
	for i := range len(text) - 1 {
		if text[i] != indicator || strings.IndexByte(" \t\r\n", text[i+1]) >= 0 {
			continue
		}
		if i == 0 || !isWord(text[i-1]) {
			return true
		}
	}
	return false
}

func isWord(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9'
}

// aliases returns the number of values that aliases repeat, up to MaxValues+1. It parses every document into nodes, in which aliases are
// not replaced.
func aliases(text string) (repeated int, err error) {
	decoder := yamlv3.NewDecoder(strings.NewReader(text))
	for {
		var node yamlv3.Node
		switch err := decoder.Decode(&node); {
		case errors.Is(err, io.EOF):
			return repeated, nil
		case err != nil:
			return 0, err
		}
		if countValues(&node, map[*yamlv3.Node]int{}, &repeated); repeated > MaxValues {
			return repeated, nil
		}
	}
}

// CheckJSON returns an error if JSON has more than MaxDepth objects and lists in each other, or more than MaxValues values: decoded,
// the smallest values take a hundred times the memory of their text.
func CheckJSON(data []byte) error {
	var s Scanner
	for len(data) > 0 && s.Problem == "" {
		n, _ := s.Next(data)
		data = data[n:]
	}
	if s.Problem != "" {
		return errors.New("the document is refused: " + s.Problem)
	}
	return nil
}

package limit

import (
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
)

// ErrAlias is the error for YAML with aliases: each repeats what its anchor names, so that few of them name gigabytes.
var ErrAlias = errors.New("YAML with aliases is not allowed")

// YAMLToJSON is yaml.YAMLToJSON for text that others write. An alias is an error, and so is too long or too deep text.
func YAMLToJSON(text []byte) ([]byte, error) {
	if len(text) > MaxYAMLBytes {
		return nil, fmt.Errorf("the YAML has %d bytes, more than %d", len(text), MaxYAMLBytes)
	}
	if mayAlias(string(text)) {
		if err := checkAliases(string(text)); err != nil {
			return nil, err
		}
	}
	out, err := yaml.YAMLToJSON(text)
	if err != nil {
		return nil, err
	}
	return out, JSONDepth(out)
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

// checkAliases parses every document into nodes, in which aliases are not replaced.
func checkAliases(text string) error {
	decoder := yamlv3.NewDecoder(strings.NewReader(text))
	for {
		var node yamlv3.Node
		switch err := decoder.Decode(&node); {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		}
		if hasAlias(&node, 0) {
			return ErrAlias
		}
	}
}

func hasAlias(node *yamlv3.Node, depth int) bool {
	if node.Kind == yamlv3.AliasNode || depth > 2*MaxDepth {
		return true
	}
	for _, child := range node.Content {
		if hasAlias(child, depth+1) {
			return true
		}
	}
	return false
}

// JSONDepth returns an error if JSON has more than MaxDepth objects and lists in each other.
func JSONDepth(data []byte) error {
	depth, quoted := 0, false
	for i := 0; i < len(data); i++ {
		switch c := data[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '{', c == '[':
			if depth++; depth > MaxDepth {
				return fmt.Errorf("the document has more than %d objects and lists in each other", MaxDepth)
			}
		case c == '}', c == ']':
			depth--
		}
	}
	return nil
}

// Package quantity parses quantities of other clusters and of users. The parser and
// the arithmetic of resource.Quantity take minutes for numbers such as 1e-300000000;
// those are refused before.
package quantity

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
)

const (
	// MaxLength is how many characters a quantity may have.
	MaxLength = 64
	// MaxExponent is the largest decimal exponent of a quantity, and -MaxExponent the
	// smallest: the suffixes end with E, which is 10^18.
	MaxExponent = 18
)

// ErrRange is the error for a quantity that is refused before it is parsed.
var ErrRange = errors.New("quantity out of range")

// Check returns an error that is ErrRange if s is too long or has too large an
// exponent to be a quantity. It does not check whether s is one.
func Check(s string) error {
	if len(s) > MaxLength {
		return fmt.Errorf("%w: it has %d characters, more than %d", ErrRange, len(s), MaxLength)
	}
	return checkNumber(s, MaxLength, MaxExponent)
}

// checkNumber returns an error that is ErrRange if s begins, after spaces, with a number of more characters or with a larger
// exponent.
func checkNumber(s string, maxLength, maxExponent int) error {
	s = strings.TrimSpace(s)
	suffix := strings.TrimLeft(s, "+-.0123456789")
	if length := len(s) - len(suffix); length > maxLength {
		return fmt.Errorf("%w: a number has %d characters", ErrRange, length)
	}
	if suffix == "" || suffix[0] != 'e' && suffix[0] != 'E' {
		return nil
	}
	exponent, err := strconv.Atoi(suffix[1:])
	if errors.Is(err, strconv.ErrRange) || err == nil && (exponent > maxExponent || exponent < -maxExponent) {
		return fmt.Errorf("%w: %.64q has an exponent beyond %d", ErrRange, s, maxExponent)
	}
	return nil
}

// Parse is resource.ParseQuantity for unchecked text.
func Parse(s string) (resource.Quantity, error) {
	if err := Check(s); err != nil {
		return resource.Quantity{}, err
	}
	q, err := resource.ParseQuantity(s)
	if err != nil {
		return q, fmt.Errorf("parsing %q: %w", s, err)
	}
	return q, nil
}

// ParseJSON is Parse for a text or number of JSON.
func ParseJSON(value []byte) (resource.Quantity, error) {
	return Parse(strings.Trim(string(value), `"`))
}

// Lenient is a quantity in JSON of which a value that cannot be used counts as 0.
type Lenient struct{ resource.Quantity }

// UnmarshalJSON implements json.Unmarshaler.
func (l *Lenient) UnmarshalJSON(data []byte) error {
	l.Quantity = resource.Quantity{}
	if q, err := ParseJSON(data); err == nil {
		l.Quantity = q
	}
	return nil
}

const (
	// costlyLength and costlyExponent are from where the parser takes long. They are far beyond any quantity.
	costlyLength   = 1000
	costlyExponent = 9999
	// maxDepth is how many objects and lists may be in each other, as for the decoders.
	maxDepth = 10000
)

// CheckJSON returns an error that is ErrRange if JSON has a quantity of a type, such as that of a Deployment, that the parser
// would take long for, and another error if it cannot be read. It is called before the JSON is decoded into the type. Numbers
// without quotes are covered, and fields that are given twice. Text that is no quantity of the type has no limits.
func CheckJSON(data []byte, t reflect.Type) error {
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.UseNumber()
	return checkNext(decoder, t, 0)
}

// checkNext checks the next value, which is decoded into the type. Without a type it is not decoded.
func checkNext(decoder *json.Decoder, t reflect.Type, depth int) error {
	if t == nil {
		return decoder.Decode(new(json.RawMessage))
	}
	token, err := decoder.Token()
	if err != nil {
		return err
	}
	start, nested := token.(json.Delim)
	if !nested {
		return checkScalar(token, t)
	}
	if depth == maxDepth {
		return fmt.Errorf("more than %d objects and lists are in each other", maxDepth)
	}
	for decoder.More() {
		element := elementOf(t)
		if start == '{' {
			key, err := decoder.Token()
			if err != nil {
				return err
			}
			name, _ := key.(string)
			element = fieldOf(t, name)
		}
		if err := checkNext(decoder, element, depth+1); err != nil {
			return err
		}
	}
	_, err = decoder.Token()
	return err
}

// CheckTree is CheckJSON for a tree of plain values.
func CheckTree(tree any, t reflect.Type) error {
	if t == nil || !costly(tree) {
		return nil // as almost all: the types do not matter
	}
	return checkTree(tree, t)
}

// costly reports whether a tree has text that the parser of quantities would take long for.
func costly(tree any) bool {
	switch v := tree.(type) {
	case []any:
		return slices.ContainsFunc(v, costly)
	case map[string]any:
		for _, value := range v {
			if costly(value) {
				return true
			}
		}
	case string:
		return checkCost(v) != nil
	case json.Number:
		return checkCost(v.String()) != nil
	}
	return false
}

func checkTree(tree any, t reflect.Type) error {
	if t == nil {
		return nil
	}
	switch v := tree.(type) {
	case []any:
		for _, value := range v {
			if err := checkTree(value, elementOf(t)); err != nil {
				return err
			}
		}
	case map[string]any:
		for key, value := range v {
			if err := checkTree(value, fieldOf(t, key)); err != nil {
				return err
			}
		}
	default:
		return checkScalar(v, t)
	}
	return nil
}

func checkScalar(value any, t reflect.Type) error {
	if !isQuantity(indirect(t)) {
		return nil
	}
	switch v := value.(type) {
	case string:
		return checkCost(v)
	case json.Number:
		return checkCost(v.String())
	}
	return nil
}

func checkCost(s string) error { return checkNumber(s, costlyLength, costlyExponent) }

func isQuantity(t reflect.Type) bool { return t == reflect.TypeFor[resource.Quantity]() }

func indirect(t reflect.Type) reflect.Type {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	return t
}

// elementOf returns the type that the elements of a list are decoded into, or nil. Whatever is in a quantity counts as one.
func elementOf(t reflect.Type) reflect.Type {
	switch t = indirect(t); {
	case isQuantity(t):
		return t
	case t.Kind() == reflect.Slice, t.Kind() == reflect.Array:
		return t.Elem()
	}
	return nil
}

// fieldOf returns the type that the value of a key is decoded into, or nil. Some decoders ignore the case of names.
func fieldOf(t reflect.Type, key string) reflect.Type {
	switch t = indirect(t); {
	case isQuantity(t):
		return t
	case t.Kind() == reflect.Map:
		return t.Elem()
	case t.Kind() != reflect.Struct:
		return nil
	}
	for field := range t.Fields() {
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		if name == "" && field.Anonymous {
			if found := fieldOf(field.Type, key); found != nil {
				return found
			}
			continue
		}
		if strings.EqualFold(cmp.Or(name, field.Name), key) {
			return field.Type
		}
	}
	return nil
}

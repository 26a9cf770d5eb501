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
	"io"
	"reflect"
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
	i := strings.IndexAny(s, "eE")
	if i < 0 || i == len(s)-1 {
		return nil // no exponent, or the suffix E
	}
	exponent, err := strconv.Atoi(s[i+1:])
	switch {
	case errors.Is(err, strconv.ErrRange), err == nil && (exponent > MaxExponent || exponent < -MaxExponent):
		return fmt.Errorf("%w: %q has an exponent beyond %d", ErrRange, s, MaxExponent)
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

// Lenient is a quantity in JSON of which a value that cannot be used counts as 0.
type Lenient struct{ resource.Quantity }

// UnmarshalJSON implements json.Unmarshaler.
func (l *Lenient) UnmarshalJSON(data []byte) error {
	text := string(data)
	if len(data) > 0 && data[0] == '"' {
		if err := json.Unmarshal(data, &text); err != nil {
			return err
		}
	}
	l.Quantity = resource.Quantity{}
	if q, err := Parse(text); err == nil {
		l.Quantity = q
	}
	return nil
}

const (
	// costlyLength and costlyExponent are from where the parser takes long. They are far
	// beyond any quantity, and rare in other text, such as abbreviated hashes.
	costlyLength   = 1000
	costlyExponent = 9999
	// costlyDigits is how many digits a larger exponent has at least.
	costlyDigits = 5
)

// CheckJSON returns an error that is ErrRange if JSON has a quantity of a type, such as that of a Deployment, that the parser
// would take long for. It is called before the JSON is decoded into the type. Numbers without quotes are covered, and fields
// that are given twice.
func CheckJSON(data []byte, t reflect.Type) error {
	if !suspicious(data) {
		return nil
	}
	all, err := costlyTokens(data)
	if err != nil || all == 0 {
		return err
	}
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.UseNumber()
	var tree any
	if err := decoder.Decode(&tree); err != nil {
		return err
	}
	seen := 0
	walk(tree, func(string) { seen++ })
	if seen != all {
		return fmt.Errorf("%w: a field with a number of that size is given twice", ErrRange)
	}
	return CheckTree(tree, t)
}

// costlyTokens returns the number of values that checkCost refuses, repeated fields included.
func costlyTokens(data []byte) (int, error) {
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.UseNumber()
	n := 0
	// isKey has an element for each open object or array: whether the next token is a key, never in arrays.
	var isKey, isObject []bool
	for {
		token, err := decoder.Token()
		if errors.Is(err, io.EOF) {
			return n, nil
		}
		if err != nil {
			return 0, err
		}
		last := len(isKey) - 1
		if delim, ok := token.(json.Delim); ok && (delim == '}' || delim == ']') {
			isKey, isObject = isKey[:last], isObject[:last]
			continue
		}
		if last >= 0 && isKey[last] {
			isKey[last] = false
			continue
		}
		if last >= 0 {
			isKey[last] = isObject[last]
		}
		switch v := token.(type) {
		case json.Delim:
			isKey, isObject = append(isKey, v == '{'), append(isObject, v == '{')
		case string:
			n += costly(v)
		case json.Number:
			n += costly(v.String())
		}
	}
}

func costly(s string) int {
	if checkCost(s) != nil {
		return 1
	}
	return 0
}

// suspicious reports whether JSON may have a text or number that checkCost refuses. It
// spares most objects the reading of every token.
func suspicious(data []byte) bool {
	digits := 0 // before i
	for i, c := range data {
		switch {
		case c == '\\' && i+1 < len(data) && data[i+1] == 'u':
			return true // may be any character
		case c == 'e', c == 'E':
			rest := data[i+1:]
			if len(rest) > 0 && (rest[0] == '+' || rest[0] == '-') {
				rest = rest[1:]
			}
			if len(rest) >= costlyDigits && len(bytes.TrimLeft(rest[:costlyDigits], "0123456789")) == 0 {
				return true
			}
			digits = 0
		case c == '+', c == '-', c == '.', '0' <= c && c <= '9':
			if digits++; digits >= costlyLength {
				return true
			}
		default:
			digits = 0
		}
	}
	return false
}

// CheckTree is CheckJSON for a tree of plain values. Text that is no quantity of the type has no limits.
func CheckTree(tree any, t reflect.Type) error {
	suspected := false
	walk(tree, func(string) { suspected = true })
	if !suspected {
		return nil // as almost every tree
	}
	return checkTyped(tree, t)
}

// CheckAny returns an error that is ErrRange if any text or number of a tree is one that the parser would take long for.
func CheckAny(tree any) error {
	var err error
	walk(tree, func(s string) { err = checkCost(s) })
	return err
}

// walk calls fn for the texts and numbers of a tree that checkCost refuses.
func walk(tree any, fn func(string)) {
	switch v := tree.(type) {
	case string:
		if checkCost(v) != nil {
			fn(v)
		}
	case json.Number:
		walk(v.String(), fn)
	case map[string]any:
		for _, field := range v {
			walk(field, fn)
		}
	case []any:
		for _, element := range v {
			walk(element, fn)
		}
	}
}

// checkTyped checks what is decoded into quantities.
func checkTyped(tree any, t reflect.Type) error {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if t == reflect.TypeFor[resource.Quantity]() || t == reflect.TypeFor[Lenient]() {
		return CheckAny(tree)
	}
	switch v := tree.(type) {
	case []any:
		if t.Kind() == reflect.Slice || t.Kind() == reflect.Array {
			for _, element := range v {
				if err := checkTyped(element, t.Elem()); err != nil {
					return err
				}
			}
		}
	case map[string]any:
		for key, value := range v {
			if field := fieldOf(t, key); field != nil {
				if err := checkTyped(value, field); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// fieldOf returns the type that the value of a key is decoded into, or nil. Some decoders ignore the case of names.
func fieldOf(t reflect.Type, key string) reflect.Type {
	if t.Kind() == reflect.Map {
		return t.Elem()
	}
	if t.Kind() != reflect.Struct {
		return nil
	}
	for field := range t.Fields() {
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		if name == "" && field.Anonymous {
			embedded := field.Type
			if embedded.Kind() == reflect.Pointer {
				embedded = embedded.Elem()
			}
			if found := fieldOf(embedded, key); found != nil {
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

func checkCost(s string) error {
	digits := strings.Trim(s[:min(len(s), costlyLength)], "+-.0123456789")
	if digits == "" && len(s) > costlyLength {
		return fmt.Errorf("%w: a number has %d characters", ErrRange, len(s))
	}
	i := strings.IndexAny(s, "eE")
	if i < 0 || i > costlyLength || strings.Trim(s[:i], "+-.0123456789") != "" {
		return nil
	}
	exponent, err := strconv.Atoi(s[i+1:])
	if errors.Is(err, strconv.ErrRange) || err == nil && (exponent > costlyExponent || exponent < -costlyExponent) {
		return fmt.Errorf("%w: %.64q has an exponent beyond %d", ErrRange, s, costlyExponent)
	}
	return nil
}

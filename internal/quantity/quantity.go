// Package quantity parses quantities of other clusters and of users. The parser and
// the arithmetic of resource.Quantity take minutes for numbers such as 1e-300000000;
// those are refused before.
package quantity

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
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

// CheckJSON is CheckTree for JSON. It also covers numbers without quotes and fields that
// are given twice, which no tree has.
func CheckJSON(data []byte) error {
	if !suspicious(data) {
		return nil
	}
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.UseNumber()
	for {
		token, err := decoder.Token()
		switch v := token.(type) {
		case string:
			err = checkCost(v)
		case json.Number:
			err = checkCost(v.String())
		}
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		}
	}
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

// CheckTree returns an error that is ErrRange if a tree of plain values has a text that
// the parser of quantities would take long for. It is called before a tree is decoded
// into types with quantities; text that is none has no limits.
func CheckTree(tree any) error {
	switch v := tree.(type) {
	case string:
		return checkCost(v)
	case map[string]any:
		for _, field := range v {
			if err := CheckTree(field); err != nil {
				return err
			}
		}
	case []any:
		for _, element := range v {
			if err := CheckTree(element); err != nil {
				return err
			}
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

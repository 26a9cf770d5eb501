// Package limit holds limits: the flag for a number of requests per second that counts
// only when it was given, checks of settings, and documents that others write.
package limit

import (
	"fmt"
	"strconv"
)

// Limit is a number of requests per second that counts only when it was given.
type Limit struct {
	value float32
	given bool
}

// New returns a limit that was not given, whose flag shows value as its default.
func New(value float32) Limit { return Limit{value: value} }

// QPS returns the limit, or 0 for none.
func (l *Limit) QPS() float32 {
	if !l.given {
		return 0
	}
	return l.value
}

// String implements pflag.Value.
func (l *Limit) String() string { return strconv.FormatFloat(float64(l.value), 'g', -1, 32) }

// Type implements pflag.Value.
func (l *Limit) Type() string { return "float32" }

// Set implements pflag.Value.
func (l *Limit) Set(text string) error {
	v, err := strconv.ParseFloat(text, 32)
	if err != nil {
		return fmt.Errorf("%q is not a number: %w", text, err)
	}
	l.value, l.given = float32(v), true
	return nil
}

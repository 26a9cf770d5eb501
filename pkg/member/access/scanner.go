package access

import (
	"bytes"
	"fmt"
)

// scanner counts the values and the nesting of JSON without decoding it. It does not
// check the syntax.
type scanner struct {
	maxValues, maxDepth int

	values, depth     int
	inString, escaped bool
	// began is set after the first byte of a value.
	began bool
	// problem is set once a limit is exceeded.
	problem string
}

// reset prepares the scanner for the next value.
func (s *scanner) reset() {
	s.values, s.depth, s.began, s.inString, s.escaped = 0, 0, false, false, false
}

// next scans p up to the end of the current object or list. It returns the number of
// bytes that it scanned, and whether the last one is the end of the value.
func (s *scanner) next(p []byte) (n int, end bool) {
	for n < len(p) {
		if s.inString {
			n += s.text(p[n:])
			continue
		}
		c := p[n]
		n++
		switch c {
		case '"':
			s.inString, s.began = true, true
		case ',':
			s.count()
		case '{', '[':
			s.began = true
			s.count()
			if s.depth++; s.depth > s.maxDepth && s.problem == "" {
				s.problem = fmt.Sprintf("it is nested more than %d deep", s.maxDepth)
			}
		case '}', ']':
			if s.depth--; s.depth <= 0 && s.began {
				s.depth = 0
				return n, true
			}
		}
		if s.problem != "" {
			return n, false
		}
	}
	return n, false
}

// text scans within a string and returns the number of bytes that it scanned.
func (s *scanner) text(p []byte) int {
	if s.escaped {
		s.escaped = false
		return 1
	}
	i := bytes.IndexAny(p, `"\`)
	if i < 0 {
		return len(p)
	}
	if p[i] == '"' {
		s.inString = false
	} else {
		s.escaped = true
	}
	return i + 1
}

func (s *scanner) count() {
	if s.values++; s.values > s.maxValues && s.problem == "" {
		s.problem = fmt.Sprintf("it has more than %d values", s.maxValues)
	}
}

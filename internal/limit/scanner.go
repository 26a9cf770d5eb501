package limit

import (
	"bytes"
	"fmt"
)

// Scanner counts the values and the nesting of JSON without decoding it, up to MaxValues and MaxDepth. It does not check the
// syntax. The zero value is ready for use.
type Scanner struct {
	values, depth     int
	inString, escaped bool
	// began is set after the first byte of a value.
	began bool
	// Problem is set once a limit is exceeded.
	Problem string
}

// Reset prepares the scanner for the next value.
func (s *Scanner) Reset() {
	s.values, s.depth, s.began, s.inString, s.escaped = 0, 0, false, false, false
}

// Next scans p up to the end of the current object or list. It returns the number of
// bytes that it scanned, and whether the last one is the end of the value.
func (s *Scanner) Next(p []byte) (n int, end bool) {
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
			if s.depth++; s.depth > MaxDepth && s.Problem == "" {
				s.Problem = fmt.Sprintf("it is nested more than %d deep", MaxDepth)
			}
		case '}', ']':
			if s.depth--; s.depth <= 0 && s.began {
				s.depth = 0
				return n, true
			}
		}
		if s.Problem != "" {
			return n, false
		}
	}
	return n, false
}

// text scans within a string and returns the number of bytes that it scanned.
func (s *Scanner) text(p []byte) int {
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

func (s *Scanner) count() {
	if s.values++; s.values > MaxValues && s.Problem == "" {
		s.Problem = fmt.Sprintf("it has more than %d values", MaxValues)
	}
}

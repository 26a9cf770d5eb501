package lua

import "errors"

// The limits of patterns, as in Lua.
const (
	maxCaptures = 32
	maxNesting  = 200
)

const (
	captureOpen     = -1
	capturePosition = -2
)

var (
	errMalformed      = errors.New("malformed pattern")
	errTooManyCapture = errors.New("too many captures")
	errBadCapture     = errors.New("invalid pattern capture")
	errTooComplex     = errors.New("pattern too complex")
)

// matcher matches a Lua pattern, and counts its steps so that no pattern can run
// for long unseen.
type matcher struct {
	src, pattern string
	captures     [maxCaptures]capture
	level        int
	nesting      int
	step         func(n int)
	err          error
}

// capture is where a part of the pattern matched.
type capture struct{ start, length int }

// find looks for the pattern from a position on and returns where it starts and
// ends.
func (m *matcher) find(init int) (start, end int, ok bool) {
	p, anchored := 0, false
	if m.pattern != "" && m.pattern[0] == '^' {
		p, anchored = 1, true
	}
	for s := init; s <= len(m.src); s++ {
		m.level = 0
		if e := m.match(s, p); e >= 0 {
			return s, e, true
		}
		if anchored || m.err != nil {
			break
		}
	}
	return 0, 0, false
}

func (m *matcher) fail(err error) int {
	if m.err == nil {
		m.err = err
	}
	return -1
}

// match matches pattern[p:] at src[s:] and returns where the match ends, or -1.
func (m *matcher) match(s, p int) int {
	if m.nesting++; m.nesting > maxNesting {
		return m.fail(errTooComplex)
	}
	defer func() { m.nesting-- }()
	for {
		m.step(1)
		if m.err != nil {
			return -1
		}
		if p == len(m.pattern) {
			return s
		}
		switch c := m.pattern[p]; {
		case c == '(':
			return m.group(s, p)
		case c == ')':
			return m.closeCapture(s, p+1)
		case c == '$' && p+1 == len(m.pattern):
			if s < len(m.src) {
				return -1
			}
			return s
		}
		next, end, done := m.item(s, p)
		if done {
			return next
		}
		s, p = next, end
	}
}

// group starts a capture or takes a position.
func (m *matcher) group(s, p int) int {
	if p+1 < len(m.pattern) && m.pattern[p+1] == ')' {
		return m.openCapture(s, p+2, capturePosition)
	}
	return m.openCapture(s, p+1, captureOpen)
}

// item matches one item of the pattern. When done, next is the result of the
// whole match; otherwise matching goes on at next and end.
func (m *matcher) item(s, p int) (next, end int, done bool) {
	if m.pattern[p] == '%' && p+1 < len(m.pattern) {
		if next, end, special := m.special(s, p); special {
			return next, end, next < 0
		}
	}
	return m.single(s, p)
}

// special matches %b, %f and back references.
func (m *matcher) special(s, p int) (next, end int, special bool) {
	switch c := m.pattern[p+1]; {
	case c == 'b':
		return m.balanced(s, p+2), p + 4, true
	case c == 'f':
		return m.frontier(s, p+2)
	case c >= '0' && c <= '9':
		return m.backReference(s, int(c-'1')), p + 2, true
	}
	return 0, 0, false
}

// single matches a character class with its suffix.
func (m *matcher) single(s, p int) (next, end int, done bool) {
	end = m.classEnd(p)
	if end < 0 {
		return -1, 0, true
	}
	var suffix byte
	if end < len(m.pattern) {
		suffix = m.pattern[end]
	}
	matched := s < len(m.src) && m.class(m.src[s], p, end)
	switch suffix {
	case '?':
		if matched {
			if r := m.match(s+1, end+1); r >= 0 || m.err != nil {
				return r, 0, true
			}
		}
		return s, end + 1, false
	case '+':
		if !matched {
			return -1, 0, true
		}
		return m.most(s+1, p, end), 0, true
	case '*':
		return m.most(s, p, end), 0, true
	case '-':
		return m.least(s, p, end), 0, true
	}
	if !matched {
		return -1, 0, true
	}
	return s + 1, end, false
}

// most matches as many of a class as it can.
func (m *matcher) most(s, p, end int) int {
	i := 0
	for s+i < len(m.src) && m.class(m.src[s+i], p, end) {
		m.step(1)
		i++
	}
	for ; i >= 0; i-- {
		if r := m.match(s+i, end+1); r >= 0 || m.err != nil {
			return r
		}
	}
	return -1
}

// least matches as few of a class as it can.
func (m *matcher) least(s, p, end int) int {
	for {
		if r := m.match(s, end+1); r >= 0 || m.err != nil {
			return r
		}
		if s >= len(m.src) || !m.class(m.src[s], p, end) {
			return -1
		}
		s++
	}
}

func (m *matcher) openCapture(s, p, what int) int {
	if m.level >= maxCaptures {
		return m.fail(errTooManyCapture)
	}
	m.captures[m.level] = capture{s, what}
	m.level++
	r := m.match(s, p)
	if r < 0 {
		m.level--
	}
	return r
}

func (m *matcher) closeCapture(s, p int) int {
	for l := m.level - 1; l >= 0; l-- {
		if m.captures[l].length != captureOpen {
			continue
		}
		m.captures[l].length = s - m.captures[l].start
		r := m.match(s, p)
		if r < 0 {
			m.captures[l].length = captureOpen
		}
		return r
	}
	return m.fail(errBadCapture)
}

// balanced matches %bxy; p is where x is.
func (m *matcher) balanced(s, p int) int {
	if p+1 >= len(m.pattern) {
		return m.fail(errMalformed)
	}
	first, last := m.pattern[p], m.pattern[p+1]
	if s >= len(m.src) || m.src[s] != first {
		return -1
	}
	depth := 1
	for i := s + 1; i < len(m.src); i++ {
		m.step(1)
		switch m.src[i] {
		case last:
			if depth--; depth == 0 {
				return i + 1
			}
		case first:
			depth++
		}
	}
	return -1
}

// frontier matches %f[set]; p is where the set is.
func (m *matcher) frontier(s, p int) (next, end int, special bool) {
	if p >= len(m.pattern) || m.pattern[p] != '[' {
		return m.fail(errMalformed), 0, true
	}
	if end = m.classEnd(p); end < 0 {
		return -1, 0, true
	}
	var before, after byte
	if s > 0 {
		before = m.src[s-1]
	}
	if s < len(m.src) {
		after = m.src[s]
	}
	if m.set(before, p, end-1) || !m.set(after, p, end-1) {
		return -1, end, true
	}
	return s, end, true
}

func (m *matcher) backReference(s, l int) int {
	if l < 0 || l >= m.level || m.captures[l].length == captureOpen {
		return m.fail(errBadCapture)
	}
	c := m.captures[l]
	length := max(c.length, 0)
	m.step(length)
	if len(m.src)-s < length || m.src[c.start:c.start+length] != m.src[s:s+length] {
		return -1
	}
	return s + length
}

// classEnd returns where the class at p ends, or -1.
func (m *matcher) classEnd(p int) int {
	c := m.pattern[p]
	p++
	switch c {
	case '%':
		if p >= len(m.pattern) {
			return m.fail(errMalformed)
		}
		return p + 1
	case '[':
		if p < len(m.pattern) && m.pattern[p] == '^' {
			p++
		}
		for first := true; ; first = false {
			if p >= len(m.pattern) {
				return m.fail(errMalformed)
			}
			c := m.pattern[p]
			p++
			if c == ']' && !first {
				return p
			}
			if c == '%' {
				p++
			}
		}
	}
	return p
}

// class says whether a character is in the class at pattern[p:end].
func (m *matcher) class(c byte, p, end int) bool {
	switch m.pattern[p] {
	case '.':
		return true
	case '%':
		return inClass(c, m.pattern[p+1])
	case '[':
		return m.set(c, p, end-1)
	}
	return m.pattern[p] == c
}

// set says whether a character is in the set that starts at p with [ and ends at
// end with ].
func (m *matcher) set(c byte, p, end int) bool {
	m.step((end - p) / 8)
	in := true
	p++
	if m.pattern[p] == '^' {
		in = false
		p++
	}
	for ; p < end; p++ {
		switch {
		case m.pattern[p] == '%' && p+1 < end:
			p++
			if inClass(c, m.pattern[p]) {
				return in
			}
		case p+2 < end && m.pattern[p+1] == '-':
			if m.pattern[p] <= c && c <= m.pattern[p+2] {
				return in
			}
			p += 2
		case m.pattern[p] == c:
			return in
		}
	}
	return !in
}

// inClass says whether a character is in %class.
func inClass(c, class byte) bool {
	in, known := member(c, class|0x20)
	if !known || !letter(class) {
		return class == c
	}
	return in == (class&0x20 != 0)
}

// member says whether a character is in a class and whether there is one of that
// letter.
func member(c, class byte) (in, known bool) {
	switch class {
	case 'a':
		return letter(c), true
	case 'c':
		return control(c), true
	case 'd':
		return digit(c), true
	case 'l':
		return letter(c) && c&0x20 != 0, true
	case 'p':
		return punctuation(c), true
	case 's':
		return space(c), true
	case 'u':
		return letter(c) && c&0x20 == 0, true
	case 'w':
		return letter(c) || digit(c), true
	case 'x':
		return hexadecimal(c), true
	case 'z':
		return c == 0, true
	}
	return false, false
}

func control(c byte) bool { return c < 0x20 || c == 0x7f }

func hexadecimal(c byte) bool { return digit(c) || 'a' <= c|0x20 && c|0x20 <= 'f' }

func space(c byte) bool { return c == ' ' || '\t' <= c && c <= '\r' }

func punctuation(c byte) bool { return 0x20 < c && c < 0x7f && !letter(c) && !digit(c) }

func letter(c byte) bool { return 'a' <= c|0x20 && c|0x20 <= 'z' }

func digit(c byte) bool { return '0' <= c && c <= '9' }

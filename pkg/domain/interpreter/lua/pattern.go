package lua

import (
	"errors"
	"strings"

	glua "github.com/yuin/gopher-lua"
)

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

	errUnfinishedCapture = errors.New("unfinished capture")
)

// matcher matches a Lua pattern. It counts its steps, so that the budget of the
// call bounds them.
type matcher struct {
	src      string
	pattern  pattern
	captures captures
	nesting  int
	step     func(n int)
	err      error
}

func newMatcher(src, text string, step func(n int)) *matcher {
	return &matcher{src: src, pattern: pattern{text: text, step: step}, step: step}
}

// find looks for the pattern from a position on and returns where it starts and
// ends.
func (m *matcher) find(init int) (start, end int, ok bool) {
	p, anchored := 0, false
	if text := m.pattern.text; text != "" && text[0] == '^' {
		p, anchored = 1, true
	}
	for s := init; s <= len(m.src); s++ {
		m.captures.level = 0
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
		if p == len(m.pattern.text) {
			return s
		}
		switch c := m.pattern.text[p]; {
		case c == '(':
			return m.openCapture(s, p+1)
		case c == ')':
			return m.closeCapture(s, p+1)
		case c == '$' && p+1 == len(m.pattern.text):
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

// item matches one item of the pattern. When done, next is the result of the
// whole match; otherwise matching goes on at next and end.
func (m *matcher) item(s, p int) (next, end int, done bool) {
	if m.pattern.text[p] == '%' && p+1 < len(m.pattern.text) {
		if next, end, special := m.special(s, p); special {
			return next, end, next < 0
		}
	}
	return m.single(s, p)
}

// special matches %b, %f and back references.
func (m *matcher) special(s, p int) (next, end int, special bool) {
	switch c := m.pattern.text[p+1]; {
	case c == 'b' && p+3 >= len(m.pattern.text):
		return m.fail(errMalformed), 0, true
	case c == 'b':
		return balanced(m.src, s, m.pattern.text[p+2], m.pattern.text[p+3], m.step), p + 4, true
	case c == 'f':
		return m.frontier(s, p+2)
	case digit(c):
		return m.backReference(s, int(c-'1')), p + 2, true
	}
	return 0, 0, false
}

// single matches a character class with its suffix.
func (m *matcher) single(s, p int) (next, end int, done bool) {
	end, err := m.pattern.classEnd(p)
	if err != nil {
		return m.fail(err), 0, true
	}
	var suffix byte
	if end < len(m.pattern.text) {
		suffix = m.pattern.text[end]
	}
	matched := s < len(m.src) && m.pattern.class(m.src[s], p, end)
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
	for s+i < len(m.src) && m.pattern.class(m.src[s+i], p, end) {
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
		if s >= len(m.src) || !m.pattern.class(m.src[s], p, end) {
			return -1
		}
		s++
	}
}

// openCapture starts the capture whose pattern is at p, or, for (), takes the
// position.
func (m *matcher) openCapture(s, p int) int {
	length := captureOpen
	if p < len(m.pattern.text) && m.pattern.text[p] == ')' {
		p, length = p+1, capturePosition
	}
	if !m.captures.push(capture{s, length}) {
		return m.fail(errTooManyCapture)
	}
	r := m.match(s, p)
	if r < 0 {
		m.captures.level--
	}
	return r
}

// closeCapture ends the innermost open capture.
func (m *matcher) closeCapture(s, p int) int {
	c := m.captures.innermost()
	if c == nil {
		return m.fail(errBadCapture)
	}
	c.length = s - c.start
	r := m.match(s, p)
	if r < 0 {
		c.length = captureOpen
	}
	return r
}

// balanced matches from first at src[s:] to the last that balances it, and returns
// where the match ends, or -1.
func balanced(src string, s int, first, last byte, step func(n int)) int {
	if s >= len(src) || src[s] != first {
		return -1
	}
	depth := 1
	for i := s + 1; i < len(src); i++ {
		step(1)
		switch src[i] {
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
	if p >= len(m.pattern.text) || m.pattern.text[p] != '[' {
		return m.fail(errMalformed), 0, true
	}
	end, err := m.pattern.classEnd(p)
	if err != nil {
		return m.fail(err), 0, true
	}
	var before, after byte
	if s > 0 {
		before = m.src[s-1]
	}
	if s < len(m.src) {
		after = m.src[s]
	}
	if m.pattern.set(before, p, end-1) || !m.pattern.set(after, p, end-1) {
		return -1, end, true
	}
	return s, end, true
}

// backReference matches the text of a capture.
func (m *matcher) backReference(s, n int) int {
	text, ok := m.captures.text(m.src, n)
	if !ok {
		return m.fail(errBadCapture)
	}
	m.step(len(text))
	if !strings.HasPrefix(m.src[s:], text) {
		return -1
	}
	return s + len(text)
}

// capture is where a part of the pattern matched.
type capture struct{ start, length int }

// captures are those of a match so far.
type captures struct {
	list  [maxCaptures]capture
	level int
}

// push adds a capture and reports whether there was room for it.
func (c *captures) push(one capture) bool {
	if c.level >= maxCaptures {
		return false
	}
	c.list[c.level] = one
	c.level++
	return true
}

// innermost returns the capture that was opened last among the open ones, or nil.
func (c *captures) innermost() *capture {
	for l := c.level - 1; l >= 0; l-- {
		if c.list[l].length == captureOpen {
			return &c.list[l]
		}
	}
	return nil
}

// text returns what a closed capture matched in src; a position is empty.
func (c *captures) text(src string, n int) (string, bool) {
	if n < 0 || n >= c.level || c.list[n].length == captureOpen {
		return "", false
	}
	one := c.list[n]
	return src[one.start : one.start+max(one.length, 0)], true
}

// values returns the results of the captures: positions as numbers, others as the
// text of src.
func (c *captures) values(src string) []glua.LValue {
	out := make([]glua.LValue, c.level)
	for i, one := range c.list[:c.level] {
		if one.length == capturePosition {
			out[i] = glua.LNumber(one.start + 1)
			continue
		}
		out[i] = glua.LString(src[one.start : one.start+one.length])
	}
	return out
}

// pattern is the text of a pattern, which it reads as character classes.
type pattern struct {
	text string
	step func(n int)
}

// classEnd returns where the class at p ends.
func (t *pattern) classEnd(p int) (int, error) {
	c := t.text[p]
	p++
	switch c {
	case '%':
		if p >= len(t.text) {
			return 0, errMalformed
		}
		return p + 1, nil
	case '[':
		if p < len(t.text) && t.text[p] == '^' {
			p++
		}
		for first := true; ; first = false {
			if p >= len(t.text) {
				return 0, errMalformed
			}
			c := t.text[p]
			p++
			if c == ']' && !first {
				return p, nil
			}
			if c == '%' {
				p++
			}
		}
	}
	return p, nil
}

// class reports whether a character is in the class at text[p:end].
func (t *pattern) class(c byte, p, end int) bool {
	switch t.text[p] {
	case '.':
		return true
	case '%':
		return inClass(c, t.text[p+1])
	case '[':
		return t.set(c, p, end-1)
	}
	return t.text[p] == c
}

// set reports whether a character is in the set that starts at p with [ and ends
// at end with ].
func (t *pattern) set(c byte, p, end int) bool {
	t.step((end - p) / 8)
	in := true
	p++
	if t.text[p] == '^' {
		in = false
		p++
	}
	for ; p < end; p++ {
		switch {
		case t.text[p] == '%' && p+1 < end:
			p++
			if inClass(c, t.text[p]) {
				return in
			}
		case p+2 < end && t.text[p+1] == '-':
			if t.text[p] <= c && c <= t.text[p+2] {
				return in
			}
			p += 2
		case t.text[p] == c:
			return in
		}
	}
	return !in
}

// inClass reports whether a character is in %class.
func inClass(c, class byte) bool {
	in, known := member(c, class|0x20)
	if !known || !letter(class) {
		return class == c
	}
	return in == (class&0x20 != 0)
}

// member reports whether a character is in a class and whether there is one of that
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

package lua

import (
	"fmt"
	"strings"

	glua "github.com/yuin/gopher-lua"
)

// maxInput is how long a string or pattern may be for most functions.
const maxInput = 1_000_000

const unsupportedString = "The Lua function string.%s is not supported by Karmada. If you believe this function is " +
	"essential for your use case, please submit an issue to let us know why you need it."

// stringLibrary is the string functions that the library has without a bound.
type stringLibrary struct{ budget *budget }

// open replaces the functions in the library's table.
func (s stringLibrary) open(l *glua.LState, mod *glua.LTable) {
	for _, name := range []string{"gsub", "rep", "dump"} {
		mod.RawSetString(name, l.NewFunction(func(l *glua.LState) int {
			l.RaiseError(unsupportedString, name)
			return 0
		}))
	}
	for _, name := range []string{"byte", "reverse", "sub", "lower", "upper"} {
		mod.RawSetString(name, l.NewFunction(s.limited(name, mod.RawGetString(name))))
	}
	mod.RawSetString("char", s.budget.counted(l, mod.RawGetString("char"), func(l *glua.LState) int { return l.GetTop() }))
	for name, fn := range map[string]glua.LGFunction{
		"find": s.find, "match": s.match, "gmatch": s.gmatch, "gfind": s.gmatch, "format": s.format,
	} {
		mod.RawSetString(name, l.NewFunction(fn))
	}
}

// limited returns a function that checks the length of the first argument and
// counts it before it does the library's work.
func (s stringLibrary) limited(name string, fn glua.LValue) glua.LGFunction {
	original, _ := fn.(*glua.LFunction)
	return func(l *glua.LState) int {
		s.budget.charge(l, len(input(l, 1, name))/8, len(l.CheckString(1))+costString)
		return original.GFunction(l)
	}
}

// input returns a string argument that is not too long.
func input(l *glua.LState, n int, name string) string {
	text := l.CheckString(n)
	if len(text) > maxInput {
		l.RaiseError("string.%s: the input is longer than %d bytes", name, maxInput)
	}
	return text
}

func (s stringLibrary) matcher(l *glua.LState, name string) *matcher {
	return newMatcher(input(l, 1, name), input(l, 2, name), func(n int) { s.budget.charge(l, n, 0) })
}

// start turns the optional position of an argument into an offset.
func start(l *glua.LState, n, length int) int {
	init := l.OptInt(n, 1)
	if init < 0 {
		init += length + 1
	}
	return min(max(init-1, 0), length)
}

func (s stringLibrary) find(l *glua.LState) int {
	m := s.matcher(l, "find")
	init := start(l, 3, len(m.src))
	if glua.LVAsBool(l.Get(4)) || !strings.ContainsAny(m.pattern.text, "^$*+?.([%-") {
		s.budget.charge(l, (len(m.src)-init)/16, 0)
		at := strings.Index(m.src[init:], m.pattern.text)
		if at < 0 {
			l.Push(glua.LNil)
			return 1
		}
		l.Push(glua.LNumber(init + at + 1))
		l.Push(glua.LNumber(init + at + len(m.pattern.text)))
		return 2
	}
	from, to, ok := search(l, m, init)
	if !ok {
		l.Push(glua.LNil)
		return 1
	}
	l.Push(glua.LNumber(from + 1))
	l.Push(glua.LNumber(to))
	return 2 + push(l, m.captures.values(m.src))
}

func (s stringLibrary) match(l *glua.LState) int {
	m := s.matcher(l, "match")
	from, to, ok := search(l, m, start(l, 3, len(m.src)))
	if !ok {
		l.Push(glua.LNil)
		return 1
	}
	return pushMatch(l, m, from, to)
}

func (s stringLibrary) gmatch(l *glua.LState) int {
	src, text := input(l, 1, "gmatch"), input(l, 2, "gmatch")
	next := 0
	l.Push(l.NewFunction(func(l *glua.LState) int {
		m := newMatcher(src, text, func(n int) { s.budget.charge(l, n, 0) })
		if next > len(src) {
			return 0
		}
		from, to, ok := search(l, m, next)
		if !ok {
			next = len(src) + 1
			return 0
		}
		if next = to; from == to {
			next++
		}
		return pushMatch(l, m, from, to)
	}))
	return 1
}

// search finds the pattern from a position on.
func search(l *glua.LState, m *matcher, init int) (from, to int, ok bool) {
	from, to, ok = m.find(init)
	if m.err == nil && ok && m.captures.innermost() != nil {
		m.err = errUnfinishedCapture
	}
	if m.err != nil {
		l.RaiseError("%s", m.err.Error())
	}
	return from, to, ok
}

// pushMatch pushes the captures, or the whole match when there is none.
func pushMatch(l *glua.LState, m *matcher, from, to int) int {
	if m.captures.level == 0 {
		l.Push(glua.LString(m.src[from:to]))
		return 1
	}
	return push(l, m.captures.values(m.src))
}

func push(l *glua.LState, values []glua.LValue) int {
	for _, value := range values {
		l.Push(value)
	}
	return len(values)
}

// format formats numbers and strings; a width or precision has two digits
// at most.
func (s stringLibrary) format(l *glua.LState) int {
	format := input(l, 1, "format")
	var out strings.Builder
	arg := 1
	for i := 0; i < len(format); i++ {
		if format[i] != '%' {
			out.WriteByte(format[i])
			continue
		}
		if i++; i < len(format) && format[i] == '%' {
			out.WriteByte('%')
			continue
		}
		spec, verb, end := parseVerb(format, i)
		if end < 0 {
			l.RaiseError("invalid option to 'format'")
		}
		i = end
		arg++
		text, ok := formatVerb(l, spec, verb, arg)
		if !ok {
			l.RaiseError("invalid option '%%%c' to 'format'", verb)
		}
		s.budget.charge(l, 1, len(text))
		out.WriteString(text)
	}
	s.budget.charge(l, len(format)/8, len(format)+costString)
	l.Push(glua.LString(out.String()))
	return 1
}

// parseVerb reads flags, width, precision and verb; end is -1 when they are none.
func parseVerb(format string, i int) (spec string, verb byte, end int) {
	from := i
	for i < len(format) && strings.IndexByte("-+ #0", format[i]) >= 0 {
		i++
	}
	digits := func() bool {
		at := i
		for i < len(format) && digit(format[i]) {
			i++
		}
		return i-at <= 2
	}
	if i-from > 5 || !digits() {
		return "", 0, -1
	}
	if i < len(format) && format[i] == '.' {
		i++
		if !digits() {
			return "", 0, -1
		}
	}
	if i >= len(format) {
		return "", 0, -1
	}
	return "%" + format[from:i], format[i], i
}

func formatVerb(l *glua.LState, spec string, verb byte, arg int) (string, bool) {
	switch verb {
	case 'd', 'i':
		return fmt.Sprintf(spec+"d", int64(l.CheckNumber(arg))), true
	case 'u', 'o', 'x', 'X':
		if verb == 'u' {
			verb = 'd'
		}
		return fmt.Sprintf(spec+string(verb), int64(l.CheckNumber(arg))), true
	case 'c':
		return string([]byte{byte(l.CheckInt(arg))}), true
	case 'e', 'E', 'f', 'g', 'G':
		return fmt.Sprintf(spec+string(verb), float64(l.CheckNumber(arg))), true
	case 'q':
		return fmt.Sprintf("%q", l.CheckString(arg)), true
	case 's':
		value := l.CheckAny(arg)
		return fmt.Sprintf(spec+"s", l.ToStringMeta(value).String()), true
	case 'v':
		return fmt.Sprintf(spec+"s", l.CheckAny(arg).String()), true
	}
	return "", false
}

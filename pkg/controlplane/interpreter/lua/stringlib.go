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

// openStrings replaces what the library's string functions do without a bound.
func (v *vm) openStrings(mod *glua.LTable) {
	for _, name := range []string{"gsub", "rep", "dump"} {
		mod.RawSetString(name, v.L.NewFunction(func(l *glua.LState) int {
			l.RaiseError(unsupportedString, name)
			return 0
		}))
	}
	for _, name := range []string{"byte", "reverse", "sub", "lower", "upper"} {
		mod.RawSetString(name, v.L.NewFunction(v.limited(name, mod.RawGetString(name))))
	}
	mod.RawSetString("char", v.counted(mod.RawGetString("char"), func(l *glua.LState) int { return l.GetTop() }))
	for name, fn := range map[string]glua.LGFunction{
		"find": v.stringFind, "match": v.stringMatch, "gmatch": v.stringGmatch, "gfind": v.stringGmatch, "format": v.stringFormat,
	} {
		mod.RawSetString(name, v.L.NewFunction(fn))
	}
}

// limited returns a function that checks the length of the first argument and
// counts it before it does the library's work.
func (v *vm) limited(name string, fn glua.LValue) glua.LGFunction {
	original, _ := fn.(*glua.LFunction)
	return func(l *glua.LState) int {
		v.count(l, len(v.input(l, 1, name))/8, len(l.CheckString(1))+costString)
		return original.GFunction(l)
	}
}

// input returns a string argument that is not too long.
func (v *vm) input(l *glua.LState, n int, name string) string {
	s := l.CheckString(n)
	if len(s) > maxInput {
		l.RaiseError("string.%s: the input is longer than %d bytes", name, maxInput)
	}
	return s
}

func (v *vm) matcher(l *glua.LState, name string) *matcher {
	return &matcher{
		src: v.input(l, 1, name), pattern: v.input(l, 2, name),
		step: func(n int) { v.count(l, n, 0) },
	}
}

// start turns the optional position of an argument into an offset.
func start(l *glua.LState, n, length int) int {
	init := l.OptInt(n, 1)
	if init < 0 {
		init += length + 1
	}
	return min(max(init-1, 0), length)
}

func (v *vm) stringFind(l *glua.LState) int {
	m := v.matcher(l, "find")
	init := start(l, 3, len(m.src))
	if glua.LVAsBool(l.Get(4)) || !strings.ContainsAny(m.pattern, "^$*+?.([%-") {
		v.count(l, (len(m.src)-init)/16, 0)
		at := strings.Index(m.src[init:], m.pattern)
		if at < 0 {
			l.Push(glua.LNil)
			return 1
		}
		l.Push(glua.LNumber(init + at + 1))
		l.Push(glua.LNumber(init + at + len(m.pattern)))
		return 2
	}
	from, to, ok := v.find(l, m, init)
	if !ok {
		l.Push(glua.LNil)
		return 1
	}
	l.Push(glua.LNumber(from + 1))
	l.Push(glua.LNumber(to))
	return 2 + v.pushCaptures(l, m)
}

func (v *vm) stringMatch(l *glua.LState) int {
	m := v.matcher(l, "match")
	from, to, ok := v.find(l, m, start(l, 3, len(m.src)))
	if !ok {
		l.Push(glua.LNil)
		return 1
	}
	return v.pushMatch(l, m, from, to)
}

func (v *vm) stringGmatch(l *glua.LState) int {
	src, pattern := v.input(l, 1, "gmatch"), v.input(l, 2, "gmatch")
	next := 0
	l.Push(l.NewFunction(func(l *glua.LState) int {
		m := &matcher{src: src, pattern: pattern, step: func(n int) { v.count(l, n, 0) }}
		if next > len(src) {
			return 0
		}
		from, to, ok := v.find(l, m, next)
		if !ok {
			next = len(src) + 1
			return 0
		}
		if next = to; from == to {
			next++
		}
		return v.pushMatch(l, m, from, to)
	}))
	return 1
}

func (v *vm) find(l *glua.LState, m *matcher, init int) (from, to int, ok bool) {
	from, to, ok = m.find(init)
	if m.err == nil {
		for i := range m.level {
			if m.captures[i].length == captureOpen && ok {
				m.err = fmt.Errorf("unfinished capture")
			}
		}
	}
	if m.err != nil {
		l.RaiseError("%s", m.err.Error())
	}
	return from, to, ok
}

// pushMatch pushes the captures, or the whole match when there is none.
func (v *vm) pushMatch(l *glua.LState, m *matcher, from, to int) int {
	if m.level == 0 {
		l.Push(glua.LString(m.src[from:to]))
		return 1
	}
	return v.pushCaptures(l, m)
}

func (v *vm) pushCaptures(l *glua.LState, m *matcher) int {
	for _, c := range m.captures[:m.level] {
		if c.length == capturePosition {
			l.Push(glua.LNumber(c.start + 1))
			continue
		}
		l.Push(glua.LString(m.src[c.start : c.start+c.length]))
	}
	return m.level
}

// stringFormat formats numbers and strings; a width or precision has two digits
// at most.
func (v *vm) stringFormat(l *glua.LState) int {
	format := v.input(l, 1, "format")
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
		v.count(l, 1, len(text))
		out.WriteString(text)
	}
	v.count(l, len(format)/8, len(format)+costString)
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

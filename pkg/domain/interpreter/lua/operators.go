package lua

import (
	"strings"

	glua "github.com/yuin/gopher-lua"
)

// operators are the operators that rewritten scripts call as functions, so that
// what they make is charged.
type operators struct{ budget *budget }

// numberLength is the most characters that a number has as a string.
const numberLength = 24

// concat is the .. operator for any number of operands.
func (o operators) concat(l *glua.LState) int {
	n := l.GetTop()
	size := costString
	for i := n; i >= 1; i-- {
		operand := l.Get(i)
		if !glua.LVCanConvToString(operand) {
			left, right := operand, l.Get(min(i+1, n))
			if i == n && n > 1 {
				left, right = l.Get(n-1), operand
			}
			l.RaiseError("cannot perform concat operation between %s and %s", left.Type().String(), right.Type().String())
		}
		if s, ok := operand.(glua.LString); ok {
			size += len(s)
		} else {
			size += numberLength
		}
	}
	o.budget.charge(l, size/64, size)
	var out strings.Builder
	out.Grow(size)
	for i := 1; i <= n; i++ {
		out.WriteString(glua.LVAsString(l.Get(i)))
	}
	l.Push(glua.LString(out.String()))
	return 1
}

// newTable counts a table that a script made.
func (o operators) newTable(l *glua.LState) int {
	tbl, _ := l.Get(1).(*glua.LTable)
	o.budget.charge(l, 1, costTable+tbl.MaxN()*costSlot)
	l.Push(tbl)
	return 1
}

// set is object[key] = value.
func (o operators) set(l *glua.LState) int {
	tbl, ok := l.Get(1).(*glua.LTable)
	key, value := l.Get(2), l.Get(3)
	if !ok {
		l.RaiseError("attempt to index a non-table object(%s) with key '%s'", l.Get(1).Type().String(), key.String())
	}
	switch k := key.(type) {
	case glua.LNumber:
		if i := int(k); glua.LNumber(i) == k && i > 0 {
			if tbl.RawGetInt(i) == glua.LNil {
				o.budget.chargeGrowth(l, tbl.MaxN(), i)
			}
		} else {
			o.budget.charge(l, 1, costEntry)
		}
	case *glua.LNilType:
		l.RaiseError("index is nil")
	default:
		o.budget.charge(l, 1, costEntry)
	}
	l.SetTable(tbl, key, value)
	return 0
}

package lua

import (
	"strings"

	glua "github.com/yuin/gopher-lua"
)

// count takes from the budget of the call and stops the script when that is used
// up.
func (v *vm) count(l *glua.LState, steps, bytes int) {
	v.budget.spend(steps, bytes)
	if v.budget.exceeded != nil {
		l.RaiseError("%s", v.budget.exceeded.Error())
	}
}

// counted returns a function of the library that counts what it makes, by size,
// before it does.
func (v *vm) counted(fn glua.LValue, size func(*glua.LState) int) *glua.LFunction {
	original, _ := fn.(*glua.LFunction)
	return v.L.NewFunction(func(l *glua.LState) int {
		n := size(l)
		v.count(l, n/16, n+costString)
		return original.GFunction(l)
	})
}

// openTables replaces what the library's table functions do without a bound.
func (v *vm) openTables(mod *glua.LTable) {
	for name, fn := range map[string]glua.LGFunction{"concat": v.tableConcat, "insert": v.tableInsert} {
		mod.RawSetString(name, v.L.NewFunction(fn))
	}
	for _, name := range []string{"remove", "sort"} {
		original, _ := mod.RawGetString(name).(*glua.LFunction)
		mod.RawSetString(name, v.L.NewFunction(func(l *glua.LState) int {
			n := l.CheckTable(1).MaxN()
			if name == "sort" {
				n *= 16
			}
			v.count(l, n/16, 0)
			return original.GFunction(l)
		}))
	}
}

func (v *vm) tableConcat(l *glua.LState) int {
	tbl, sep := l.CheckTable(1), l.OptString(2, "")
	from, to := l.OptInt(3, 1), l.OptInt(4, tbl.Len())
	var out strings.Builder
	for i := from; i <= to; i++ {
		value := tbl.RawGetInt(i)
		if !glua.LVCanConvToString(value) {
			l.RaiseError("invalid value (%s) at index %d in table for concat", value.Type().String(), i)
		}
		text := glua.LVAsString(value)
		v.count(l, 1, len(text)+len(sep))
		out.WriteString(text)
		if i < to {
			out.WriteString(sep)
		}
	}
	l.Push(glua.LString(out.String()))
	return 1
}

func (v *vm) tableInsert(l *glua.LState) int {
	tbl := l.CheckTable(1)
	switch l.GetTop() {
	case 2:
		v.count(l, 1, costSlot)
		tbl.Append(l.Get(2))
	case 3:
		at := l.CheckInt(2)
		n := tbl.MaxN()
		v.grow(l, n, at)
		v.count(l, n/16, 0)
		tbl.Insert(at, l.CheckAny(3))
	default:
		l.RaiseError("wrong number of arguments to 'insert'")
	}
	return 0
}

// grow counts what a table grows by when the index is set.
func (v *vm) grow(l *glua.LState, n, index int) {
	if index > n && index < glua.MaxArrayIndex {
		v.count(l, (index-n)/16, (index-n)*costSlot)
		return
	}
	v.count(l, 1, costEntry)
}

// hidden returns the functions that rewritten scripts call.
func (v *vm) hidden() (concat, table, set *glua.LFunction) {
	return v.L.NewFunction(v.concat), v.L.NewFunction(v.newTable), v.L.NewFunction(v.set)
}

// concat is the .. operator for any number of operands.
func (v *vm) concat(l *glua.LState) int {
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
			size += 24
		}
	}
	v.count(l, size/64, size)
	var out strings.Builder
	out.Grow(size)
	for i := 1; i <= n; i++ {
		out.WriteString(glua.LVAsString(l.Get(i)))
	}
	l.Push(glua.LString(out.String()))
	return 1
}

// newTable counts a table that a script made.
func (v *vm) newTable(l *glua.LState) int {
	tbl, _ := l.Get(1).(*glua.LTable)
	v.count(l, 1, costTable+tbl.MaxN()*costSlot)
	l.Push(tbl)
	return 1
}

// set is object[key] = value.
func (v *vm) set(l *glua.LState) int {
	tbl, ok := l.Get(1).(*glua.LTable)
	key, value := l.Get(2), l.Get(3)
	if !ok {
		l.RaiseError("attempt to index a non-table object(%s) with key '%s'", l.Get(1).Type().String(), key.String())
	}
	switch k := key.(type) {
	case glua.LNumber:
		if i := int(k); glua.LNumber(i) == k && i > 0 {
			if tbl.RawGetInt(i) == glua.LNil {
				v.grow(l, tbl.MaxN(), i)
			}
		} else {
			v.count(l, 1, costEntry)
		}
	case *glua.LNilType:
		l.RaiseError("index is nil")
	default:
		v.count(l, 1, costEntry)
	}
	l.SetTable(tbl, key, value)
	return 0
}

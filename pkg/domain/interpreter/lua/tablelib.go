package lua

import (
	"strings"

	glua "github.com/yuin/gopher-lua"
)

// tableLibrary is the table functions that the library has without a bound.
type tableLibrary struct{ budget *budget }

// open replaces the functions in the library's table.
func (t tableLibrary) open(l *glua.LState, mod *glua.LTable) {
	for name, fn := range map[string]glua.LGFunction{"concat": t.concat, "insert": t.insert} {
		mod.RawSetString(name, l.NewFunction(fn))
	}
	for _, name := range []string{"remove", "sort"} {
		original, _ := mod.RawGetString(name).(*glua.LFunction)
		mod.RawSetString(name, l.NewFunction(func(l *glua.LState) int {
			n := l.CheckTable(1).MaxN()
			if name == "sort" {
				n *= 16
			}
			t.budget.charge(l, n/16, 0)
			return original.GFunction(l)
		}))
	}
}

func (t tableLibrary) concat(l *glua.LState) int {
	tbl, sep := l.CheckTable(1), l.OptString(2, "")
	from, to := l.OptInt(3, 1), l.OptInt(4, tbl.Len())
	var out strings.Builder
	for i := from; i <= to; i++ {
		value := tbl.RawGetInt(i)
		if !glua.LVCanConvToString(value) {
			l.RaiseError("invalid value (%s) at index %d in table for concat", value.Type().String(), i)
		}
		text := glua.LVAsString(value)
		t.budget.charge(l, 1, len(text)+len(sep))
		out.WriteString(text)
		if i < to {
			out.WriteString(sep)
		}
	}
	l.Push(glua.LString(out.String()))
	return 1
}

func (t tableLibrary) insert(l *glua.LState) int {
	tbl := l.CheckTable(1)
	switch l.GetTop() {
	case 2:
		t.budget.charge(l, 1, costSlot)
		tbl.Append(l.Get(2))
	case 3:
		at := l.CheckInt(2)
		n := tbl.MaxN()
		t.budget.chargeGrowth(l, n, at)
		t.budget.charge(l, n/16, 0)
		tbl.Insert(at, l.CheckAny(3))
	default:
		l.RaiseError("wrong number of arguments to 'insert'")
	}
	return 0
}

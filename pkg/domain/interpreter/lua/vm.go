// Package lua runs the Lua scripts by which customizations interpret objects.
//
// A script is compiled once, on its first call. Each call runs in an environment
// of its own on a virtual machine from a pool, so that nothing a script leaves
// behind is seen by another call. Scripts reach no file, process or clock but the
// time of day. A call that takes too long or too much memory is stopped.
//
// The memory of a call is counted, not measured: each instruction and each table
// and string is charged the most that it can take. The count depends on nothing
// but the script and its arguments.
package lua

import (
	"time"

	glua "github.com/yuin/gopher-lua"
)

// Module is a library that scripts load by require. Its functions see and return
// plain values: nil, bool, int64, float64, string, []any and map[string]any.
type Module map[string]func(args []any) (any, error)

// vm is a virtual machine. It is used by one call at a time.
type vm struct {
	L      *glua.LState
	budget *budget

	// base holds what every script can reach; environments of calls fall back on
	// it and never change it.
	base      *glua.LTable
	libraries map[string]*glua.LTable
	modules   map[string]*glua.LTable
	// inherit holds the metatables by which a table falls back on another.
	inherit map[*glua.LTable]*glua.LTable

	fnConcat, fnTable, fnSet *glua.LFunction
}

const unsupportedFunction = "call function %s is not supported in karmada customized resourceinterpreter."

func newVM(limits Limits, now func() time.Time, modules map[string]Module) *vm {
	l := glua.NewState(glua.Options{
		SkipOpenLibs: true, CallStackSize: 200, MinimizeStackMemory: true,
		RegistrySize: 1 << 10, RegistryGrowStep: 1 << 10, RegistryMaxSize: 1 << 16,
	})
	v := &vm{
		L: l, budget: newBudget(limits, now), base: l.NewTable(),
		libraries: map[string]*glua.LTable{}, modules: map[string]*glua.LTable{},
		inherit: map[*glua.LTable]*glua.LTable{},
	}
	v.budget.reset()
	for name, open := range map[string]glua.LGFunction{
		glua.BaseLibName: glua.OpenBase, glua.TabLibName: glua.OpenTable, glua.StringLibName: glua.OpenString,
		glua.MathLibName: glua.OpenMath, glua.OsLibName: glua.OpenOs,
	} {
		l.Push(l.NewFunction(open))
		l.Push(glua.LString(name))
		l.Call(1, 0)
	}
	v.openBase()
	v.openLibraries()
	for name, module := range modules {
		v.openModule(name, module)
	}
	ops := operators{v.budget}
	v.fnConcat, v.fnTable, v.fnSet = l.NewFunction(ops.concat), l.NewFunction(ops.newTable), l.NewFunction(ops.set)
	l.SetContext(v.budget)
	return v
}

func (v *vm) openBase() {
	for _, name := range []string{
		"assert", "error", "ipairs", "next", "pairs", "pcall", "select", "tonumber", "tostring", "type", "unpack", "xpcall", "_VERSION",
	} {
		v.base.RawSetString(name, v.L.GetGlobal(name))
	}
	for _, name := range []string{
		"collectgarbage", "dofile", "getfenv", "getmetatable", "load", "loadfile", "loadstring", "rawequal", "rawget", "rawset",
		"setfenv", "setmetatable", "module", "newproxy",
	} {
		v.base.RawSetString(name, v.L.NewFunction(func(l *glua.LState) int {
			l.RaiseError(unsupportedFunction, name)
			return 0
		}))
	}
	v.base.RawSetString("unpack", v.budget.counted(v.L, v.base.RawGetString("unpack"), func(l *glua.LState) int {
		return max(0, l.OptInt(3, l.CheckTable(1).Len())-l.OptInt(2, 1)+1)
	}))
	v.base.RawSetString("print", v.L.NewFunction(func(*glua.LState) int { return 0 }))
	v.base.RawSetString("require", v.L.NewFunction(v.require))
}

func (v *vm) openLibraries() {
	for _, name := range []string{glua.TabLibName, glua.StringLibName, glua.MathLibName, glua.OsLibName} {
		library, _ := v.L.GetGlobal(name).(*glua.LTable)
		v.libraries[name] = library
	}
	stringLibrary{v.budget}.open(v.L, v.libraries[glua.StringLibName])
	tableLibrary{v.budget}.open(v.L, v.libraries[glua.TabLibName])
	v.libraries[glua.MathLibName].RawSetString("randomseed", v.L.NewFunction(func(*glua.LState) int { return 0 }))
	clock := v.L.NewTable()
	clock.RawSetString("time", v.libraries[glua.OsLibName].RawGetString("time"))
	clock.RawSetString("date", v.budget.counted(v.L, v.libraries[glua.OsLibName].RawGetString("date"), func(l *glua.LState) int {
		return 16 * len(l.OptString(1, ""))
	}))
	v.libraries[glua.OsLibName] = clock
	loader := v.L.NewTable()
	loader.RawSetString("loadlib", v.L.NewFunction(func(l *glua.LState) int {
		l.RaiseError("loadlib is not supported")
		return 0
	}))
	v.libraries["package"] = loader
}

func (v *vm) openModule(name string, module Module) {
	table := v.L.NewTable()
	for fn, f := range module {
		table.RawSetString(fn, v.L.NewFunction(func(l *glua.LState) int {
			args := make([]any, l.GetTop())
			in := &decoder{}
			for i := range args {
				value, err := in.plain(l.Get(i + 1))
				if err != nil {
					l.RaiseError("%s.%s: argument %d: %s", name, fn, i+1, err.Error())
				}
				args[i] = value
			}
			v.budget.charge(l, 200, costTable)
			result, err := f(args)
			if err != nil {
				l.RaiseError("%s.%s: %s", name, fn, err.Error())
			}
			l.Push((&encoder{l: l}).value(result))
			return 1
		}))
	}
	v.modules[name] = table
}

// require returns a module; what scripts change in it is visible to that call
// only.
func (v *vm) require(l *glua.LState) int {
	name := l.CheckString(1)
	module, ok := v.modules[name]
	if !ok {
		module, ok = v.libraries[name]
	}
	if !ok {
		l.RaiseError("module %s not found", name)
	}
	l.Push(v.overlay(module, 0))
	return 1
}

// overlay returns a table that looks up in a library what it does not have
// itself.
func (v *vm) overlay(library *glua.LTable, size int) *glua.LTable {
	meta, ok := v.inherit[library]
	if !ok {
		meta = v.L.CreateTable(0, 1)
		meta.RawSetString("__index", library)
		v.inherit[library] = meta
	}
	table := v.L.CreateTable(0, size)
	table.Metatable = meta
	return table
}

// environment returns the globals of one call.
func (v *vm) environment() *glua.LTable {
	env := v.overlay(v.base, 8)
	for name, library := range v.libraries {
		env.RawSetString(name, v.overlay(library, 0))
	}
	env.RawSetString("_G", env)
	return env
}

package lua

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	glua "github.com/yuin/gopher-lua"
)

// idleVMs is how many virtual machines are kept for the next calls.
const idleVMs = 10

// Engine runs scripts. It is safe for concurrent use.
type Engine struct {
	limits  Limits
	now     func() time.Time
	modules map[string]Module
	idle    chan *vm

	reused, created, kept, dropped atomic.Uint64
}

// NewEngine returns an engine whose scripts can load the modules. now is the clock of limits and pauses.
func NewEngine(limits Limits, now func() time.Time, modules map[string]Module) *Engine {
	return &Engine{limits: limits, now: now, modules: modules, idle: make(chan *vm, idleVMs)}
}

// PoolStats counts what happened to virtual machines.
type PoolStats struct {
	// Reused and Created are where calls got theirs from.
	Reused, Created uint64
	// Kept and Dropped are where they went.
	Kept, Dropped uint64
}

// PoolStats returns the counts since the start.
func (e *Engine) PoolStats() PoolStats {
	return PoolStats{Reused: e.reused.Load(), Created: e.created.Load(), Kept: e.kept.Load(), Dropped: e.dropped.Load()}
}

func (e *Engine) get() *vm {
	select {
	case v := <-e.idle:
		e.reused.Add(1)
		v.budget.reset()
		return v
	default:
		e.created.Add(1)
		return newVM(e.limits, e.now, e.modules)
	}
}

func (e *Engine) put(v *vm) {
	select {
	case e.idle <- v:
		e.kept.Add(1)
	default:
		e.drop(v)
	}
}

func (e *Engine) drop(v *vm) {
	e.dropped.Add(1)
	v.L.Close()
}

// Check compiles a script without running it.
func Check(source string) error {
	_, err := compile(source)
	return err
}

// Script is the source of some functions.
type Script struct {
	*program
	penalties *penalties
	*penalty
}

// program is what the views of a script share.
type program struct {
	engine *Engine
	source string
	once   sync.Once
	proto  *glua.FunctionProto
	err    error
}

// Script returns a script. It is compiled when it is first needed.
func (e *Engine) Script(source string) *Script {
	s := &Script{program: &program{engine: e, source: source}, penalties: newPenalties()}
	s.penalty = s.penalties.of("")
	return s
}

// For returns the script as it is run on behalf of a key, such as a cluster: when it
// exceeds its limits time after time, it is paused for that key only.
func (s *Script) For(key string) *Script {
	return &Script{program: s.program, penalties: s.penalties, penalty: s.penalties.of(key)}
}

// Check compiles the script.
func (s *program) Check() error {
	s.once.Do(func() {
		s.proto, s.err = compile(s.source)
		s.source = ""
	})
	return s.err
}

// Call runs a function of the script and hands its first n results to use, which
// must not keep them. A script that exceeds its limits time after time is not run
// for a while: calls fail as the last one did.
func (s *Script) Call(function string, args []any, n int, use func(results []Value) error) error {
	if err := s.Check(); err != nil {
		return err
	}
	if err := s.barred(s.engine.now); err != nil {
		return err
	}
	v := s.engine.get()
	err := v.call(s.proto, function, args, n, use)
	if limit := v.budget.exceeded; limit != nil {
		// What a stopped script made is dropped with its machine.
		s.engine.drop(v)
		s.stopped(limit, s.engine.now())
		return limit
	}
	s.ran()
	v.L.SetTop(0)
	s.engine.put(v)
	return err
}

func (v *vm) call(proto *glua.FunctionProto, name string, args []any, n int, use func([]Value) error) error {
	env := v.environment()
	chunk := v.L.NewFunctionFromProto(proto)
	chunk.Env = env
	v.L.Push(chunk)
	v.L.Push(v.fnConcat)
	v.L.Push(v.fnTable)
	v.L.Push(v.fnSet)
	if err := v.L.PCall(3, 0, nil); err != nil {
		return scriptError(err)
	}
	fn := env.RawGetString(name)
	switch fn.Type() {
	case glua.LTFunction:
	case glua.LTNil:
		return fmt.Errorf("not found function %s", name)
	default:
		return fmt.Errorf("%s is not a function: %s", name, fn.Type())
	}
	in := &encoder{l: v.L}
	v.L.Push(fn)
	for _, arg := range args {
		v.L.Push(in.value(arg))
	}
	if err := v.L.PCall(len(args), n, nil); err != nil {
		return scriptError(err)
	}
	results := make([]Value, n)
	for i := range results {
		results[i] = Value{value: v.L.Get(i - n), big: in.big}
	}
	return use(results)
}

// scriptError returns what a script raised, without the trace of the stack.
func scriptError(err error) error {
	if api := (*glua.ApiError)(nil); errors.As(err, &api) && api.Object != nil {
		return errors.New(api.Object.String())
	}
	return err
}

// Value is a result of a script.
type Value struct {
	value glua.LValue
	big   map[float64]int64
}

// Type names the type as Lua does.
func (v Value) Type() string { return v.value.Type().String() }

// IsNil reports whether there is no result.
func (v Value) IsNil() bool { return v.value.Type() == glua.LTNil }

// IsTable reports whether the result is a table.
func (v Value) IsTable() bool { return v.value.Type() == glua.LTTable }

// Number returns a number and whether the result is one.
func (v Value) Number() (float64, bool) {
	n, ok := v.value.(glua.LNumber)
	return float64(n), ok
}

// Bool returns a boolean and whether the result is one.
func (v Value) Bool() (value, ok bool) {
	b, ok := v.value.(glua.LBool)
	return bool(b), ok
}

// Plain returns a table as an object or a list, and other results as they are.
// Empty tables in it become what they are in shapes, and are left out when they
// are nothing there.
func (v Value) Plain(shapes Shapes) (any, error) {
	return (&decoder{shapes: shapes, big: v.big}).plain(v.value)
}

// Object returns a table as an object.
func (v Value) Object(shapes Shapes) (map[string]any, error) {
	tree, err := v.Plain(shapes)
	if err != nil {
		return nil, err
	}
	object, ok := tree.(map[string]any)
	if !ok {
		return nil, fmt.Errorf("want an object, got %T", tree)
	}
	return object, nil
}

// List returns a table as a list; empty tables in it are left out.
func (v Value) List() ([]any, error) {
	tree, err := v.Plain(nil)
	if err != nil {
		return nil, err
	}
	switch t := tree.(type) {
	case []any:
		return t, nil
	case map[string]any:
		if len(t) == 0 {
			return []any{}, nil
		}
	}
	return nil, fmt.Errorf("want a list, got %T", tree)
}
